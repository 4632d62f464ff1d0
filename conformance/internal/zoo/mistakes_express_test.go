package zoo_test

// What goes wrong after a tutorial of a web framework, on SQLite.
var expressAll = []Mistake{
	{
		Name: "body-limit-at-full-size", Sentence: "The body parser takes 100 KB, and a batch of the declared size with all fields is larger: a page 413.",
		Finds: []string{"SPD-006"}, Never: []string{"SEM-*", "DUR-*", "DAT-001", "DAT-011"},
	},
	{
		Name: "transactions-interleave", Sentence: "All requests share one connection, and a batch begins its transaction within that of another.",
		Finds: []string{"PAR-002", "PAR-005", "DUR-002", "PAR-003", "ERR-002"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "page-502-for-unknown-methods", Sentence: "An unknown method throws where nothing catches it, and the platform answers its page 502.",
		Finds: []string{"RPC-008", "RPC-001"}, Never: []string{"RPC-002", "SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "delete-not-awaited", Sentence: "The promise of a delete is not awaited.",
		Finds: []string{"SEM-009", "DUR-002", "SEM-012", "SEM-019"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "error-object-for-message", Slip: true, Sentence: "error_message is the error itself, which JSON.stringify makes {}.",
		Finds: []string{"RES-006"}, Never: []string{"RPC-*", "SEM-*", "DUR-*", "DAT-*"},
	},
}
