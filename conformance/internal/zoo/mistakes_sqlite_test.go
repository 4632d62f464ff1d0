package zoo_test

// What goes wrong around the call and with whole batches, on SQLite.
var sqliteBatches = []Mistake{
	{
		Name: "dies-in-delete-batch", Sentence: "A delete batch of more than 30 records takes more memory than the container has, and ends the process.",
		Finds: []string{"ERR-006", "OPS-006", "SEM-009", "SPD-006"}, Never: []string{"DAT-*", "RPC-*"}, Setting: Setting{Own: true},
	},
	{
		Name: "999-variables", Sentence: "upsert is one statement for the batch, which has more than the 999 variables that the library takes.",
		Finds: []string{"SPD-006", "DUR-005", "TIM-002"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001"},
	},
	{
		Name: "first-record-alone", Sentence: "A batch of one record has a fast path that writes new records only, and acknowledges all.",
		Finds: []string{"RES-012", "SEM-007", "DUP-003", "STA-006", "DUR-*"}, Never: []string{"RPC-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "status-422-with-results", Sentence: "A batch with a record that failed is answered by results with the status 422.",
		Finds: []string{"HTTP-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "batch-number-for-id", Sentence: "The id of a reply to sync_batch is the number of the batch in the author's log.",
		Finds: []string{"RPC-003"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "results-doubled-when-full", Sentence: "A part of the batch that reaches the declared size is written and not emptied, and written and reported again at the end.",
		Finds: []string{"RES-002", "RES-003", "SPD-006"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "a-database-per-worker", Sentence: "Two workers of the web server have a database in memory each.",
		Finds: []string{"DUR-001", "DUR-002", "SEM-001", "SEM-006", "STA-002", "STA-005", "STA-007"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "removed-while-iterating", Sentence: "Records are removed from the list that the loop goes through, which skips every second one and refuses it.",
		Finds: []string{"RES-008", "OPS-007", "DUP-003"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "results-without-identifier", Sentence: "Results carry success alone, in the order of the records.",
		Finds: []string{"RES-004", "RES-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "refused-records-tried-again", Sentence: "A record that was refused is kept and written with the next batch, without the value that was wrong.",
		Finds: []string{"RES-009", "ERR-002", "DUR-*", "SEM-002", "SEM-017"}, Never: []string{"RPC-*"},
	},
	{
		Name: "identifiers-alone", Sentence: "An upsert that maps its identifier alone makes an empty SET clause, and ends in the page 502 of the platform.",
		Finds: []string{"RES-013"}, Never: []string{"DAT-*", "SEM-001", "SPD-006"}, Setting: Setting{Objects: []string{"subscriptions"}},
	},
	{
		Name: "method-missing", Sentence: "get_sync_speed was never written: it is an unknown method.",
		Finds: []string{"SPD-001", "SPD-002"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "url-in-errors", Slip: true, Sentence: "The message of an error ends with the URL, which carries the secret.",
		Finds: []string{"AUTH-007"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"}, Setting: Setting{Code: "c0de-In-The-URL"},
	},
	{
		Name: "one-503-in-sixty", Slip: true, Sentence: "The platform answers one request in sixty with its page 503.",
		Finds: []string{"ERR-007"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*", "PAR-*", "RPC-*", "HTTP-*"},
	},
}

// What goes wrong in the tables, on SQLite.
var sqliteRows = []Mistake{
	{
		Name: "reserved-word-unquoted", Sentence: "The column group is not quoted, so that each statement with it is a syntax error.",
		Finds: []string{"FLD-011", "FLD-014", "DAT-014", "OPS-007", "SPD-006"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "equal-rows-not-found", Sentence: "The driver counts changed rows, so that an update with equal values is \"record not found\".",
		Finds: []string{"DUP-001", "STA-006", "SEM-004", "OPS-007"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "lists-keep-their-tail", Sentence: "The items of a list are written over by position, and a shorter list keeps the rest of the longer one.",
		Finds: []string{"DAT-016", "DAT-010", "SEM-004", "SEM-007", "FLD-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "empty-lists-ignored", Sentence: "if items: an empty list changes nothing.",
		Finds: []string{"DAT-010", "DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "tags-survive-a-delete", Sentence: "delete leaves the rows of the second table, and a record that is created again has its old tags.",
		Finds: []string{"SEM-012", "SEM-019", "STA-004", "RES-013"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "row-ids-used-again", Sentence: "The second table has the row id of its owner, a delete leaves its rows, and SQLite gives the id to a later record.",
		Finds: []string{"SEM-012"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "row-cache-kept", Sentence: "The last values of each row are kept in memory and merged into the next upsert, also after a delete.",
		Finds: []string{"SEM-012", "SEM-019", "STA-004", "RES-013"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "update-sees-deleted-rows", Sentence: "delete sets a date, and the look-up of update does not ask for it: an update of a deleted record is acknowledged.",
		Finds: []string{"SEM-005", "SEM-009", "SEM-004", "DUR-008"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "matched-by-either-key", Sentence: "A row is looked up by serial OR asset_tag, so that a record which disagrees writes into the row of another.",
		Finds: []string{"SEM-013", "FLD-012"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"}, Setting: Setting{Objects: []string{"devices"}},
	},
	{
		Name: "conflicts-ignored", Sentence: "New rows are written with INSERT OR IGNORE: one whose other identifier is taken is acknowledged and dropped.",
		Finds: []string{"SEM-013"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"}, Setting: Setting{Objects: []string{"devices"}},
	},
	{
		Name: "rows-replaced", Sentence: "New rows are written with INSERT OR REPLACE, which removes the row that has the other identifier.",
		Finds: []string{"SEM-013"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"}, Setting: Setting{Objects: []string{"devices"}},
	},
	{
		Name: "identifiers-never-change", Sentence: "UPDATE leaves out every identifier, and not the active one alone.",
		Finds: []string{"SEM-013", "FLD-014"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"}, Setting: Setting{Objects: []string{"devices"}},
	},
	{
		Name: "one-mailbox-one-key", Slip: true, Sentence: "What stands between a plus sign and the @ is taken out of keys.",
		Finds: []string{"SEM-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "dollars-are-patterns", Sentence: "The text is the replacement of a search, in which $$ stands for one $.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "conflict-on-serial", Sentence: "upsert is INSERT … ON CONFLICT (serial), whichever identifier is active.",
		Finds: []string{"SEM-013", "FLD-012", "SEM-007"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-001"}, Setting: Setting{Objects: []string{"devices"}},
	},
	{
		Name: "key-closes-the-statement", Sentence: "The key is put into the text of the DELETE: with a quote in it the statement is refused, and the record stays.",
		Finds: []string{"SEM-009", "SEM-010", "SEM-014", "RES-020", "DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "keys-folded", Sentence: "Keys are stored in lower case and answered as they were sent; the read-back looks for them as they were sent.",
		Finds: []string{"SEM-014", "RES-004", "DUR-005", "SEM-001", "SEM-006"}, Never: []string{"RPC-*", "DAT-*", "SPD-006", "STA-002"},
	},
	{
		Name: "keys-folded-everywhere", Slip: true, Sentence: "Keys are stored in lower case and answered as they were sent; the read-back looks for them in lower case.",
		Finds: []string{"SEM-014", "RES-004", "DUR-005"}, Never: []string{"RPC-*", "DAT-*", "SPD-006", "STA-002"},
	},
	{
		Name: "key-column-is-integer", Slip: true, Sentence: "The column of the key is INTEGER, so that 007 is stored as 7.",
		Finds: []string{"SEM-014", "RES-004", "DUR-005"}, Never: []string{"RPC-*", "DAT-*", "SPD-006", "SEM-001", "SEM-006"},
	},
	{
		Name: "keys-cut-at-64", Slip: true, Sentence: "Keys are cut to 64 characters and answered as they were sent.",
		Finds: []string{"SEM-014", "RES-004", "DUR-005"}, Never: []string{"RPC-*", "DAT-*", "SPD-006", "SEM-001", "SEM-006"},
	},
	{
		Name: "no-unique-index", Sentence: "The table has no unique index, and insert adds a copy of a record that exists.",
		Finds: []string{"SEM-003", "DUP-002", "SEM-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "values-in-sql-text", Sentence: "The UPDATE is built from text, so that a value with a quote is refused as a syntax error.",
		Finds: []string{"DAT-011", "DAT-014", "RES-020", "FLD-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
}

// What goes wrong with values, on SQLite.
var sqliteValues = []Mistake{
	{
		Name: "points-only-grow", Sentence: "An update writes the larger one of the old and the new number.",
		Finds: []string{"FLD-014", "SEM-004", "SEM-007", "DAT-004"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "moments-only-forward", Sentence: "An update whose moment is earlier than the stored one is acknowledged and dropped.",
		Finds: []string{"FLD-014", "SEM-004", "SEM-007", "DAT-008"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "false-values-kept", Sentence: "An update skips what is false in Python: 0, False, the empty text, null and the empty list.",
		Finds: []string{"DAT-003", "DAT-009", "DAT-010", "DAT-011", "FLD-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "city-and-notes-swapped", Sentence: "The UPDATE writes city into notes and notes into city.",
		Finds: []string{"SEM-004", "SEM-007", "FLD-014", "FLD-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "points-clamped", Sentence: "Points are clamped to 0 and 1,000,000 without a word.",
		Finds: []string{"DAT-004", "FLD-011", "FLD-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "points-are-text", Sentence: "The column of an integer is TEXT, and comes back as a text.",
		Finds: []string{"FLD-011", "DAT-004"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "notes-cut-at-120", Sentence: "Notes are cut to 120 characters.",
		Finds: []string{"DAT-011", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "entities-decoded", Sentence: "Entities of HTML in the notes are decoded.",
		Finds: []string{"DAT-011", "DAT-013"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "placeholders-rendered", Sentence: "{{name}} in the notes is replaced by the field of that name.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "plus-addresses-cut", Sentence: "What follows a plus in an e-mail address is removed.",
		Finds: []string{"DAT-011", "DAT-015", "FLD-011", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "moments-in-local-time", Sentence: "Moments are stored in local time, which has one hour twice when summer time ends.",
		Finds: []string{"DAT-008"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "seconds-of-32-bits", Sentence: "Moments are kept as seconds in 32 bits, which end in 2038.",
		Finds: []string{"DAT-008"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
}
