package zoo_test

// What goes wrong around the call, in Go.
var goCalls = []Mistake{
	{
		Name: "errors-as-plain-text", Sentence: "Errors go through http.Error: status 500 and plain text.",
		Finds: []string{"RPC-008", "RPC-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "nil-pointer", Sentence: "An unknown object is a nil pointer; the panic closes the connection without a reply.",
		Finds: []string{"HTTP-003", "HTTP-010", "RPC-012", "FLD-009"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*", "CON-*"},
	},
	{
		Name: "return-forgotten", Sentence: "After an error was written the handler goes on and writes a result, too.",
		Finds: []string{"RPC-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "id-is-an-int", Sentence: "The id of a request is decoded into an int, and is 0 when it is none.",
		Finds: []string{"RPC-003"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "zero-means-unlimited", Sentence: "maximum_records_per_second is 0, for no limit.",
		Finds: []string{"SPD-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "unknown-members-refused", Sentence: "DisallowUnknownFields refuses calls with a further member.", Slip: true,
		Finds: []string{"RPC-013"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "errors-without-id", Sentence: "Error replies always have \"id\":null.", Slip: true,
		Finds: []string{"RPC-003", "RPC-008"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "methods-by-fold", Sentence: "Names of methods are trimmed and compared without case.", Slip: true,
		Finds: []string{"RPC-019"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "token-in-messages", Sentence: "The message of a 401 prints the headers of the request.", Slip: true,
		Finds: []string{"AUTH-007"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
}

// What goes wrong with a batch, in Go.
var goBatches = []Mistake{
	{
		Name: "empty-fields-left-out", Sentence: "The tag omitempty leaves \"success\" out of every failure.",
		Finds: []string{"RES-005"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "nil-slice-for-no-results", Sentence: "An empty batch is answered by \"record_results\":null.", Slip: true,
		Finds: []string{"RES-011", "RES-001"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "shared-result-buffer", Race: true, Sentence: "The results of all batches go through one slice that is reused.",
		Finds: []string{"PAR-002", "PAR-005"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "written-after-the-request", Sentence: "A goroutine writes with the context of the request, which ends with the reply.",
		Finds: []string{"DUR-001", "SEM-001", "SEM-006", "DUR-002"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "first-error-ends-the-batch", Sentence: "The first record that does not fit makes the whole batch an error.", Slip: true,
		Finds: []string{"RES-018"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "DUR-*", "RES-013"},
	},
	{
		Name: "conflict-ends-the-batch", Sentence: "An insert of a record that exists makes the whole batch an error.",
		Finds: []string{"SEM-003"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "first-hundred-written", Cause: "the last ", Sentence: "The system behind takes a hundred records; the rest of a larger batch is acknowledged and dropped.",
		Finds: []string{"SPD-006", "DUR-001"}, Never: []string{"RPC-*", "DAT-*", "RES-002"},
	},
	{
		Name: "chunk-fails-together", Sentence: "Records are sent on in chunks of five, and all of a chunk get the error of one.",
		Finds: []string{"RES-008", "SEM-003", "DUP-003"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "database-is-locked", Race: true, Sentence: "Batches in parallel meet one lock of the database, and fail with \"database is locked\".",
		Finds: []string{"PAR-002", "PAR-005", "DUR-002"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "insert-adds-a-second", Sentence: "insert never looks whether the record exists.",
		Finds: []string{"SEM-003", "DUP-002", "SEM-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "upsert-is-insert", Sentence: "upsert is a plain INSERT, which a record that exists refuses.",
		Finds: []string{"SEM-007", "DUP-001", "OPS-007"}, Never: []string{"RPC-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "default-is-success", Sentence: "An operation that the switch does not know, delete among them, is acknowledged.",
		Finds: []string{"SEM-009"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-006"},
	},
	{
		Name: "result-of-the-first-identifier", Sentence: "Results carry the first identifier of the object, whichever is active.",
		Finds: []string{"FLD-012", "RES-004", "RES-002"}, Never: []string{"RPC-*", "DAT-*"}, Setting: Setting{Objects: []string{"invoice"}},
	},
}

// What goes wrong with keys and values, in Go.
var goValues = []Mistake{
	{
		Name: "numbers-as-float64", Sentence: "Numbers are decoded into any, which makes them float64.",
		Finds: []string{"DAT-004"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
		Setting: Setting{Objects: []string{"account", "invoice"}},
	},
	{
		Name: "keys-printed-with-sprint", Sentence: "Integer identifiers are answered as fmt.Sprint prints a float64: \"1e+12\".",
		Finds: []string{"RES-004", "RES-002"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"}, Setting: Setting{Objects: []string{"invoice"}},
	},
	{
		Name: "zero-values-for-null", Sentence: "Null is decoded into a struct without pointers and stored as \"\", 0 and false.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "struct-with-every-field", Sentence: "Every update writes a struct with all fields, so that those that are not mapped become null.", Slip: true,
		Finds: []string{"RES-014"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "arrays-appended", Sentence: "An array is appended to the one that is stored.",
		Finds: []string{"DAT-010", "SEM-007", "SEM-004", "FLD-011", "FLD-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "empty-array-is-null", Sentence: "An empty array is a nil slice and comes back as null.",
		Finds: []string{"DAT-010"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "alike-is-unchanged", Sentence: "A change is left out where old and new differ in case and spaces only.",
		Finds: []string{"FLD-014"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "integers-of-32-bits", Sentence: "Integers are cut to 32 bits without a word.",
		Finds: []string{"DAT-004"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "floats-of-32-bits", Sentence: "Floats are kept in 32 bits.",
		Finds: []string{"FLD-011", "DUR-005", "DAT-006", "DAT-015"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "dates-as-moments", Sentence: "A date becomes a moment and comes back as 2024-02-29T00:00:00Z.",
		Finds: []string{"DAT-007"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "cut-in-a-character", Sentence: "Text is cut at 255 bytes, in the middle of a character.",
		Finds: []string{"DAT-011", "DUR-005", "DAT-001"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "unprintable-dropped", Sentence: "Characters that unicode.IsPrint does not know, line ends and joiners among them, are dropped.",
		Finds: []string{"DAT-001", "DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "typed-like-a-spreadsheet", Sentence: "Text goes into the cells of a spreadsheet, which reads numbers and formulas.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "keys-compared-by-fold", Sentence: "Keys are compared without case, also when records are deleted.",
		Finds: []string{"SEM-014", "SEM-010", "SEM-017"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "keys-unescaped-in-urls", Sentence: "The key goes into a URL of the system behind without being escaped, so that what follows a question mark is lost.", Slip: true,
		Finds: []string{"SEM-014", "RES-004", "SEM-010"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "empty-text-is-null", Sentence: "The database takes the empty text for null.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "cut-at-nul", Sentence: "Text is cut at the character U+0000.", Slip: true,
		Finds: []string{"DAT-002"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
}
