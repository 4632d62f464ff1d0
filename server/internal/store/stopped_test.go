package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// stopped is a data directory that a store has filled and left.
func stopped(t *testing.T) (o Options, file string) {
	t.Helper()
	o = Options{Dir: filepath.Join(t.TempDir(), "data"), MasterKey: testKey}
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	update(t, s, func(tx *Tx) { build(t, tx, "acme") })
	require.NoError(t, s.Close())
	return o, filepath.Join(o.Dir, databaseFile)
}

// TestChangedDatabase: with any bit of a database flipped after a stop, the start
// reports the damage and leaves it as it is.
func TestChangedDatabase(t *testing.T) {
	o, file := stopped(t)
	good := contentOf(t, file)
	places := []int{0, 16, 18, 19, 28, 60, 68, 100, len(good) / 2, len(good) - 1, bytes.Index(good, []byte("acme"))}
	for at := 0; at < len(good); at += 39_989 {
		places = append(places, at)
	}
	for _, at := range places {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		_, err := Open(t.Context(), o)
		require.ErrorIs(t, err, ErrDamaged, "byte %d", at)
		require.ErrorContains(t, err, o.Dir)
		require.ErrorContains(t, err, "restore a backup into a new directory")
		left := contentOf(t, file)
		require.True(t, bytes.Equal(bad, left), "byte %d: the file was changed", at)
	}
	require.NoError(t, os.WriteFile(file, good, 0o600))
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	require.FileExists(t, file+sumEnd)
	update(t, s, func(tx *Tx) { build(t, tx, "later") })
	require.NoFileExists(t, file+sumEnd, "it says nothing of a database that changes")
	require.NoError(t, s.Close())
	require.FileExists(t, file+sumEnd)
}

// TestDatabaseWithoutItsSum: with no checksum, or a damaged one, or that of another
// file, a whole database opens, and one whose pages do not fit does not.
func TestDatabaseWithoutItsSum(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, sum string){
		"removed": func(t *testing.T, sum string) { require.NoError(t, os.Remove(sum)) },
		"emptied": func(t *testing.T, sum string) { require.NoError(t, os.WriteFile(sum, nil, 0o600)) },
		"flipped": func(t *testing.T, sum string) {
			text := contentOf(t, sum)
			text[len(text)/2] ^= 1
			require.NoError(t, os.WriteFile(sum, text, 0o600))
		},
		"of another database": func(t *testing.T, sum string) {
			_, other := stopped(t)
			text := contentOf(t, other+sumEnd)
			require.NoError(t, os.WriteFile(sum, text, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, file := stopped(t)
			spoil(t, file+sumEnd)
			sum, sumErr := os.ReadFile(file + sumEnd)
			good := contentOf(t, file)
			damage(t, file)
			_, err := Open(t.Context(), o)
			require.ErrorIs(t, err, ErrDamaged)
			require.NoError(t, os.WriteFile(file, good, 0o600))
			if sumErr == nil {
				require.NoError(t, os.WriteFile(file+sumEnd, sum, 0o600))
			}
			s, err := Open(t.Context(), o)
			require.NoError(t, err)
			require.NoError(t, s.Close())
		})
	}
}

// damage makes the first page of a table one that is none.
func damage(t *testing.T, file string) {
	t.Helper()
	c, err := handles.Open("file:"+filepath.ToSlash(file)+"?immutable=1", sqlite.OpenReadOnly|sqlite.OpenURI)
	require.NoError(t, err)
	number := func(query string) (n int64) {
		require.NoError(t, sqlitex.ExecuteTransient(c, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			n = stmt.ColumnInt64(0)
			return nil
		}}))
		return n
	}
	page, size := number("SELECT rootpage FROM sqlite_schema WHERE name = 'workspaces'"), number("PRAGMA page_size")
	require.NoError(t, handles.Close(c))
	text := contentOf(t, file)
	text[(page-1)*size] ^= 0x70
	require.NoError(t, os.WriteFile(file, text, 0o600))
}

// TestBackupInItsPlace: a backup that was put in the place of a database by hand is
// compared with the checksum that it holds.
func TestBackupInItsPlace(t *testing.T) {
	o, file := stopped(t)
	backup := filepath.Join(t.TempDir(), "backup.db")
	require.NoError(t, Backup(t.Context(), o.Dir, backup))
	text := contentOf(t, backup)
	at := bytes.Index(text, []byte("acme"))
	require.Positive(t, at)
	text[at] ^= 1
	require.NoError(t, os.Remove(file+sumEnd))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	_, err := Open(t.Context(), o)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "it is a backup, and its checksum is wrong")
}
