package zoo_test

var causesOfEventLog = map[string]explanation{
	"Python-log/deletes-replayed-last": {right: "(stays|still|remains|for ever) deleted|delete.*(mark|flag|again|last|wins|kept)|deleted (before|once)", vague: "remembered of an earlier batch"},
	"Python-log/same-event-once":       {right: "remember|earlier batch|seen before|same (content|values)|cache|deduplicat"},
	"Python-log/null-is-no-change":     {right: "null.*(left out|ignored|skipped|no change|keeps|old)|(left|leaves) out.*null"},
	"Python-log/deleted-state-merged":  {right: "(before|survive|earlier).{0,40}delete|old(er)? (values|state)|delete.{0,60}(leaves|keeps|remain|not remove)"},
	"Python-log/refusals-are-events":   {right: "refused.*(written|stored|carried out)|(written|writes|carried out|stored).*(refus|skip)|upsert|before .{0,20}(check|validat)"},
	"Python-log/flushed-every-seven":   {right: "flush|buffer|later|not awaited|asynchron|after the reply"},
	"Python-log/snapshot-forgets-one":  {right: "hundred|1 \\(number|single records|some (of the )?records"},
}
