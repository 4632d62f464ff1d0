// Package causes reads the messages of endpoints: what a text that a database, a framework or a
// runtime prints reveals about the cause of a refusal. It knows texts only; the caller decides
// whether a message is evidence of what was found.
package causes

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
)

// Cause is what a message leads to.
type Cause struct {
	Name string // the same for all messages of one cause
	Text string
	Fix  string
	When string // it answers so, where it does not always; else ""
}

// Names of what a wrong statement comes from.
const (
	StatementFromText = "statement from text"
	UnquotedName      = "unquoted name"
	EmptyPart         = "empty part of a statement"
)

// Message is what an endpoint gave as the reason of a refusal.
type Message struct {
	Text   string
	Status int      // of HTTP
	Code   string   // of the JSON-RPC error, as it is on the wire; "" of a record result
	Method string   // the one that was called
	Names  []string // of the object and its fields
}

const together = "calls at the same time are refused"

// table is searched in its order: specific causes come first.
var table = []struct {
	pattern *regexp.Regexp
	Cause
}{
	{texts(`current transaction is aborted`, `InFailedSqlTransaction`, `PendingRollback`, `invalid transaction is rolled back`, `transaction has been rolled back`, `25P02`), Cause{
		"aborted transaction", "a statement has failed in a transaction that is still open: all that follows in it is refused.",
		"roll back after each failure, or write each record under a savepoint; begin a new transaction in each call.", "what follows a refused record is refused"}},
	{texts(`circuit.?breaker`, `circuit (?:is )?open`, `breaker is open`, `CallNotPermitted`), Cause{
		"open circuit breaker", "a circuit breaker is open: after some failures it refuses all calls for a while.",
		"let it count failures of the system behind only, not refused records, and answer what it refuses with an error.", "calls after a few failures are refused"}},
	{texts(`(?:queue)?pool (?:limit|is full|exhausted|timed? ?out)`, `pool exhausted`, `exhausted (?:the )?(?:connection )?pool`, `PoolError`, `PoolTimeout`, `too many (?:clients|connections)`, `connection slots are reserved`,
		`(?:timeout|timed out) (?:exceeded when trying to connect|acquiring a connection)`, `(?:could ?n.t|cannot|unable to|failed to) (?:get|acquire|obtain) (?:a )?connection`, `obtaining a connection from the pool`, `waiting for a (?:free )?connection`, `ResourceRequest timed out`,
		`connection is not available, request timed out`, `max_user_connections`, `ORA-125(?:16|19|20)`, `too many open files`), Cause{
		"pool exhausted", "no connection to the database is free: the pool is smaller than the number of calls at the same time, or a connection is not given back on every path.",
		"make the pool as large as maximum_parallel_batches declares, or declare less, and give each connection back also after an error.", together}},
	{texts(`database (?:table |schema )?is locked`, `SQLITE_(?:BUSY|LOCKED)`, `deadlock`, `lock wait timeout`, `could not serialize access`, `could not obtain lock`, `another (?:batch|sync|request|transaction|write)(?: \w+)? is (?:already )?(?:in progress|running|open)`, `ORA-000(?:54|60)`), Cause{
		"lock", "two writers meet, and the database refuses one of them.",
		"let a writer wait (SQLite: a busy timeout, and one writer at a time), write rows in one order, and repeat a transaction that was refused for a lock.", together}},
	{texts(`can only be used in that same thread`, `commands out of sync`, `another (?:command|operation) is (?:already )?in progress`, `recursive use of cursors`, `open DataReader`, `connection is busy`, `transaction within a transaction`,
		`bad parameter or other API misuse`), Cause{
		"shared connection", "calls at the same time use one connection to the database.",
		"take a separate connection for each call, from a pool.", together}},
	{texts(`too many SQL variables`, `too many (?:bind )?(?:parameters|placeholders|variables)`, `maximum of 2100`, `(?:number of|bind message has).{0,20}parameter.{0,60}(?:65535|0 parameters)`, `compound SELECT`, `expression tree is too large`), Cause{
		"parameters of a statement", "one statement has more parameters than the database takes: records of a batch times mapped fields.",
		"write a batch in several statements, or declare a smaller maximum_batch_size that holds with every field mapped.", ""}},
	{texts(`entity.?too.?large`, `payload.?too.?large`, `(?:request|http)?:? ?body (?:is )?(?:too large|exceeded|exceeds)`, `too large body`, `content length exceeded`, `max_allowed_packet`, `packet bigger than`), bodyLimit},
	{texts(`on conflict (?:specification|clause does not match)`), Cause{
		"no unique index", "the statement relies on a unique index of the identifier, and the table has none.",
		"create a unique index on each field that list_fields offers as identifier.", ""}},
	{texts(`affect row a second time`), Cause{
		"row twice in a statement", "one statement cannot write the same row twice: the batch has an identifier more than once.",
		"write the records one after the other, or let the last of those with one identifier win.", ""}},
	{texts(`duplicate key`, `UNIQUE constraint failed`, `duplicate entry`, `violation of (?:unique|primary) key`, `ORA-00001`), Cause{
		"unique constraint", "an INSERT meets a value that another row has: the statement does not look for the record that is there, another call has written it in between, or a column is unique that is no identifier.",
		"write with one statement that creates or changes (ON CONFLICT, MERGE, ON DUPLICATE KEY), and answer a failure of that record alone.", ""}},
	{texts(`value too long`, `data too long`, `would be truncated`, `ORA-12899`, `(?:integer|smallint|number|timestamp|date|type \w+).{0,20}out of range`, `out of range (?:value|for)`, `too large to convert`, `arithmetic overflow`, `field overflow`, `ORA-01438`), Cause{
		"narrow column", "the column takes less than the declared type.",
		"widen the column, or declare a type whose values it takes.", ""}},
	{texts(`incorrect string value`, `has no equivalent in encoding`, `codec can.t encode`, `UnicodeEncodeError`, `ordinal not in range`, `invalid byte sequence`, `unsupported Unicode escape`), Cause{
		"character set", "the character set of the connection or of the column cannot hold the text.",
		"use UTF-8 everywhere (MySQL: utf8mb4), and refuse alone a record with a character that the database cannot hold.", ""}},
	{texts(`violates not-null`, `NOT NULL constraint failed`, `cannot be null`, `cannot insert the value NULL`, `ORA-01400`), Cause{
		"column without null", "no null is taken there: null was sent, or nothing was mapped and the column has no default.",
		"let the column take null or give it a default, or declare the field as required.", ""}},
	{texts(`invalid input syntax for`, `error binding parameter`, `can.t adapt type`, `datatype mismatch`, `conversion failed`, `incorrect (?:integer|decimal|date|datetime|double) value`, `is of type \S+ but expression is of type`, `type '\w+' is not supported`), Cause{
		"type of a column", "the value reaches the database with another type than the column has.",
		"convert each value from its JSON form to the type of the column, or declare the type that the column has.", ""}},
	{texts(`readonly database`, `read-only (?:transaction|file system)`, `permission denied`, `command denied`, `permission was denied`, `ORA-01031`, `insufficient privileges`), Cause{
		"rights in the database", "the user of the endpoint may not write there.",
		"grant the user of the endpoint what each advertised operation needs.", ""}},
	{texts(`disk is full`, `no space left`, `could not extend file`), Cause{"full disk", "the disk of the database is full.", "make room.", ""}},
	{texts(`gone away`, `lost connection to`, `terminating connection`, `server closed the connection`, `connection (?:was )?(?:refused|terminated|already closed)`, `ECONNRE(?:FUSED|SET)`, `broken pipe`), Cause{
		"connection lost", "the endpoint has lost its connection to the system behind it.",
		"open a new connection when one is lost, and repeat what was not acknowledged.", "calls now and then are refused"}},
	{texts(`cannot read propert`, `KeyError`, `NoneType`, `nil pointer`, `for nil\b`, `NullPointerException`, `index out of (?:range|bounds)`, `is not a function`, `AttributeError`, `^'\w+'$`), Cause{
		"code", "the code of the endpoint reads what the request does not carry, and fails.",
		"look at the named member: treat what is null or absent before it is used.", ""}},
}

var bodyLimit = Cause{"body limit", "the limit for the body of a request, of the framework or of a proxy, is lower than a batch.",
	"raise the limit (Express: express.json({limit: …}), nginx: client_max_body_size), or declare a smaller maximum_batch_size.", ""}

// texts matches any of these, in upper or lower case.
func texts(any ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join(any, "|"))
}

// OfRecord reports whether such a message is about one record, or one value of it.
func (c Cause) OfRecord() bool {
	return slices.Contains([]string{
		"unique constraint", "narrow column", "character set", "column without null", "type of a column", StatementFromText,
	}, c.Name)
}

// Of is the cause that a message leads to; false when it leads to none.
func Of(m Message) (Cause, bool) {
	if m.Status == http.StatusRequestEntityTooLarge {
		return bodyLimit, true
	}
	if c, is := missingMethod(m); is {
		return c, true
	}
	for _, row := range table {
		if row.pattern.MatchString(m.Text) {
			c := row.Cause
			if member := namedMember.FindStringSubmatch(m.Text); c.Name == "code" && member != nil {
				c.Text = "the code of the endpoint reads " + cmp.Or(member[1:]...) + ", which is not there in this request, and fails."
			}
			return c, true
		}
	}
	return statement(m)
}

// namedMember is the member that code has read in vain.
var namedMember = regexp.MustCompile(`(?i)KeyError(?:: ?|\()?['"](\w+)|^'(\w+)'$|reading '(\w+)'|(?:read )?propert(?:y|ies) ['"](\w+)|attribute ['"](\w+)|has no key ['"]?(\w+)`)

var unknownMethod = regexp.MustCompile(`(?i)(?:unknown|no such|unsupported|unrecogni[sz]ed|invalid|undefined) (?:rpc )?method|method (?:\S+ )?(?:is |was )?(?:not|un)[ -]?(?:found|supported|known|implemented|available)|not (?:yet )?implemented|NotImplemented|unimplemented`)

// missingMethod reads what dispatchers answer for a method that they do not know.
func missingMethod(m Message) (Cause, bool) {
	said := strings.ToLower(m.Text)
	if m.Method == "" || m.Code == "" || strings.Contains(said, "operation") || m.Code != "-32601" && !unknownMethod.MatchString(said) {
		return Cause{}, false
	}
	return Cause{"missing method", "the endpoint has no method " + m.Method + ", or its dispatcher does not know the name.",
		"implement " + m.Method + ", and choose the handler by the member \"method\" of the request.", ""}, true
}

var (
	openQuote = texts(`unrecognized token`, `unterminated`, `unclosed`, `ORA-01756`)

	syntax = texts(`near "([^"]*)": syntax error`, `syntax error at or near "([^"]*)"`, `error in your SQL syntax.* near '([^']*)`, `incorrect syntax near (?:the keyword )?'([^']*)`,
		`unrecognized token`, `unterminated quoted`, `unclosed quotation`, `incomplete input`, `syntax error at end of input`, `ORA-00(?:90[37]|911|92[0-9]|93[36])`, `ORA-01756`, `SQL syntax`)
	column = texts(`no such column:? "?(?:\w+\.)?([^"\s]*)`, `column "?(?:\w+\.)?([^"]*?)"? (?:of relation .*)?does not exist`, `unknown column '(?:\w+\.)?([^']*)`, `invalid column name '([^']*)`, `has no column named (\S+)`, `ORA-00904: (?:"\w+"\.)?"?([^":]*)`)
)

// statement reads what databases report about a statement that was put together from text.
func statement(m Message) (Cause, bool) {
	found := column.FindStringSubmatch(m.Text)
	missing := found != nil
	if found == nil {
		found = syntax.FindStringSubmatch(m.Text)
	}
	if found == nil {
		return Cause{}, false
	}
	token := cmp.Or(found[1:]...)
	first, _, _ := strings.Cut(strings.ToUpper(token), " ")
	switch {
	case missing && slices.Contains(m.Names, token):
		return Cause{"missing column", "list_fields declares " + token + ", and the table has no such column.",
			"take list_fields from the table, or add the column.", ""}, true
	case named(m.Names, token):
		return Cause{UnquotedName, "the name " + token + " is put into a statement without quotes: a reserved word, or capital letters, then mean something else.",
			"quote every name of a table and a column in statements.", ""}, true
	case !missing && slices.Contains([]string{")", "WHERE", "SET", "VALUES", "RETURNING", "FROM", "DO"}, first):
		return Cause{EmptyPart, "a part of the statement is empty, such as SET or a list of columns, because nothing is mapped for it.",
			"write no statement where there is nothing to write.", ""}, true
	case !missing && token == "" && !openQuote.MatchString(m.Text):
		return Cause{StatementFromText, "SQL is built from text: a value, or the name of a column, is put into the statement as it is.",
			"pass values as bound parameters, and quote every name of a column.", ""}, true
	}
	return Cause{StatementFromText, "SQL is built from text: a value is put into the statement as it is, and a quote in it ends the value.",
		"pass values as bound parameters; never put them into the text of a statement.", ""}, true
}

// named reports whether a token is a name, or begins with one as where MySQL quotes the rest.
func named(names []string, token string) bool {
	first := strings.FieldsFunc(token, func(r rune) bool { return strings.ContainsRune(" ,=()`\";\n", r) })
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.EqualFold(name, token) || len(first) > 0 && strings.EqualFold(name, first[0])
	})
}

var varying = regexp.MustCompile(`"[^"]*"|'[^']*'|[0-9a-fA-F-]*\d[0-9a-fA-F-]*`)

// Key is the same for messages of one cause: its name, else the text without what varies.
func Key(m Message) string {
	if c, is := Of(m); is {
		return c.Name
	}
	return varying.ReplaceAllString(m.Text, "…")
}

// Member is the cause of what replaces a member of a kind; false when the reply shows none. known
// are the other members that belong there.
func Member(parent *wire.Node, name string, kind wire.NodeKind, known ...string) (Cause, bool) {
	if !parent.Is(wire.Object) {
		return Cause{}, false
	}
	n, quoted := parent.Get(name), strconv.Quote(name)
	switch {
	case n == nil:
		return absent(parent, name, kind, known), true
	case n.Kind == kind:
		return ofValue(n, name)
	case n.Kind == wire.Null:
		return Cause{"null member", quoted + " is null: a value or a list that was never filled (None, a nil slice) is written as it is.",
			fmt.Sprintf("give %s a value of its type from the beginning, an empty list where there is nothing.", name), ""}, true
	case n.Kind == wire.String && strings.Trim(n.Text, " ") == "":
		return Cause{"empty text", quoted + " is an empty text: the value was not set.", "set it, as a JSON " + kind.String() + ".", ""}, true
	case n.Kind == wire.String:
		return Cause{"member as text", fmt.Sprintf("%s is the text %s: what was printed, joined or read from the environment as text is passed on.", quoted, shown(n)),
			"convert it before it is written: a JSON " + kind.String() + ", without quotes around the whole.", ""}, true
	case n.Kind == wire.Number && kind == wire.Bool:
		return Cause{"count for a boolean", fmt.Sprintf("%s is the number %s: a count of rows or a code of the destination is passed on.", quoted, shown(n)),
			"compare it, and write true or false.", ""}, true
	case n.Kind == wire.Object && kind == wire.Array:
		return Cause{"map for a list", quoted + " is an object: what is kept by name or by identifier (a map) is written as it is.", "write its values as an array.", ""}, true
	}
	return Cause{"member of another type", fmt.Sprintf("%s is %s: a value of the code or of the destination is passed on as it is.", quoted, article(n.Kind)),
		"write a JSON " + kind.String() + ".", ""}, true
}

// absent looks for the value under another name.
func absent(parent *wire.Node, name string, kind wire.NodeKind, known []string) Cause {
	for _, m := range parent.Members {
		if m.Value.Kind == kind && m.Name != name && !slices.Contains(known, m.Name) {
			return Cause{"member under another name", fmt.Sprintf("the value is under another name, %q: the member must be called %q.", foreign.Clip(m.Name, 40), name),
				fmt.Sprintf("call the member %q.", name), ""}
		}
	}
	return Cause{"member left out", fmt.Sprintf("%q is left out: it is never set, is optional in the code, or what writes the JSON leaves out what is false, zero or empty (omitempty).", name),
		fmt.Sprintf("write %q always, also when it is false, zero or empty.", name), ""}
}

// ofValue reads a member of the right type with a wrong value.
func ofValue(n *wire.Node, name string) (Cause, bool) {
	switch v, is := n.Int(); {
	case is && v < 1:
		return Cause{"no limit", fmt.Sprintf("%q is %d: the number means \"no limit\", or was never set.", name, v),
			"give a number that the endpoint can keep; the service takes every number as it is.", ""}, true
	case n.Kind == wire.Number && !n.IsInteger():
		return Cause{"number with fraction", fmt.Sprintf("%q is %s: the number was calculated, or went through floating point.", name, shown(n)), "round it down to an integer.", ""}, true
	}
	return Cause{}, false
}

func shown(n *wire.Node) string { return foreign.Clip(string(n.Raw), 60) }

func article(k wire.NodeKind) string {
	if k == wire.Array || k == wire.Object {
		return "an " + k.String()
	}
	return "a " + k.String()
}
