package zoo_test

// What goes wrong with connections, transactions and statements, on PostgreSQL.
var postgresBatches = []Mistake{
	{
		Name: "connection-not-returned", Sentence: "A batch with a record that does not fit returns before its connection does, and the pool runs out.",
		Finds: []string{"ERR-002", "ERR-006", "RES-008", "OPS-004", "OPS-007", "SEM-001", "SEM-006", "ERR-001", "PAR-002", "RES-012", "FLD-011"}, Never: []string{"RPC-*", "STA-*"},
	},
	{
		Name: "aborted-transaction", Sentence: "There is no savepoint: the first error of a batch aborts its transaction, the records behind it fail, and those before it are rolled back after their success.",
		Finds: []string{"RES-008", "DUR-001", "SEM-003", "RES-009"}, Never: []string{"RPC-*", "STA-*"},
	},
	{
		Name: "circuit-breaker", Sentence: "Three failures in a row open a circuit breaker, which refuses every record for half a second.",
		Finds: []string{"ERR-002", "RES-008", "OPS-007", "SEM-001", "SEM-006", "DAT-014", "PAR-002", "PAR-005"}, Never: []string{"RPC-*", "STA-003", "STA-004"},
	},
	{
		Name: "null-in-the-bulk-path", Sentence: "More than fifty records go through COPY with FORCE_NOT_NULL, which makes null an empty text.",
		Finds: []string{"SPD-006", "DAT-003", "DUR-001", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "rounded-in-the-bulk-path", Sentence: "More than fifty records are written with six digits of each floating point number.",
		Finds: []string{"SPD-006"}, Never: []string{"RPC-*", "SEM-*", "DAT-*"},
	},
	{
		Name: "one-statement-for-all", Slip: true, Sentence: "upsert is one statement for the batch, which cannot affect a row a second time: a key that is there twice fails the batch.",
		Finds: []string{"RES-015"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "results-from-returning", Sentence: "INSERT … ON CONFLICT DO NOTHING RETURNING: as many results as there are new rows are good, from the first one on.",
		Finds: []string{"RES-010", "SEM-003", "RES-008", "SEM-002", "DUP-003", "RES-015"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "delete-without-commit", Race: true, Sentence: "delete returns its connection in the middle of a transaction, which the next batch on that connection commits.",
		Finds: []string{"SEM-009", "DUR-002", "SEM-012", "SEM-019"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "changed-at-by-trigger", Slip: true, Sentence: "A trigger sets changed_at, which is declared as a field, whenever an update does not.",
		Finds: []string{"RES-014"}, Never: []string{"RPC-*", "SEM-*", "DUR-001", "STA-*"},
	},
	{
		Name: "nulls-stripped", Sentence: "UPDATE … SET x = coalesce($1, x): null changes nothing.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
}

// What goes wrong with values, on PostgreSQL.
var postgresValues = []Mistake{
	{
		Name: "varchar-120", Sentence: "A cast to varchar(120) cuts the text without an error.",
		Finds: []string{"DAT-011", "DUR-005", "DAT-001"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "char-column", Sentence: "The column is char(5000), which loses the spaces at the end.",
		Finds: []string{"DAT-011", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "timestamp-without-zone", Sentence: "The column is timestamp without time zone: the Z is ignored, and the zone of the session is assumed when it is read.",
		Finds: []string{"DAT-008"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "dates-a-day-early", Sentence: "A date is taken for midnight in UTC and stored in the zone of the office, a day earlier.",
		Finds: []string{"DAT-007"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "numeric-of-two-places", Sentence: "Decimals are in numeric(40, 2), which rounds to two places.",
		Finds: []string{"DAT-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "real-column", Sentence: "The column of a float is real, which has six digits.",
		Finds: []string{"DAT-015", "FLD-011", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "array-literal-by-hand", Sentence: "A list is written as a literal by hand: an item with a comma becomes two, one with a quote is refused.",
		Finds: []string{"DAT-010"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "escape-strings", Sentence: "Text is put into E'…' by hand, where a backslash begins an escape.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
}
