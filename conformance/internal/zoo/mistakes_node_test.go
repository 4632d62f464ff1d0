package zoo_test

// What goes wrong around the call, in Node.
var nodeEnvelope = []Mistake{
	{
		Name: "html-page-for-exceptions", Sentence: "An exception, such as a look-up of an object that does not exist, ends in the HTML page 500 of the framework.",
		Finds: []string{"RPC-001", "HTTP-010"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "html-for-unknown-methods", Sentence: "A method that has no route is answered by the framework's page 404.",
		Finds: []string{"RPC-008", "RPC-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "listing-needs-a-permission", Sentence: "list_objects needs a permission that the token of the system behind lacks, and answers an HTML page 500.",
		Finds: []string{"RPC-001", "HTTP-003", "OBJ-001", "CON-005"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "error-null", Sentence: "Every reply is {result, error}, with null for the one that is not meant.",
		Finds: []string{"RPC-004"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "id-as-number", Sentence: "The id of the request is made a number where it looks like one.",
		Finds: []string{"RPC-003"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "error-is-a-text", Sentence: "The error of a reply is the message alone.",
		Finds: []string{"RPC-007"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "codes-of-node", Sentence: "The code of an error is the text that Node's errors carry, ERR_INVALID_ARG_TYPE.",
		Finds: []string{"RPC-007"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "no-version-on-errors", Sentence: "Error replies are built at another place and lack \"jsonrpc\".",
		Finds: []string{"RPC-002"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "bare-list", Sentence: "list_objects answers the list itself, without {\"objects\":…}.",
		Finds: []string{"RPC-006", "OBJ-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "answered-before-the-work", Sentence: "sync_batch answers 202 with an empty body and works afterwards.",
		Finds: []string{"HTTP-003"}, Never: []string{"DAT-*"},
	},
	{
		Name: "length-in-characters", Sentence: "Content-Length is the number of characters, so that replies with other than ASCII text are cut.",
		Finds: []string{"HTTP-006", "RPC-001"}, Never: []string{"SEM-*", "DUR-*"},
	},
	{
		Name: "body-limit-100kb", Sentence: "The body parser stops at its default limit of 100 KB with a 413, below a batch of the declared size.",
		Finds: []string{"SPD-006", "DAT-012"}, Never: []string{"SEM-*", "DUR-*"}, Setting: Setting{Large: true},
	},
	{
		Name: "gzip-label-only", Sentence: "Replies are labelled gzip and are plain.", Slip: true,
		Finds: []string{"HTTP-007", "RPC-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "gzip-without-label", Sentence: "Replies of more than 1 KB are compressed, and nothing says so.",
		Finds: []string{"RPC-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "fields-by-two-processes", Sentence: "One of the processes behind the URL has an older schema, so that every third list_fields lacks a field.",
		Finds: []string{"FLD-010"}, Never: []string{"PAR-001", "FLD-015", "SEM-*", "DUR-*"},
	},
	{
		Name: "token-only-in-test-connection", Sentence: "Only test_connection looks at the token.",
		Finds: []string{"AUTH-002", "AUTH-008"}, Never: []string{"AUTH-001", "SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "header-name-in-capitals", Sentence: "sync_batch reads headers.Authorization, which Node does not have, and answers 401 to everyone.",
		Finds: []string{"AUTH-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "speed-from-the-environment", Sentence: "The numbers of get_sync_speed are texts, as environment variables are.",
		Finds: []string{"SPD-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "rate-limit-with-window", Sentence: "X-RateLimit-Limit has the form of another standard, 600;w=60.",
		Finds: []string{"RL-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "object-without-identifier", Sentence: "An object that is not judged has no identifier field.",
		Finds: []string{"FLD-004"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "field-type-json", Sentence: "One field has the type json, which the protocol does not know.",
		Finds: []string{"FLD-003"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "fields-cached", Sentence: "list_fields is cached in the process and does not see a field that is added.",
		Finds: []string{"STA-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"}, Setting: Setting{AlterSchema: true},
	},
	{
		Name: "crash-on-bad-json", Sentence: "A body that is not JSON throws where nothing catches it, and the process ends.",
		Finds: []string{"ERR-002", "HTTP-003", "ERR-006"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"}, Setting: Setting{Own: true},
	},
	{
		Name: "restarts-in-the-middle", Sentence: "The process, which holds everything in memory, is replaced every 150 requests.",
		Finds: []string{"DUR-001", "HTTP-003", "DUR-002", "ERR-006"}, Setting: Setting{Own: true, Restarts: true},
	},
	{
		Name: "label-undefined", Sentence: "The label of one object is read from a property that it does not have, and JSON.stringify leaves it out.",
		Finds: []string{"OBJ-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
}

// What goes wrong with a batch, in Node.
var nodeBatches = []Mistake{
	{
		Name: "write-not-awaited", Cause: "the write is not awaited", Sentence: "The promise of the write is not awaited; the reply comes first.",
		Finds: []string{"DUR-001", "SEM-006", "SEM-001", "DUR-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-002", "SEM-005"},
	},
	{
		Name: "results-not-awaited", Sentence: "records.forEach(async …) fills the results after the reply was made.",
		Finds: []string{"RES-002", "OPS-004"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "waits-for-the-first-chunk", Cause: "the write is not awaited", Sentence: "Promise.race is written for Promise.all: only the first chunk is waited for.",
		Finds: []string{"DUR-001"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "writes-buffered", Cause: "the write is not awaited", Sentence: "Records are acknowledged into a buffer that is flushed after 0.7 s.",
		Finds: []string{"DUR-001", "SEM-006", "SEM-001", "DUR-002"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "errors-swallowed", Sentence: "The catch around a record logs, and success is answered all the same.",
		Finds: []string{"RES-009", "RES-019", "SEM-003", "SEM-005"}, Never: []string{"RPC-*", "DAT-*", "RES-002"},
	},
	{
		Name: "whole-table-rewritten", Race: true, Cause: "batches at the same time take back each other's writes", Sentence: "The table is a file that is read, changed and written whole, so that batches in parallel lose each other's records.",
		Finds: []string{"PAR-002", "DUR-001", "DUR-002", "PAR-005"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "plan-in-a-global", Race: true, Sentence: "The plan is kept in a variable of the module while a token is fetched.",
		Finds: []string{"PAR-002", "PAR-005", "STA-003"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "plan-kept-by-sync", Sentence: "The plan of a sync is kept from its first batch, so that a later one is written with the old operation and mapping.",
		Finds: []string{"STA-003", "STA-006", "STA-002", "PAR-005"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "object-of-the-last-listing", Cause: "the object of the latest planning call is used", Sentence: "sync_batch writes into the object that list_fields was last asked for.",
		Finds: []string{"STA-003", "STA-002", "PAR-005"}, Never: []string{"RPC-*", "DAT-*"},
		Setting: Setting{Objects: []string{"contact", "order"}},
	},
	{
		Name: "batches-remembered", Cause: "what is remembered of an earlier batch", Sentence: "A batch whose content was seen before is acknowledged and not executed.",
		Finds: []string{"DAT-016", "STA-004", "STA-006"}, Never: []string{"RPC-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "failures-filtered-out", Sentence: "Only records that were written get a result.",
		Finds: []string{"RES-002"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "stops-at-the-first-error", Sentence: "The loop ends at the first record that fails; the ones after it have no result.",
		Finds: []string{"RES-002", "RES-008"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "results-by-sorted-position", Sentence: "Records are sorted for the system behind, and its answers are matched by position.",
		Finds: []string{"RES-008", "RES-010", "RES-009"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "last-chunk-forgotten", Cause: "what does not fill a chunk is dropped", Sentence: "Only full chunks of ten records are written; all are acknowledged.",
		Finds: []string{"DUR-001", "SEM-001", "SEM-006", "RES-012"}, Never: []string{"RPC-*", "DAT-*", "RES-002"},
	},
	{Name: "fields-set-before-checks", Sentence: "Fields are set in the row before a conflict in another identifier is looked for.", Finds: []string{"SEM-013"}, Setting: Setting{Objects: []string{"order"}}},
	{Name: "index-keeps-old-keys", Sentence: "The index keeps the old value of an identifier that is changed.", Finds: []string{"SEM-013"}, Setting: Setting{Objects: []string{"order"}}},
	{Name: "columns-of-the-first-record", Slip: true, Sentence: "The first record gives the order of the columns for all.", Finds: []string{"RES-016"}},
	{Name: "bulk-insert-overwrites", Sentence: "Batches of 20 and more are inserted by a bulk statement, which is an upsert.", Finds: []string{"SPD-006"}},
	{Name: "row-written-back-whole", Race: true, Slip: true, Sentence: "A row is read, changed and written back whole.", Finds: []string{"PAR-003"}},
	{Name: "update-checked-as-new", Sentence: "The record of an update is checked as if it were a new one.", Finds: []string{"RES-013"}},
	{Name: "deletes-by-reference-alone", Sentence: "Only deletes by the second identifier are implemented.", Finds: []string{"SEM-009"}, Setting: Setting{Objects: []string{"order"}}},
	{
		Name: "success-is-a-count", Sentence: "\"success\" is the number of rows that were written.",
		Finds: []string{"RES-005"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "update-creates", Sentence: "update writes a record that does not exist.",
		Finds: []string{"SEM-005"}, Never: []string{"RPC-*", "DAT-*", "DUR-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "upsert-keeps-existing", Cause: "is acknowledged and nothing is written", Sentence: "upsert leaves a record that exists as it is.",
		Finds: []string{"SEM-007"}, Never: []string{"RPC-*", "DUR-001", "SEM-006"},
	},
	{
		Name: "upsert-pushes", Sentence: "upsert always appends a row.",
		Finds: []string{"SEM-008", "DUP-002"}, Never: []string{"RPC-*", "DUR-001", "SEM-006"},
	},
	{
		Name: "looked-up-then-inserted", Race: true, Sentence: "A record is looked up first and inserted later, without a unique key, so that two batches in parallel both insert it.", Slip: true,
		Finds: []string{"PAR-003", "DUP-002"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "update-from-defaults", Sentence: "update starts from an object of defaults, so that fields which are not mapped become null.", Slip: true,
		Finds: []string{"RES-014"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "deleted-for-ever", Sentence: "delete sets a flag that nothing takes away, so that a record which comes back stays deleted.",
		Finds: []string{"SEM-012", "STA-004"}, Never: []string{"RPC-*", "DAT-*", "SEM-009", "SEM-006"},
	},
	{
		Name: "delete-falls-through", Sentence: "The switch over operations has no case for delete and ends in its default, which writes.",
		Finds: []string{"SEM-009", "OPS-006"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "key-hard-coded", Sentence: "The identifier is read as record.external_id, which only the first object has: every record of the others is refused.",
		Finds: []string{"OPS-004", "SEM-006", "OPS-007"}, Never: []string{"RPC-*", "DAT-*", "SEM-001"}, Setting: Setting{Objects: []string{"contact", "order"}},
	},
}

// What goes wrong with keys and values, in Node.
var nodeValues = []Mistake{
	{
		Name: "plain-json-parser", Sentence: "JSON.parse rounds integers beyond 2^53.",
		Finds: []string{"DAT-004"}, Never: []string{"RPC-*", "SEM-*", "DUR-001"},
		Setting: Setting{Objects: []string{"contact", "order"}},
	},
	{
		Name: "decimals-as-numbers", Sentence: "Decimals go through Number().",
		Finds: []string{"DAT-005"}, Never: []string{"RPC-*", "SEM-*", "DUR-001"},
	},
	{
		Name: "floats-parsed-as-integers", Sentence: "parseInt reads the fields of type float.",
		Finds: []string{"FLD-011", "DAT-006", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "dates-at-local-midnight", Sentence: "A date becomes a moment at local midnight and comes back a day earlier.",
		Finds: []string{"DAT-007"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "moments-in-local-time", Sentence: "Moments are taken apart in local time and written with a Z.",
		Finds: []string{"DAT-008"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "text-trimmed", Sentence: "Text is trimmed on its way in.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "html-escaped", Sentence: "Text is escaped for HTML when it is written.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "text-normalised", Sentence: "Text is brought into the Unicode form NFC.",
		Finds: []string{"DAT-001", "SEM-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "line-ends-converted", Sentence: "\\r\\n in text becomes \\n.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "arrays-joined", Sentence: "Arrays are stored as a text with commas.",
		Finds: []string{"DAT-010"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "falsy-values-dropped", Sentence: "value || null stores 0, false and the empty text as null.",
		Finds: []string{"DAT-009", "DAT-011", "FLD-011", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "nulls-ignored", Sentence: "Null is left out of what is written, so that a field never becomes empty again.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "column-forgotten", Sentence: "A field was added to list_fields and not to the writer.",
		Finds: []string{"FLD-011", "DUR-005", "DAT-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "keys-lower-cased", Sentence: "Keys are stored and answered in lower case.",
		Finds: []string{"RES-004", "SEM-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "keys-answered-as-text", Sentence: "Integer identifiers come back as texts.", Slip: true,
		Finds: []string{"RES-017"}, Never: []string{"RPC-*", "SEM-*", "DUR-*", "DAT-*"}, Setting: Setting{Objects: []string{"order"}},
	},
	{
		Name: "key-is-the-first-member", Slip: true, Sentence: "The identifier of a result is the first member of the record.",
		Finds: []string{"RES-016", "RES-004", "RES-002"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "keys-escaped-in-results", Sentence: "Keys are escaped for HTML in the results.",
		Finds: []string{"RES-004"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "floats-to-two-places", Sentence: "toFixed(2) rounds the fields of type float.",
		Finds: []string{"FLD-011", "DAT-006", "DUR-005", "DAT-015"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "null-made-a-number", Sentence: "Number(null) stores 0.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "null-made-a-boolean", Sentence: "Boolean(null) stores false.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "null-made-a-date", Sentence: "new Date(null) stores 1970-01-01.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "null-in-a-template", Sentence: "A template literal stores the text \"null\".",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "field-lower-cased", Sentence: "One field is stored in lower case.",
		Finds: []string{"DAT-011", "DUR-005", "FLD-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
}
