package source

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/server/api"
)

// queryColumns checks a query by preparing it and describes what it selects.
func (s *sqliteSource) queryColumns(conn *sqlite.Conn, query string) ([]api.Column, error) {
	stmt, err := s.prepareQuery(conn, query)
	if err != nil {
		return nil, err
	}
	defer stmt.Finalize()
	declared, err := s.viewTypes(conn, query)
	if err != nil {
		return nil, err
	}
	columns := make([]api.Column, stmt.ColumnCount())
	for i := range columns {
		word := ""
		if i < len(declared) {
			word = declared[i]
		}
		columns[i] = s.column(stmt.ColumnName(i), word)
	}
	return columns, nil
}

// prepareQuery compiles a query that selects and does nothing else. The caller
// finalizes the statement.
func (s *sqliteSource) prepareQuery(conn *sqlite.Conn, query string) (*sqlite.Stmt, error) {
	text, places := query, []place(nil)
	if s.warehouse != nil {
		text, places = s.warehouse.rewrite(conn, query, false)
	}
	_, problem, after := oneStatement(text)
	if problem != "" {
		return nil, &QueryError{Message: problem, Position: position(query, places, after)}
	}
	// The connection can only read; the authorizer also keeps out what reads
	// other things than tables: ATTACH, PRAGMA.
	if err := conn.SetAuthorizer(sqlite.AuthorizeFunc(onlySelect)); err != nil {
		return nil, fmt.Errorf("guard query: %w", err)
	}
	defer func() { _ = conn.SetAuthorizer(nil) }()
	stmt, _, err := conn.PrepareTransient(text)
	if err != nil {
		return nil, queryError(err, query, places)
	}
	switch {
	case stmt.ColumnCount() == 0:
		err = &QueryError{Message: "the query selects nothing: it must be one SELECT", Position: 1}
	case stmt.BindParamCount() > 0:
		err = &QueryError{Message: "the query has parameters, which get no values here: write the values into it"}
	default:
		err = distinctColumns(stmt)
	}
	if err != nil {
		_ = stmt.Finalize()
		return nil, err
	}
	return stmt, nil
}

// distinctColumns refuses a query whose columns cannot be distinguished. The
// driver knows a name once only: the column that it has no name for shares it
// with a later one.
func distinctColumns(stmt *sqlite.Stmt) error {
	for i := range stmt.ColumnCount() {
		if stmt.ColumnName(i) == "" {
			return &QueryError{Message: fmt.Sprintf("column %d of the query has no name, or that of a later one: give it another with AS", i+1)}
		}
	}
	return nil
}

// notSelect is said of a query that is no query, in every dialect.
const notSelect = "the query does more than read tables: it must be one SELECT"

// onlySelect lets a query read tables and call functions, and nothing else.
func onlySelect(action sqlite.Action) sqlite.AuthResult {
	switch action.Type() {
	case sqlite.OpSelect, sqlite.OpRead, sqlite.OpFunction, sqlite.OpRecursive:
		return sqlite.AuthResultOK
	}
	return sqlite.AuthResultDeny
}

// viewTypes learns the declared types of the result from a temporary view: the
// driver does not give them. The view lives and dies with the connection.
// Statements that cannot be a view, such as EXPLAIN, read no table.
func (s *sqliteSource) viewTypes(conn *sqlite.Conn, query string) (declared []string, err error) {
	text := query
	if s.warehouse != nil {
		text, _ = s.warehouse.rewrite(conn, query, false)
	}
	const name = "destkit_probe"
	body, _, _ := oneStatement(text)
	if err := sqlitex.ExecuteTransient(conn, "CREATE TEMP VIEW "+name+" AS "+body, nil); err != nil {
		if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultError {
			err = &QueryError{Message: notSelect, Position: 1}
		}
		return nil, err
	}
	err = sqlitex.ExecuteTransient(conn, "SELECT type FROM pragma_table_xinfo(?1, 'temp') ORDER BY cid",
		&sqlitex.ExecOptions{Args: []any{name}, ResultFunc: func(stmt *sqlite.Stmt) error {
			declared = append(declared, stmt.ColumnText(0))
			return nil
		}})
	if err != nil {
		return nil, fmt.Errorf("read types of query: %w", err)
	}
	return declared, sqlitex.ExecuteTransient(conn, "DROP VIEW temp."+name, nil)
}

// queryError turns SQLite's error about a query into a QueryError; troubles
// of the file stay what they are.
func queryError(err error, query string, places []place) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultAuth:
		return &QueryError{Message: notSelect, Position: 1}
	case sqlite.ResultError, sqlite.ResultTooBig, sqlite.ResultRange:
	default:
		return err
	}
	at := -1
	if offset, ok := sqlite.ErrorOffset(err); ok {
		at = offset
	}
	return &QueryError{Message: driverWords(err), Position: position(query, places, at)}
}

// driverWords is the innermost message without the driver's own prefixes.
func driverWords(err error) string {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	message := err.Error()
	message = strings.TrimPrefix(message, sqlite.ResultError.Message()+": ")
	return message
}

// position counts the characters before a byte of the text that was prepared,
// in the text that the user wrote.
func position(query string, places []place, at int) int {
	if at < 0 {
		return 0
	}
	at = original(places, at)
	return utf8.RuneCountInString(query[:min(at, len(query))]) + 1
}

// Parts of SQL that are scanned as text: the end of a statement, and
// names. The databases do the rest.

// tokenKind is the class of a piece of SQL.
type tokenKind int

const (
	tokenSpace tokenKind = iota // also comments
	tokenWord                   // a bare name, keyword or number
	tokenName                   // a name in quotes
	tokenText                   // a literal
	tokenSign                   // one character of anything else
)

// token is a piece of SQL; end is the byte after it.
type token struct {
	kind       tokenKind
	start, end int
}

// nextToken reads the token at byte i, which is inside the text. A comment or
// literal without end reaches to the end of the text.
func nextToken(text string, i int) token {
	closed := func(kind tokenKind, from int, by string) token {
		n := strings.Index(text[from:], by)
		if n < 0 {
			return token{kind, i, len(text)}
		}
		return token{kind, i, from + n + len(by)}
	}
	switch c := text[i]; {
	case c == '\'':
		return quoted(text, i, tokenText, '\'')
	case c == '"' || c == '`':
		return quoted(text, i, tokenName, c)
	case c == '[':
		return closed(tokenName, i+1, "]")
	case strings.HasPrefix(text[i:], "--"):
		return closed(tokenSpace, i, "\n")
	case strings.HasPrefix(text[i:], "/*"):
		return closed(tokenSpace, i+2, "*/")
	case isSpace(c):
		j := i + 1
		for j < len(text) && isSpace(text[j]) {
			j++
		}
		return token{tokenSpace, i, j}
	case isWord(c):
		j := i + 1
		for j < len(text) && isWord(text[j]) {
			j++
		}
		return token{tokenWord, i, j}
	}
	return token{tokenSign, i, i + 1}
}

// quoted reads to the closing quote; a doubled one means itself.
func quoted(text string, i int, kind tokenKind, by byte) token {
	for j := i + 1; j < len(text); j++ {
		if text[j] != by {
			continue
		}
		if j+1 == len(text) || text[j+1] != by {
			return token{kind, i, j + 1}
		}
		j++
	}
	return token{kind, i, len(text)}
}

// isSpace: the white space of SQL is that of ASCII.
func isSpace(c byte) bool {
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v'
}

// isWord takes letters beyond ASCII as the databases do, byte by byte.
func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// unquoted is the name that a word or a quoted name means.
func unquoted(piece string) string {
	if len(piece) < 2 {
		return piece
	}
	switch by := piece[0]; by {
	case '"', '`':
		return strings.ReplaceAll(piece[1:len(piece)-1], string([]byte{by, by}), string(by))
	case '[':
		return piece[1 : len(piece)-1]
	}
	return piece
}

// oneStatement cuts a text down to its one statement, without the semicolon and the comments
// after it, or returns why it is not exactly one, and at which byte.
func oneStatement(text string) (body, problem string, at int) {
	end, ended := 0, false
	for i := 0; i < len(text); {
		t := nextToken(text, i)
		i = t.end
		switch {
		case t.kind == tokenSpace:
		case text[t.start] == 0:
			return text, "the query holds a NUL character", t.start
		case text[t.start] == ';':
			ended = true
		case ended:
			return text, "the query must be one statement", t.start
		default:
			end = t.end
		}
	}
	if end == 0 {
		return text, "the query is empty", -1
	}
	return text[:end], "", -1
}
