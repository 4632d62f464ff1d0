package causes

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// TestMessages: what databases, pools, drivers, frameworks and runtimes print leads to one
// cause each, and what only looks alike to none.
func TestMessages(t *testing.T) {
	names := []string{"contacts", "email", "order", "firstName"}
	for cause, messages := range map[string][]Message{
		"statement from text": {
			{Text: `near "so": syntax error`}, {Text: `unrecognized token: "'"`},
			{Text: `ERROR: syntax error at or near "so" at character 61`}, {Text: `unterminated quoted string at or near "'x"`},
			{Text: `You have an error in your SQL syntax; check the manual for the right syntax to use near 'so' & <b>' at line 1`},
			{Text: `Incorrect syntax near 'so'.`}, {Text: `Unclosed quotation mark after the character string 'x'.`},
			{Text: `ORA-00933: SQL command not properly ended`}, {Text: `ORA-01756: quoted string not properly terminated`}, {Text: "no such column: caf"},
		},
		"unquoted name": {
			{Text: `near "order": syntax error`}, {Text: `syntax error at or near "order"`}, {Text: `column "firstname" of relation "contacts" does not exist`},
			{Text: `You have an error in your SQL syntax; check the manual for the right syntax to use near 'order, city) VALUES (?, ?)' at line 1`},
			{Text: `Incorrect syntax near the keyword 'order'.`},
		},
		"missing column":            {{Text: "table contacts has no column named order"}, {Text: "Unknown column 'email' in 'field list'"}, {Text: `column "order" does not exist`}, {Text: "no such column: firstName"}},
		"empty part of a statement": {{Text: `near "WHERE": syntax error`}, {Text: `syntax error at or near ")"`}},
		"parameters of a statement": {
			{Text: "too many SQL variables"}, {Text: "bind message has 34464 parameter formats but 0 parameters"}, {Text: "Prepared statement contains too many placeholders"},
			{Text: "The incoming request has too many parameters. The server supports a maximum of 2100 parameters."}, {Text: "the number of query parameters cannot exceed 65535"},
		},
		"body limit": {
			{Text: "<html>Request Entity Too Large</html>", Status: 413}, {Text: "request entity too large"}, {Text: "PayloadTooLargeError", Code: "-32700"},
			{Text: "http: request body too large", Code: "-32603"}, {Text: "client intended to send too large body: 1048577 bytes"},
		},
		"missing method": {
			{Text: "Method not found", Code: "-32601", Method: "get_sync_speed"}, {Text: "Unknown method: get_sync_speed", Code: "-32000", Method: "get_sync_speed"},
			{Text: "NotImplementedError", Code: "-32603", Method: "test_connection"}, {Text: "method get_sync_speed is not supported", Code: "1", Method: "get_sync_speed"},
		},
		"pool exhausted": {
			{Text: "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00"}, {Text: "FATAL: sorry, too many clients already"},
			{Text: "Knex: Timeout acquiring a connection. The pool is probably full."}, {Text: "pool: timed out waiting for a free connection, all of them are in use"}, {Text: "connection pool exhausted"}, {Text: "Too many connections"},
			{Text: "HikariPool-1 - Connection is not available, request timed out after 30000ms."}, {Text: "couldn't get a connection after 30.00 sec"},
			{Text: "timeout exceeded when trying to connect"}, {Text: "FATAL: remaining connection slots are reserved for superusers"},
		},
		"aborted transaction":  {{Text: "ERROR: current transaction is aborted, commands ignored until end of transaction block"}, {Text: "Can't reconnect until invalid transaction is rolled back."}},
		"lock":                 {{Text: "database is locked"}, {Text: "SQLITE_BUSY: database is locked"}, {Text: "Deadlock found when trying to get lock; try restarting transaction"}, {Text: "could not serialize access due to concurrent update"}},
		"open circuit breaker": {{Text: "CircuitBreaker 'db' is OPEN and does not permit further calls"}, {Text: "Breaker is open"}, {Text: "circuit breaker is open"}},
		"shared connection":    {{Text: "SQLite objects created in a thread can only be used in that same thread."}, {Text: "another operation is in progress"}, {Text: "Commands out of sync; you can't run this command now"}},
		"unique constraint":    {{Text: "UNIQUE constraint failed: contacts.email"}, {Text: `duplicate key value violates unique constraint "contacts_pkey"`}, {Text: "Duplicate entry 'a' for key 'PRIMARY'"}},
		"no unique index":      {{Text: "there is no unique or exclusion constraint matching the ON CONFLICT specification"}, {Text: "ON CONFLICT clause does not match any PRIMARY KEY or UNIQUE constraint"}},
		"narrow column":        {{Text: "value too long for type character varying(40)"}, {Text: "integer out of range"}, {Text: "Out of range value for column 'age' at row 1"}, {Text: "Python int too large to convert to SQLite INTEGER"}},
		"column without null":  {{Text: `null value in column "name" violates not-null constraint`}, {Text: "NOT NULL constraint failed: contacts.name"}},
		"character set":        {{Text: `Incorrect string value: '\xF0\x9F\x98\x80' for column 'name' at row 1`}, {Text: `invalid byte sequence for encoding "UTF8": 0x00`}},
		"type of a column":     {{Text: "Error binding parameter 3: type 'list' is not supported"}, {Text: `invalid input syntax for type integer: "x"`}},
		"code":                 {{Text: "Cannot read properties of undefined (reading 'id')"}, {Text: "'NoneType' object has no attribute 'get'"}, {Text: "list index out of range"}, {Text: "KeyError: 'email'"}},
		"connection lost":      {{Text: "server closed the connection unexpectedly"}, {Text: "MySQL server has gone away"}, {Text: "connect ECONNREFUSED 127.0.0.1:5432"}},
		"": {
			{Text: "record not found"}, {Text: "skipped"}, {Text: "email is required"}, {Text: "operation upsert is not implemented", Code: "-32601", Method: "sync_batch"},
			{Text: "Method not found", Method: "sync_batch"}, {Text: "the age is out of the allowed range"}, {Text: "internal error"}, {Text: "invalid params", Code: "-32602", Method: "sync_batch"},
		},
	} {
		for _, m := range messages {
			m.Names = names
			got, is := Of(m)
			require.Equal(t, cause, got.Name, m.Text)
			require.Equal(t, cause != "", is, m.Text)
			if is {
				require.NotEmpty(t, got.Text, m.Text)
				require.NotEmpty(t, got.Fix, m.Text)
			}
		}
	}
}

// TestKey: messages of one cause have one key, whatever varies in them.
func TestKey(t *testing.T) {
	same := func(one, other string) { require.Equal(t, Key(Message{Text: one}), Key(Message{Text: other})) }
	same("QueuePool limit of size 5 reached", "QueuePool limit of size 3 reached")
	same(`row 17 of "ada" failed in 5f3a-99`, `row 3 of "bob" failed in 1b-7`)
	require.NotEqual(t, Key(Message{Text: "gateway is tired"}), Key(Message{Text: "gateway is asleep"}))
}

// TestMember: what replaces a member leads to its cause, and a correct member to none.
func TestMember(t *testing.T) {
	for _, c := range []struct {
		object string
		name   string
		kind   wire.NodeKind
		cause  string
	}{
		{`{"success":true}`, "success", wire.Bool, ""},
		{`{"ok":true}`, "success", wire.Bool, "member under another name"},
		{`{"identifier":"a","error_message":"b"}`, "success", wire.Bool, "member left out"},
		{`{"success":"true"}`, "success", wire.Bool, "member as text"},
		{`{"success":1}`, "success", wire.Bool, "count for a boolean"},
		{`{"success":null}`, "success", wire.Bool, "null member"},
		{`{"results":[]}`, "record_results", wire.Array, "member under another name"},
		{`{"record_results":{"a":{}}}`, "record_results", wire.Array, "map for a list"},
		{`{"operations":"insert,update"}`, "operations", wire.Array, "member as text"},
		{`{"operations":" "}`, "operations", wire.Array, "empty text"},
		{`{"maximum_batch_size":0}`, "maximum_batch_size", wire.Number, "no limit"},
		{`{"maximum_batch_size":2.5}`, "maximum_batch_size", wire.Number, "number with fraction"},
		{`{"maximum_batch_size":true}`, "maximum_batch_size", wire.Number, "member of another type"},
		{`{"maximum_batch_size":7}`, "maximum_batch_size", wire.Number, ""},
		{`[]`, "record_results", wire.Array, ""},
	} {
		n, err := wire.Parse([]byte(c.object))
		require.NoError(t, err)
		got, is := Member(n, c.name, c.kind, "identifier", "error_message")
		require.Equal(t, c.cause, got.Name, c.object)
		require.Equal(t, c.cause != "", is, c.object)
		require.Equal(t, is, got.Text != "" && got.Fix != "", c.object)
	}
}
