package source

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/internal/testkit"
)

// database makes a SQLite file by a script. It knows generate_series as a
// recursive query only.
func database(t testing.TB, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "crm.sqlite")
	script = strings.ReplaceAll(script, "generate_series(1, 5000)", "(WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 5000) SELECT value FROM n)")
	change(t, path, script)
	return path
}

func change(t testing.TB, path, script string) {
	t.Helper()
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	require.NoError(t, err)
	require.NoError(t, runAll(conn, script, func(err error, at int) error { return err }))
	require.NoError(t, conn.Close())
}

func TestSQLiteTables(t *testing.T) {
	path := database(t, `
		CREATE TABLE users (id INTEGER PRIMARY KEY, email VARCHAR(20), born DATE, seen TIMESTAMP, active BOOLEAN, score REAL, balance DECIMAL(10,2), data JSON, photo BLOB, x);
		CREATE TABLE "Größe ""quoted"" 表" ("spalte ä" TEXT, double_it INTEGER GENERATED ALWAYS AS (1));
		CREATE VIEW adults AS SELECT id, email, count(*) AS n FROM users;
		CREATE TABLE gone (a); CREATE VIEW broken AS SELECT * FROM gone; DROP TABLE gone;
		CREATE INDEX by_email ON users (email);
		CREATE TABLE sequence (id INTEGER PRIMARY KEY AUTOINCREMENT);`)
	src := open(t, "sqlite", map[string]any{"path": path}, Options{})
	tables, err := src.Tables(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{`main.main.Größe "quoted" 表`, "main.main.adults", "main.main.broken", "main.main.sequence", "main.main.users"}, names(tables))
	require.Equal(t, []string{"spalte ä TEXT string", "double_it INTEGER integer"}, short(tables[0].Columns))
	require.Equal(t, []string{"id INTEGER integer", "email VARCHAR(20) string", "n ANY any"}, short(tables[1].Columns))
	require.Empty(t, tables[2].Columns)
	require.Equal(t, []string{"id INTEGER integer", "email VARCHAR(20) string", "born DATE date", "seen TIMESTAMP date_time", "active BOOLEAN boolean",
		"score REAL float", "balance DECIMAL(10,2) decimal", "data JSON object", "photo BLOB binary", "x ANY any"}, short(tables[4].Columns))

	for _, object := range []Object{{Catalog: "main", Schema: "main", Name: "users"}, {Name: "users"}, {Name: "USERS"}} {
		columns, err := src.Columns(t.Context(), object)
		require.NoError(t, err, "%v", object)
		require.Len(t, columns, 10)
	}
	for _, object := range []Object{{Name: "nope"}, {Name: ""}, {Name: "us\x00ers"}, {Name: "sqlite_schema"}, {Name: "sqlite_sequence"}, {Schema: "temp", Name: "users"}, {Catalog: "x", Name: "users"}, {Name: "by_email"}} {
		_, err := src.Columns(t.Context(), object)
		require.ErrorIs(t, err, ErrNoTable, "%v", object)
	}
	_, err = src.Columns(t.Context(), Object{Name: "broken"})
	require.ErrorContains(t, err, "no such table: main.gone")
}

func TestSQLiteQueries(t *testing.T) {
	src := open(t, "sqlite", map[string]any{"path": database(t, "CREATE TABLE users (id INTEGER, name TEXT, born DATE); CREATE TABLE pets (id INTEGER);")}, Options{})
	for query, want := range map[string][]string{
		"SELECT * FROM users":                                    {"id INTEGER integer", "name TEXT string", "born DATE date"},
		"select born as b, id from users ; -- done\n":            {"b DATE date", "id INTEGER integer"},
		"SELECT count(*) FROM users":                             {"count(*) ANY any"},
		"SELECT cast(name AS TEXT) AS t, id + 1 AS n FROM users": {"t TEXT string", "n ANY any"},
		"WITH u AS (SELECT id FROM users) SELECT id FROM u":      {"id INTEGER integer"},
		"VALUES (1, 2)":           {"column1 ANY any", "column2 ANY any"},
		"/* ; */ SELECT ';' AS a": {"a ANY any"},
	} {
		columns, err := src.Columns(t.Context(), Object{Name: "ignored", Query: query})
		require.NoError(t, err, query)
		require.Equal(t, want, short(columns), query)
	}
	for _, c := range []struct {
		query    string
		says     string
		position int
	}{
		{"SELECT nope FROM users", "no such column: nope", 8},
		{"SELECT é, nope FROM users", "no such column", 8},
		{"SELEC 1", `near "SELEC": syntax error`, 1},
		{"SELECT 'ä', 1 FRM users x y", "syntax error", 19},
		{"SELECT 1; SELECT 2", "must be one statement", 11},
		{"SELECT 1; DROP TABLE users", "must be one statement", 11},
		{" ", "query is empty", 0},
		{" ; -- x", "query is empty", 0},
		{"SELECT 1\x00", "NUL character", 9},
		{"DELETE FROM users", notSelect, 1},
		{"INSERT INTO users DEFAULT VALUES RETURNING id", notSelect, 1},
		{"PRAGMA table_info(users)", notSelect, 1},
		{"ATTACH '/etc/passwd' AS x", notSelect, 1},
		{"EXPLAIN SELECT 1", notSelect, 1},
		{"COMMIT", notSelect, 1},
		{"VACUUM INTO '/tmp/x'", "", 1},
		{"SELECT ?", "has parameters", 0},
		{"SELECT :a", "has parameters", 0},
		{"SELECT users.id, pets.id FROM users, pets", "column 1 of the query has no name, or that of a later one", 0},
	} {
		_, err := src.Columns(t.Context(), Object{Query: c.query})
		var q *QueryError
		require.ErrorAs(t, err, &q, c.query)
		require.Contains(t, q.Message, c.says, c.query)
		require.Equal(t, c.position, q.Position, "%s: %v", c.query, q)
	}
}

func TestSQLiteFiles(t *testing.T) {
	folder := t.TempDir()
	text := testkit.WriteFile(t, "text.sqlite", strings.Repeat("no database ", 100))
	for path, says := range map[string]string{
		folder + "/missing.db": "open " + folder + "/missing.db: there is no such file",
		folder:                 "open " + folder + ": it is a folder, and must be a file",
		"/dev/null":            "open /dev/null: it is not a regular file",
		text:                   "read " + text + ": the file is not a SQLite database",
		":memory:":             "open :memory:: there is no such file",
	} {
		_, err := Open(t.Context(), "sqlite", credentials(map[string]any{"path": path}), Options{})
		require.EqualError(t, err, "open sqlite source: "+says)
	}
	tables, err := open(t, "sqlite", map[string]any{"path": testkit.WriteFile(t, "empty.db", "")}, Options{}).Tables(t.Context())
	require.NoError(t, err, "an empty file is a database without tables")
	require.Empty(t, tables)

	if os.Geteuid() != 0 {
		secret := testkit.WriteFile(t, "secret.db", "")
		require.NoError(t, os.Chmod(secret, 0))
		_, err = Open(t.Context(), "sqlite", credentials(map[string]any{"path": secret}), Options{})
		require.ErrorContains(t, err, "the service may not read it")
	}
}

// TestSQLiteOnlyReads: not even the write-ahead log of a user's database is
// written back.
func TestSQLiteOnlyReads(t *testing.T) {
	path := database(t, "CREATE TABLE a (a INTEGER PRIMARY KEY, b); INSERT INTO a VALUES (1, 'x');")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	src := open(t, "sqlite", map[string]any{"path": path}, Options{})
	_, err = src.Columns(t.Context(), Object{Query: "SELECT a FROM a"})
	require.NoError(t, err)
	require.Equal(t, []string{`[1,"x"]`}, readAll(t, src, Object{Name: "a"}, nil, []string{"a"}))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no journal is left")

	for spoil, query := range map[string]string{"": "SELEC 1", "PRAGMA application_id = 77;": "SELECT 1 AS a", "damaged": "SELECT 1 AS a"} {
		path := database(t, "PRAGMA journal_mode = wal; CREATE TABLE a (a INTEGER PRIMARY KEY);"+strings.TrimPrefix(spoil, "damaged"))
		if spoil == "damaged" {
			file, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, append(file[:100], bytes.Repeat([]byte("x"), len(file)-100)...), 0o600))
		}
		refused := &sqliteSource{path: path, options: Options{Files: &reach.Files{Database: 77, Folders: func() ([]reach.Folder, error) { return []reach.Folder{{Path: filepath.Dir(path)}}, nil }}}}
		_, err = refused.Columns(t.Context(), Object{Query: query})
		require.Error(t, err, spoil)
		_, err = refused.Rows(t.Context(), Object{Query: query}, nil, nil)
		require.Error(t, err, spoil)
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1, spoil)
	}
}

// TestSQLiteSnapshot: rows that are written while others are read are not seen.
func TestSQLiteSnapshot(t *testing.T) {
	path := database(t, "PRAGMA journal_mode = wal; CREATE TABLE a (a INTEGER PRIMARY KEY); INSERT INTO a SELECT value FROM generate_series(1, 5000);")
	src := open(t, "sqlite", map[string]any{"path": path}, Options{})
	for _, order := range [][]string{nil, {"a"}} {
		rows, err := src.(Reader).Rows(t.Context(), Object{Name: "a"}, nil, order)
		require.NoError(t, err)
		_, err = rows.Next()
		require.NoError(t, err)
		change(t, path, "INSERT INTO a SELECT max(a) + 1 FROM a; DELETE FROM a WHERE a = 4000;")
		n := 1
		for {
			if _, err = rows.Next(); err != nil {
				break
			}
			n++
		}
		require.ErrorContains(t, err, "EOF")
		require.Equal(t, 5000, n)
		require.NoError(t, rows.Close())
		change(t, path, "DELETE FROM a WHERE a > 5000; INSERT INTO a VALUES (4000);")
	}
}

// TestSQLiteKeyOrder: the order of an integer key by the bytes of its text, with
// and without the way that needs no sorting.
func TestSQLiteKeyOrder(t *testing.T) {
	values := "(0), (-1), (-10), (-2), (5), (10), (100), (19), (9223372036854775807), (-9223372036854775808), (1000000000000000000), (999999999999999999), (-1000000000000000000), (-999999999999999999)"
	want := []string{"[-1]", "[-10]", "[-1000000000000000000]", "[-2]", "[-9223372036854775808]", "[-999999999999999999]",
		"[0]", "[10]", "[100]", "[1000000000000000000]", "[19]", "[5]", "[9223372036854775807]", "[999999999999999999]"}
	for name, declared := range map[string]string{
		"row id": "k INTEGER PRIMARY KEY", "any": "k", "index": "k INT PRIMARY KEY",
		"descending": "k INTEGER PRIMARY KEY DESC", "no row id": "k INTEGER PRIMARY KEY) WITHOUT ROWID; CREATE TABLE unused (x",
	} {
		src := open(t, "sqlite", map[string]any{"path": database(t, "CREATE TABLE a ("+declared+"); INSERT INTO a VALUES "+values)}, Options{})
		require.Equal(t, want, readAll(t, src, Object{Name: "a"}, nil, []string{"k"}), name)
		require.Equal(t, want, readAll(t, src, Object{Query: "SELECT 1 AS one, k FROM a"}, []string{"k"}, []string{"k"}), name)
	}
	empty := open(t, "sqlite", map[string]any{"path": database(t, "CREATE TABLE a (k INTEGER PRIMARY KEY)")}, Options{})
	require.Empty(t, readAll(t, empty, Object{Name: "a"}, nil, []string{"k"}))
}

func TestSQLiteValues(t *testing.T) {
	src := open(t, "sqlite", map[string]any{"path": database(t, `PRAGMA encoding = 'UTF-16le'; CREATE TABLE a (n INTEGER PRIMARY KEY, v, b BOOLEAN, j JSON);
		INSERT INTO a VALUES (1, NULL, 1, '{"a" : [1, 2.50]}'), (2, 9007199254740993, 0, 'no json'), (3, 1.5, 2, NULL), (4, 1e300, 'yes', 7),
		(5, 'ä"\' || char(10) || char(1) || char(0) || 'z', NULL, '"x"'), (6, x'00ff', NULL, x'00'), (7, 9e999, NULL, NULL), (8, '', NULL, '');`)}, Options{})
	require.Equal(t, []string{
		`[null,true,{"a":[1,2.50]}]`,
		`[9007199254740993,false,"no json"]`,
		`[1.5,2,null]`,
		`[1e+300,"yes",7]`,
		`["ä\"\\\n\u0001\u0000z",null,"x"]`,
		`["AP8=",null,"AA=="]`,
		`["Infinity",null,null]`,
		`["",null,""]`,
	}, readAll(t, src, Object{Name: "a"}, []string{"v", "b", "j"}, []string{"n"}))
	require.Equal(t, []string{"[]", "[]"}, readAll(t, src, Object{Query: "SELECT n FROM a WHERE n < 3"}, []string{}, nil))
	require.Len(t, readAll(t, src, Object{Name: "a"}, []string{}, nil), 8)
	_, err := src.(Reader).Rows(t.Context(), Object{Name: "a"}, []string{"V"}, nil)
	require.ErrorIs(t, err, ErrNoColumn)
	_, err = src.(Reader).Rows(t.Context(), Object{Name: "zzz"}, nil, nil)
	require.ErrorIs(t, err, ErrNoTable)
}

func TestSQLiteLocked(t *testing.T) {
	path := database(t, "CREATE TABLE a (a)")
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, sqlitex.ExecuteScript(conn, "PRAGMA locking_mode = exclusive; INSERT INTO a VALUES (1)", nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Open(ctx, "sqlite", credentials(map[string]any{"path": path}), Options{})
	require.ErrorContains(t, err, "context canceled", "a lock is not waited for when nobody waits")
}

// TestLanes: each integer is in one stretch, and in no other one.
func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64Range(-2000, 2000), rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64})).Draw(t, "number")
		found := 0
		require.NoError(t, lanes(func(low, high int64, _ bool) error {
			if low <= n && n <= high {
				found++
			}
			return nil
		}))
		require.Equal(t, 1, found)
	})
}
