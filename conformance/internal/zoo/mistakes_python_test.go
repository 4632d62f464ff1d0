package zoo_test

// What goes wrong in the planning calls and around the call, in Python.
var pythonPlanning = []Mistake{
	{
		Name: "ok-for-success", Sentence: "test_connection answers {\"ok\":true}.",
		Finds: []string{"CON-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "identifer-as-in-the-prose", Sentence: "list_fields spells \"identifer\", as a sentence of the published text does.",
		Finds: []string{"FLD-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "field-listed-twice", Sentence: "An object that is not judged lists a custom field with the name of a standard field.",
		Finds: []string{"FLD-002"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "types-of-the-database", Sentence: "The types of list_fields are those of the database, varchar and timestamp.",
		Finds: []string{"FLD-003"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "fields-of-the-first-row", Sentence: "The fields are read from the first row, so that an empty table has none.",
		Finds: []string{"FLD-010", "FLD-004"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "object-by-its-label", Sentence: "list_fields and supported_operations look the object up by its label.",
		Finds: []string{"FLD-015"}, Never: []string{"OBJ-*", "SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "fields-in-an-lru-cache", Sentence: "functools.lru_cache keeps the fields for the life of the process.",
		Finds: []string{"STA-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"}, Setting: Setting{AlterSchema: true},
	},
	{
		Name: "operations-as-a-text", Sentence: "The operations are one text with commas.",
		Finds: []string{"OPS-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "append-offered", Sentence: "append is offered, as other destinations have it.",
		Finds: []string{"OPS-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "average-of-nothing", Sentence: "get_sync_speed carries an average without values, which json.dumps writes as NaN.",
		Finds: []string{"RPC-001"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "speed-wants-a-plan", Sentence: "get_sync_speed reads sync_plan from its params, as the protocol of 2021 had it.",
		Finds: []string{"SPD-002"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "token-by-its-beginning", Sentence: "The token is compared with startswith, the wrong way round.", Slip: true,
		Finds: []string{"AUTH-003"}, Never: []string{"AUTH-001", "SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "traceback-in-messages", Sentence: "The message of an error is the traceback.", Slip: true,
		Finds: []string{"ERR-003"}, Never: []string{"SEM-*", "DUR-*", "DAT-*"},
	},
	{
		Name: "latin-1-replies", Sentence: "Replies are written in Latin-1.",
		Finds: []string{"RPC-001", "RPC-003"}, Never: []string{"SEM-*", "DUR-*"},
	},
	{
		Name: "object-without-operations", Sentence: "An object that is only read from lists no operation.",
		Finds: []string{"OPS-002"}, Never: []string{"SEM-*", "DUR-*", "DAT-*", "RES-*"},
	},
	{
		Name: "redirected-to-the-slash", Sentence: "The framework redirects to the same path with a slash at its end.", Slip: true,
		Finds: []string{"HTTP-004", "HTTP-001"}, Never: []string{"ERR-*", "SEM-*", "DUR-*", "DAT-*"},
	},
}

// What goes wrong with a batch, in Python.
var pythonBatches = []Mistake{
	{
		Name: "mirror-without-delete", Sentence: "mirror is offered, and a batch with the operation delete is an unknown operation.",
		Finds: []string{"OPS-006", "SEM-009"}, Never: []string{"RPC-*", "DAT-*", "DUR-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "delete-wants-whole-records", Sentence: "A delete is validated like a write, so that a record with its identifier alone is refused for its other required fields.",
		Finds: []string{"OPS-006", "SEM-009", "SEM-011", "OPS-007"}, Never: []string{"RPC-*", "DAT-*", "DUR-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "mutable-default", Sentence: "The list of results is a default argument, so that each reply has the results of all batches before.",
		Finds: []string{"RES-003", "RES-002"}, Never: []string{"RPC-*", "DUR-*"},
	},
	{
		Name: "records-from-a-generator", Sentence: "The records are a generator that the validation has used up before they are written.",
		Finds: []string{"RES-002", "OPS-004"}, Never: []string{"RPC-*", "DAT-*"},
	},
	{
		Name: "results-by-key", Sentence: "record_results is a dict by identifier.",
		Finds: []string{"RES-001"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "results-misnamed", Sentence: "The results are under \"results\".",
		Finds: []string{"RES-001"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "identifier-misnamed", Sentence: "Each result carries its key as \"id\".",
		Finds: []string{"RES-004", "RES-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "success-as-text", Sentence: "\"success\" is the text \"true\".",
		Finds: []string{"RES-005"}, Never: []string{"RPC-*", "DAT-*", "SEM-*", "DUR-*"},
	},
	{
		Name: "one-status-for-all", Sentence: "Every record gets the status of the batch, which is good when any row was written.",
		Finds: []string{"RES-008", "RES-009", "RES-019", "SEM-003"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "errors-passed-over", Sentence: "The write of a record is in a try with except: pass, and success is answered.",
		Finds: []string{"RES-009", "RES-019"}, Never: []string{"RPC-*", "RES-002"},
	},
	{
		Name: "exceptions-are-pages", Sentence: "One record that does not fit raises, and the whole batch is answered by an HTML page 500.",
		Finds: []string{"RPC-001", "RES-018", "HTTP-010"}, Never: []string{"SEM-001", "SEM-006", "DUR-*"},
	},
	{
		Name: "rolled-back-and-acknowledged", Sentence: "One record that fails rolls the batch back, and the others keep the success that they were given before.",
		Finds: []string{"RES-008", "DUR-001", "SEM-003", "RES-009"}, Never: []string{"RPC-*", "DAT-*", "SEM-006"},
	},
	{
		Name: "update-not-committed", Cause: "is acknowledged and nothing is written", Sentence: "The branch of update forgets to commit.",
		Finds: []string{"SEM-004"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "committed-in-a-thread", Sentence: "A thread writes the batch after it was acknowledged.",
		Finds: []string{"DUR-001", "SEM-006", "SEM-001", "DUR-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-002"},
	},
	{
		Name: "unchanged-rows-skipped", Cause: "what is remembered of an earlier batch", Sentence: "A row whose hash is the one of its last write is skipped, also when it was deleted in between.",
		Finds: []string{"STA-004"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-001", "SEM-006"},
	},
	{
		Name: "key-not-demanded", Sentence: "A record without its identifier is stored under no key and acknowledged.", Slip: true,
		Finds: []string{"RES-019"}, Never: []string{"RPC-*", "DAT-*", "DUR-*"},
	},
	{
		Name: "everything-refused", Sentence: "The key of the system behind may not write, and every record is refused.",
		Finds: []string{"OPS-004", "SEM-001", "SEM-006", "OPS-007"}, Never: []string{"RPC-*", "DAT-*", "RES-008"},
	},
	{
		Name: "inserts-refused", Sentence: "insert is offered, and each of its records is refused.",
		Finds: []string{"OPS-004", "SEM-001", "OPS-007"}, Never: []string{"RPC-*", "DAT-*", "SEM-006", "SEM-004"},
	},
	{
		Name: "deletes-refused", Sentence: "mirror is offered, and each record of a delete is refused.",
		Finds: []string{"OPS-006", "SEM-009", "OPS-007"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "emptied-with-each-run", Sentence: "A new sync run empties the table, as if each run were a full load.",
		Finds: []string{"SEM-017", "STA-002", "STA-006"}, Never: []string{"RPC-*", "DAT-*"},
	},
}

// What goes wrong in statements, in Python.
var pythonSQL = []Mistake{
	{
		Name: "sql-by-f-string", Sentence: "Values are put into the text of the INSERT, so that a quote breaks the batch.",
		Finds: []string{"DAT-011", "RES-018", "RES-020"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "insert-overwrites", Sentence: "insert writes over a record that exists and reports that it was skipped.",
		Finds: []string{"SEM-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-003"},
	},
	{
		Name: "insert-or-ignore", Cause: "is acknowledged and nothing is written", Sentence: "upsert is INSERT OR IGNORE: a record that exists stays as it was.",
		Finds: []string{"SEM-007"}, Never: []string{"RPC-*", "DUR-001", "SEM-006"},
	},
	{
		Name: "insert-or-replace", Sentence: "upsert is INSERT OR REPLACE: fields that are not mapped become null.", Slip: true,
		Finds: []string{"RES-014"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-006", "SEM-007"},
	},
	{
		Name: "update-without-where", Sentence: "The WHERE of the UPDATE compares a column with itself, so that every row gets the values.",
		Finds: []string{"SEM-004", "SEM-007", "PAR-002", "DUR-001", "SEM-017"}, Never: []string{"RPC-*", "SEM-001", "SEM-006"},
	},
	{
		Name: "delete-without-where", Sentence: "The WHERE of the DELETE compares a column with itself, so that the table is empty afterwards.",
		Finds: []string{"SEM-010"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "SEM-009"},
	},
	{
		Name: "delete-by-prefix", Sentence: "DELETE looks for keys with LIKE 'key%'.",
		Finds: []string{"SEM-010"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "SEM-009"},
	},
	{
		Name: "key-looked-up-by-like", Sentence: "Keys are looked up with LIKE, which ignores case and takes _ for any character.",
		Finds: []string{"SEM-010", "SEM-014", "SEM-017"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "SEM-009"},
	},
	{
		Name: "delete-not-done", Sentence: "delete is acknowledged and does nothing.",
		Finds: []string{"SEM-009"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-006"},
	},
	{
		Name: "key-ignores-case", Sentence: "The column of the key has COLLATE NOCASE: keys that differ in case are one record.", Slip: true,
		Finds: []string{"SEM-014"}, Never: []string{"RPC-*", "DAT-*", "DUR-001", "SEM-006"},
	},
	{
		Name: "one-table-for-all", Sentence: "All objects are written into one table.",
		Finds: []string{"SEM-016", "OPS-004"}, Never: []string{"RPC-*"},
		Setting: Setting{Objects: []string{"person", "visit"}},
	},
	{
		Name: "first-identifier-always", Sentence: "Rows are looked up by the first identifier of the object, whichever is active.",
		Finds: []string{"SEM-013", "FLD-012"}, Never: []string{"RPC-*", "DAT-*"}, Setting: Setting{Objects: []string{"device"}},
	},
	{
		Name: "empty-set-clause", Sentence: "An update that maps only the identifier makes UPDATE … SET WHERE, a syntax error.",
		Finds: []string{"RES-013"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006"}, Setting: Setting{Objects: []string{"visit"}},
	},
	{
		Name: "values-by-position", Sentence: "The values of a record go into the columns in the order of the table.", Slip: true,
		Finds: []string{"RES-016", "DUR-005", "DUR-006", "FLD-011"}, Never: []string{"RPC-*"},
	},
	{
		Name: "insert-fills-blanks", Sentence: "insert of a record that exists fills the fields that are empty.",
		Finds: []string{"SEM-002"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-003"},
	},
	{
		Name: "keys-in-a-cache", Sentence: "The keys that inserts have seen are in a set, which a delete does not empty.",
		Finds: []string{"SEM-019"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-003", "SEM-009", "SEM-012"},
	},
	{
		Name: "update-forgets-a-column", Cause: "leaves these fields out", Sentence: "One column is in the INSERT and was forgotten in the UPDATE.",
		Finds: []string{"SEM-004", "SEM-007", "FLD-011", "FLD-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "batches-without-doubles", Sentence: "Of the records of a batch whose keys are equal in lower case only the first is written.",
		Finds: []string{"DUR-001"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "RES-*"},
	},
	{
		Name: "delete-in-every-object", Sentence: "delete removes the key from the tables of all objects.",
		Finds: []string{"SEM-018"}, Never: []string{"RPC-*", "DAT-*", "SEM-001", "SEM-006", "SEM-009"}, Setting: Setting{Objects: []string{"person", "visit"}},
	},
}

// What goes wrong with keys and values, in Python.
var pythonValues = []Mistake{
	{
		Name: "string-columns", Sentence: "Columns are declared as STRING, which SQLite takes for a number: 00042 becomes 42.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "numeric-columns", Sentence: "Decimals are in columns NUMERIC(18, 4), which SQLite keeps as floating point.",
		Finds: []string{"DAT-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "rounded-to-cents", Sentence: "Decimals are rounded to two places.",
		Finds: []string{"DAT-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "everything-is-text", Sentence: "str(value) stores None as \"None\" and True as \"True\".",
		Finds: []string{"DAT-003", "DAT-009", "DAT-010"}, Never: []string{"RPC-*"},
	},
	{
		Name: "nulls-coalesced", Sentence: "UPDATE … SET x = COALESCE(?, x) never empties a field.",
		Finds: []string{"DAT-003"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "tags-as-a-set", Sentence: "Arrays go through a set: order and repetitions are lost.",
		Finds: []string{"DAT-010"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "int-of-float", Sentence: "Integers go through float.",
		Finds: []string{"DAT-004"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "naive-timestamps", Sentence: "The Z of a moment is cut off and the rest is taken for local time.",
		Finds: []string{"DAT-008"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "latin-1-columns", Sentence: "Text is stored in Latin-1; other characters become question marks.",
		Finds: []string{"DAT-001"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "three-byte-text", Sentence: "Text is stored in a character set of three bytes; emoji become question marks.",
		Finds: []string{"DAT-001"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "cut-at-255", Sentence: "Text is cut at 255 characters.",
		Finds: []string{"DAT-011", "DUR-005"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "quotes-removed", Sentence: "Quotes and semicolons are removed from text, against injection.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "spaces-collapsed", Sentence: "\" \".join(value.split()) makes one space of many, and of line ends.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "control-characters-removed", Sentence: "Control characters are removed from text, tabs and line ends among them.",
		Finds: []string{"DAT-011", "DAT-002"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "keys-stripped", Sentence: "Keys are stripped when they are stored and answered.",
		Finds: []string{"RES-004", "SEM-014"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "keys-through-a-data-frame", Sentence: "Integer identifiers come back as floats, 42.0, as a data frame with an empty cell makes them.",
		Finds: []string{"RES-004", "RES-017"}, Never: []string{"RPC-*", "SEM-*", "DUR-*"}, Setting: Setting{Objects: []string{"device"}},
	},
	{
		Name: "form-encoded", Sentence: "Text goes through a form that is decoded once too often: a plus becomes a space.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "backslashes-lost", Sentence: "Backslashes are taken for escapes and removed.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "missing-values-of-pandas", Sentence: "The texts NA, NULL, None and the empty text are read as missing values.",
		Finds: []string{"DAT-011"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "moments-to-the-minute", Sentence: "The seconds of a moment are cut off.",
		Finds: []string{"DAT-008"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
	{
		Name: "other-scripts-refused", Sentence: "Every text with another character than ASCII is refused.", Slip: true,
		Finds: []string{"DAT-001", "DAT-014", "RES-020"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001", "DAT-011"},
	},
	{
		Name: "every-null-refused", Sentence: "Every null is refused, also in fields that are not required.", Slip: true,
		Finds: []string{"DAT-003", "DAT-014", "RES-020"}, Never: []string{"RPC-*", "SEM-001", "SEM-006", "DUR-001"},
	},
}
