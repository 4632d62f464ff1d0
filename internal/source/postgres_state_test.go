//go:build unix

package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source/internal/cell"
)

// newState is a table of people in a database of its own, with a state beside it.
func newState(t *testing.T, columns string) (*PostgresState, func(sql string)) {
	t.Helper()
	exec, src := stateDatabase(t)
	exec("CREATE TABLE people (" + columns + ")")
	s, ok := StateIn(src, "abc_1")
	require.True(t, ok)
	return s, exec
}

// applyTo applies entries, numbered by their stamps.
func applyTo(t *testing.T, s *PostgresState, from, to string, entries ...StateEntry) {
	t.Helper()
	require.NoError(t, s.Apply(t.Context(), StateChange{From: from, To: to, Run: 1, Next: eachEntry(entries)}))
}

func eachEntry(entries []StateEntry) func() (StateEntry, error) {
	return func() (StateEntry, error) {
		if len(entries) == 0 {
			return StateEntry{}, io.EOF
		}
		e := entries[0]
		entries = entries[1:]
		return e, nil
	}
}

// read gives rows as texts: kind, key, and what belongs to the kind.
func read(t *testing.T, s *PostgresState, c *Comparison) (rows []string) {
	t.Helper()
	r, err := s.Read(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	for {
		got, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		require.NoError(t, err)
		text := string(got.Entry.Key)
		switch got.Kind {
		case StateTotals:
			text = fmt.Sprintf("%+v", got.Totals)
		case StateDuplicate:
			text += fmt.Sprintf(" x%d", got.Copies)
		case StateWrite:
			text += fmt.Sprintf(" %s known=%v", got.Cells, got.Has && got.Entry.Known)
		case StateGone, StateWhole:
			text += fmt.Sprintf(" known=%v rejected=%v deleted=%v %d %d", got.Entry.Known, got.Entry.Rejected, got.Entry.Deleted, got.Entry.Record, got.Entry.Row)
		}
		rows = append(rows, text)
	}
}

// prints of all rows as the server makes them.
func prints(t *testing.T, s *PostgresState, c Comparison) map[string]int64 {
	t.Helper()
	c.Every = true
	r, err := s.Read(t.Context(), &c)
	require.NoError(t, err)
	defer r.Close()
	out := map[string]int64{}
	for {
		got, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if got.Kind == StateWrite {
			out[string(got.Entry.Key)] = got.Print
		}
	}
}

// TestStateCompares: one statement finds what is new, changed, refused before,
// gone, NULL and twice there.
func TestStateCompares(t *testing.T) {
	s, exec := newState(t, "id integer, name text, at timestamptz, tags text[], doc jsonb")
	info, err := s.Open(t.Context())
	require.NoError(t, err)
	require.True(t, info.Fresh)
	require.Empty(t, info.Broken)
	require.Positive(t, info.Version)
	exec(`INSERT INTO people VALUES (3, 'new', '2026-01-02 03:04:05Z', '{a,b}', '{"x": 1}'); INSERT INTO people VALUES (1, 'same'), (2, 'changed'), (10, 'refused'),
		(4, 'once'), (4, 'twice'), (5, 'twice'), (5, 'twice'), (NULL, 'a'), (NULL, 'b'), (NULL, 'c')`)
	c := Comparison{Object: Object{Name: "people"}, Columns: []string{"name", "at", "tags", "doc"}, Key: "id"}
	was := prints(t, s, c)
	require.Len(t, was, 4)
	applyTo(t, s, "", "one",
		StateEntry{Key: []byte("1"), Known: true, Record: 11, Row: was["1"]},
		StateEntry{Key: []byte("2"), Known: true, Record: 12, Row: was["2"] + 1},
		StateEntry{Key: []byte("10"), Known: true, Rejected: true, Record: 13, Row: was["10"]},
		StateEntry{Key: []byte("6"), Known: true, Record: 14, Row: 15},
		StateEntry{Key: []byte("4"), Known: true, Record: 16, Row: 17},
		StateEntry{Key: []byte("7"), Rejected: true, Deleted: true})
	const totals = "{Rows:11 Nulls:3 Duplicates:4 Writes:%d Gone:2}"
	wrote := []string{
		`10 ["refused" null null null] known=true`, `2 ["changed" null null null] known=true`,
		`3 ["new" "2026-01-02T03:04:05Z" ["a","b"] {"x":1}] known=false`,
	}
	require.Equal(t, append([]string{fmt.Sprintf(totals, 3), "4 x2", "5 x2"}, wrote...), read(t, s, &c))
	c.Gone = true
	gone := []string{"6 known=true rejected=false deleted=false 14 15", "7 known=false rejected=true deleted=true 0 0"}
	require.Equal(t, slices.Concat([]string{fmt.Sprintf(totals, 3), "4 x2", "5 x2"}, wrote, gone), read(t, s, &c))
	once := c
	once.Once, once.Gone = true, false
	require.Equal(t, []string{fmt.Sprintf(totals, 1), "4 x2", "5 x2", wrote[2]}, read(t, s, &once))
	every := c
	every.Every, every.Gone = true, false
	require.Len(t, read(t, s, &every), 3+4)
	query := c
	query.Object = Object{Query: "SELECT *, random() AS r FROM people -- all"}
	require.Equal(t, read(t, s, &c), read(t, s, &query))
	require.Equal(t, []string{
		"1 known=true rejected=false deleted=false 11 " + fmt.Sprint(was["1"]), "10 known=true rejected=true deleted=false 13 " + fmt.Sprint(was["10"]),
		"2 known=true rejected=false deleted=false 12 " + fmt.Sprint(was["2"]+1), "4 known=true rejected=false deleted=false 16 17", gone[0], gone[1],
	}, read(t, s, nil))
}

// TestStatesAreMadeAtOnce: the first runs of several syncs do not get in each
// other's way.
func TestStatesAreMadeAtOnce(t *testing.T) {
	_, src := stateDatabase(t)
	var together sync.WaitGroup
	failures := make([]error, 8)
	for i := range failures {
		s, _ := StateIn(src, fmt.Sprint("abc_", i))
		together.Go(func() { _, failures[i] = s.Open(context.Background()) })
	}
	together.Wait()
	require.NoError(t, errors.Join(failures...))
}

// TestStateKeys: the server's keys are those that records have here, byte by
// byte, or it is not asked.
func TestStateKeys(t *testing.T) {
	s, exec := newState(t, `i integer, b bigint, t text, u uuid, v varchar(9), c char(5), f float8, d date`)
	exec(`INSERT INTO people VALUES (-5, 9007199254740993, E'a"\\\u0001\n\u00e4\u2028\u007f\b\f/', '00000000-0000-0000-0000-00000000000a', 'v', 'c', 1, '2026-01-01')`)
	_, err := s.Open(t.Context())
	require.NoError(t, err)
	want := map[string]string{"i": "-5", "b": "9007199254740993", "u": `"00000000-0000-0000-0000-00000000000a"`, "v": `"v"`}
	want["t"] = string(cell.AppendString(nil, "a\"\\\u0001\n\u00e4\u2028\u007f\b\f/"))
	for column, key := range want {
		got := prints(t, s, Comparison{Object: Object{Name: "people"}, Columns: []string{column}, Key: column})
		require.Contains(t, got, key, column)
	}
	got := prints(t, s, Comparison{Object: Object{Name: "people"}, Columns: []string{"i"}, Key: "i", KeyText: true})
	require.Contains(t, got, `"-5"`)
	for _, column := range []string{"c", "f", "d"} {
		_, err := s.Read(t.Context(), &Comparison{Object: Object{Name: "people"}, Columns: []string{"i"}, Key: column})
		require.ErrorIs(t, err, ErrNotInSQL, column)
	}
	_, err = s.Read(t.Context(), &Comparison{Object: Object{Name: "people"}, Columns: []string{"i"}, Key: "x"})
	require.ErrorIs(t, err, ErrNoColumn)
}

// TestStateSeesEveryChange: whatever changes the text of a value changes the
// fingerprint of its row, also where the server calls the two values equal.
func TestStateSeesEveryChange(t *testing.T) {
	for column, values := range map[string][2]string{
		"smallint": {"1", "2"}, "boolean": {"true", "false"}, "date": {"'2026-01-01'", "'2026-01-02'"},
		"float8": {"0", "'-0'"}, "float4": {"0.1", "0.1000001"}, "numeric": {"1.0", "1.00"}, "jsonb": {`'{"a": 1.0}'`, `'{"a": 1.00}'`},
		"json": {`'{}'`, `'{"a":1}'`}, "text": {"'a'", "NULL"}, "varchar": {"''", "NULL"}, "text[]": {"'{a,b}'", `'{"a,b"}'`},
		"bytea": {"'a'", "'b'"}, "uuid": {"'00000000-0000-0000-0000-000000000001'", "NULL"}, "interval": {"'24 hours'", "'1 day'"},
		"timestamptz": {"'2026-01-01Z'", "'2026-01-01 00:00:00.000001Z'"}, "point": {"'(1,2)'", "'(1,3)'"}, "char(3)": {"'a'", "'b'"},
		`text COLLATE "same"`: {"'A'", "'a'"},
	} {
		t.Run(column, func(t *testing.T) {
			exec, src := stateDatabase(t)
			exec(`CREATE COLLATION IF NOT EXISTS same (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
			s, _ := StateIn(src, "abc_1")
			_, err := s.Open(t.Context())
			require.NoError(t, err)
			exec("CREATE TABLE people (id integer, v " + column + ")")
			exec("INSERT INTO people VALUES (1, " + values[0] + "), (2, " + values[0] + ")")
			exec("INSERT INTO people VALUES (3, " + values[1] + ")")
			got := prints(t, s, Comparison{Object: Object{Name: "people"}, Columns: []string{"v"}, Key: "id"})
			require.Len(t, got, 3)
			require.Equal(t, got["1"], got["2"])
			require.NotEqual(t, got["1"], got["3"])
		})
	}
}

// TestStateApplies: a change may come twice, a refusal keeps what was
// acknowledged, a removed key is gone, and a key may be of any length.
func TestStateApplies(t *testing.T) {
	s, exec := newState(t, "id integer")
	_, err := s.Open(t.Context())
	require.NoError(t, err)
	long := []byte(`"` + strings.Repeat("k", 100_000) + `"`)
	applyTo(t, s, "", "one",
		StateEntry{Key: []byte("1"), Known: true, Record: 1, Row: 1}, StateEntry{Key: []byte("2"), Known: true, Record: 2, Row: 2},
		StateEntry{Key: []byte("3"), Known: true, Record: 3, Row: 3}, StateEntry{Key: long, Known: true})
	second := []StateEntry{
		{Key: []byte("1"), Rejected: true},
		{Key: []byte("2"), Removed: true},
		{Key: []byte("3"), Removed: true, Rejected: true},
		{Key: []byte("4"), Rejected: true},
		{Key: []byte("5"), Removed: true},
		{Key: long, Removed: true},
	}
	want := []string{
		"1 known=true rejected=true deleted=false 1 1", "3 known=false rejected=true deleted=false 0 0", "4 known=false rejected=true deleted=false 0 0",
	}
	for range 3 {
		applyTo(t, s, "one", "two", second...)
		require.Equal(t, want, read(t, s, nil))
	}
	applyTo(t, s, "two", "three", StateEntry{Key: []byte("1"), Known: true, Record: 7, Row: 8})
	want[0] = "1 known=true rejected=false deleted=false 7 8"
	require.Equal(t, want, read(t, s, nil))

	err = s.Apply(t.Context(), StateChange{From: "two", To: "other"})
	require.ErrorIs(t, err, ErrStateElsewhere)
	require.NoError(t, s.Apply(t.Context(), StateChange{From: "three", To: "four", Clear: true, Run: 9, Notes: json.RawMessage(`{"a":1}`)}))
	info, err := s.Open(t.Context())
	require.NoError(t, err)
	require.Equal(t, StateInfo{Stamp: "four", Run: 9, Notes: json.RawMessage(`{"a":1}`), Version: info.Version}, info)

	failing := errors.New("the books cannot be read")
	err = s.Apply(t.Context(), StateChange{From: "four", To: "five", Next: func() (StateEntry, error) { return StateEntry{}, failing }})
	require.ErrorContains(t, err, failing.Error())
	exec(`DROP SCHEMA destkit CASCADE`)
	info, err = s.Open(t.Context())
	require.NoError(t, err)
	require.True(t, info.Fresh)
}

// TestStateIsNotBelieved when it was changed.
func TestStateIsNotBelieved(t *testing.T) {
	for name, c := range map[string]struct{ sql, reason string }{
		"entries are gone":   {"DELETE FROM destkit.state_abc_1 WHERE key = '1'", "has 1 of 2 entries"},
		"a column is gone":   {"ALTER TABLE destkit.state_abc_1 DROP COLUMN row_print", "was changed"},
		"the note is gone":   {"DELETE FROM destkit.syncs", "has no row"},
		"another format":     {"UPDATE destkit.syncs SET format = 7", "format 7"},
		"the table is gone":  {"DROP TABLE destkit.state_abc_1", "has 0 of 2 entries"},
		"nothing is changed": {"SELECT 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, exec := newState(t, "id integer")
			_, err := s.Open(t.Context())
			require.NoError(t, err)
			applyTo(t, s, "", "one", StateEntry{Key: []byte("1"), Known: true}, StateEntry{Key: []byte("2"), Known: true})
			exec(c.sql)
			info, err := s.Open(t.Context())
			require.NoError(t, err)
			require.Contains(t, info.Broken, c.reason)
			require.Equal(t, c.reason == "", info.Broken == "")
			require.NoError(t, s.Drop(t.Context()))
			require.NoError(t, s.Drop(t.Context()))
		})
	}
}

// TestStateNeedsRights: a connection that may only read is refused by the test
// of the connection and by opening, with what to do.
func TestStateNeedsRights(t *testing.T) {
	exec, _ := stateDatabase(t)
	exec("CREATE ROLE reader LOGIN PASSWORD '" + postgresPassword + "'; GRANT USAGE ON SCHEMA public TO reader")
	defer exec("DROP OWNED BY reader; DROP ROLE reader")
	exec("CREATE TABLE people (id integer); GRANT SELECT ON people TO reader")
	credentials, src := stateSource(t, map[string]any{"username": "reader", "database": "states"})
	s, _ := StateIn(src, "abc_1")
	_, err := s.Open(t.Context())
	require.ErrorIs(t, err, ErrStateReadOnly)
	require.ErrorContains(t, err, `CREATE SCHEMA destkit AUTHORIZATION "reader"`)
	require.NotContains(t, err.Error(), postgresPassword)
	results := Test(t.Context(), "postgres", credentials, Options{Advanced: true})
	last := results.Steps[len(results.Steps)-1]
	require.Equal(t, "state", last.Step)
	require.Equal(t, "failed", last.Status)
	require.Contains(t, last.Error.Message, "sync_engine basic")
	for _, step := range Test(t.Context(), "postgres", credentials, Options{}).Steps {
		require.Equal(t, "passed", step.Status)
	}

	exec(`CREATE SCHEMA destkit AUTHORIZATION reader`)
	for _, step := range Test(t.Context(), "postgres", credentials, Options{Advanced: true}).Steps {
		require.Equal(t, "passed", step.Status, step.Error)
	}
	info, err := s.Open(t.Context())
	require.NoError(t, err)
	require.True(t, info.Fresh, "the test has left nothing")
	exec(`REVOKE INSERT ON destkit.state_abc_1 FROM reader`)
	require.ErrorIs(t, s.Apply(t.Context(), StateChange{To: "one", Next: eachEntry([]StateEntry{{Key: []byte("1"), Known: true}})}), ErrStateReadOnly)
	_, err = s.Open(t.Context())
	require.ErrorIs(t, err, ErrStateReadOnly)
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Len(t, tables, 1, "states are nobody's source")
}

// stateSource opens a source with some changes of its credentials.
func stateSource(t *testing.T, changes map[string]any) (map[string]json.RawMessage, Source) {
	t.Helper()
	credentials := map[string]json.RawMessage{}
	for key, value := range postgresCredentials(t, changes) {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		credentials[key] = text
	}
	src, err := Open(t.Context(), "postgres", credentials, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	return credentials, src
}

var madeStates sync.Once

// stateDatabase empties the database of these tests.
func stateDatabase(t *testing.T) (exec func(sql string), src Source) {
	t.Helper()
	_, admin := stateSource(t, nil)
	run := func(src Source, sql string) {
		conn, err := src.(*postgres).connect(context.Background())
		require.NoError(t, err)
		defer closeConn(conn)
		_, err = conn.Exec(context.Background(), "SET default_transaction_read_only = off")
		require.NoError(t, err)
		for statement := range strings.SplitSeq(sql, ";") {
			_, err = conn.Exec(context.Background(), statement)
			require.NoError(t, err)
		}
	}
	madeStates.Do(func() { run(admin, "CREATE DATABASE states") })
	_, src = stateSource(t, map[string]any{"database": "states"})
	run(src, "DROP SCHEMA IF EXISTS destkit CASCADE; DROP TABLE IF EXISTS people")
	return func(sql string) { run(src, sql) }, src
}
