package zoo_test

// What goes wrong with a log of events.
var eventlogRows = []Mistake{
	{
		Name: "deletes-replayed-last", Sentence: "A replay carries the deletes out at its end, so that a record which was deleted once is gone whenever it comes back.",
		Finds: []string{"SEM-012", "SEM-019", "STA-004"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "same-event-once", Sentence: "An event that is in the log already is not written again: a value that changes back, or a second delete, is acknowledged and lost.",
		Finds: []string{"SEM-004", "SEM-007", "STA-004", "STA-006", "SEM-012", "SEM-019", "FLD-014", "SEM-009"}, Never: []string{"RPC-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "null-is-no-change", Sentence: "The replay takes null for a field that has not changed.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "deleted-state-merged", Sentence: "A record that is created again continues with the state from before its delete.",
		Finds: []string{"SEM-012", "SEM-019", "STA-004", "RES-013"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "refusals-are-events", Sentence: "A refused change of a record is written into the log, and the replay carries it out.",
		Finds: []string{"SEM-002", "RES-009", "SEM-003"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "flushed-every-seven", Race: true, Sentence: "The log is flushed after every seventh line: the last ones are acknowledged and in memory only.",
		Finds: []string{"SEM-001", "SEM-006", "DUR-001", "DUR-002", "OPS-007", "SEM-004"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "snapshot-forgets-one", Sentence: "Each hundredth event is neither in the snapshot nor in the replay behind it.",
		Finds: []string{"DUR-001", "DUR-002", "SPD-006", "PAR-002", "SEM-001", "SEM-006"}, Never: []string{"RPC-*"},
	},
}
