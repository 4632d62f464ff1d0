package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// made writes a database and gives its file.
func made(t *testing.T, flags sqlite.OpenFlags, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a ?#%.db")
	conn, err := handles.Open(file, flags|sqlite.OpenReadWrite|sqlite.OpenCreate)
	require.NoError(t, err)
	require.NoError(t, sqlitex.ExecuteScript(conn, script, nil))
	require.NoError(t, handles.Close(conn))
	return file
}

// TestSQLiteOfOthersIsRefused: not a byte of it changes, and no file appears next to it.
func TestSQLiteOfOthersIsRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(text, []byte("some notes"), 0o600))
	for name, tc := range map[string]struct{ file, want string }{
		"no database":      {text, "the file is not a SQLite database"},
		"other mark":       {made(t, 0, "PRAGMA application_id = 1684763508"), "the file is a database of another program (application id 0x646b7374)"},
		"other table":      {made(t, 0, "CREATE TABLE users (id INTEGER)"), `the file holds the table "users"`},
		"other table, log": {made(t, sqlite.OpenWAL, "CREATE TABLE users (id INTEGER)"), `the file holds the table "users"`},
		"one more table":   {made(t, 0, sqliteSchema+"CREATE TABLE users (id INTEGER)"), `the file holds the table "users"`},
		"other columns":    {made(t, 0, "CREATE TABLE records (id INTEGER PRIMARY KEY, artist TEXT)"), `the file holds the table "records"`},
		"a view":           {made(t, 0, "CREATE VIEW one AS SELECT 1"), `the file holds the table "one"`},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := os.ReadFile(tc.file)
			require.NoError(t, err)
			_, err = Open("sqlite:" + tc.file)
			require.ErrorContains(t, err, "open store "+tc.file+": "+tc.want)
			require.ErrorContains(t, err, ": give the simulator another file, sqlite:FILE")
			after, err := os.ReadFile(tc.file)
			require.NoError(t, err)
			require.Equal(t, before, after)
			files, err := os.ReadDir(filepath.Dir(tc.file))
			require.NoError(t, err)
			require.Len(t, files, 1)
		})
	}
}

// TestSQLiteOfOlderSimulators: their files have no mark, and get one.
func TestSQLiteOfOlderSimulators(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for name, file := range map[string]string{
		"older":       made(t, sqlite.OpenWAL, sqliteSchema+"INSERT INTO records (tbl, data) VALUES ('t', '{}')"),
		"empty file":  empty,
		"no file yet": filepath.Join(t.TempDir(), "new.db"),
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				s, err := openSQLite(file)
				require.NoError(t, err)
				require.NoError(t, s.Restart())
				_, total, err := s.Scan("t", 0, 10)
				require.NoError(t, err)
				require.Equal(t, map[string]int{"older": 1}[name], total)
				id, err := sqliteMark(s.conn)
				require.NoError(t, err)
				require.EqualValues(t, applicationID, id)
				require.NoError(t, s.Close())
			}
		})
	}
}
