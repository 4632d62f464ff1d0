package store

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	driver "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// raw runs statements on a database that no store has open.
func raw(t testing.TB, path, script string) {
	t.Helper()
	c, err := handles.Open(path, driver.OpenReadWrite|driver.OpenCreate)
	require.NoError(t, err)
	require.NoError(t, sqlitex.ExecuteScript(c, script, nil))
	require.NoError(t, handles.Close(c))
}

func TestModesOfFiles(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the modes of files are those of Unix")
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, Options{Dir: dir})
	update(t, s, func(tx *Tx) { build(t, tx, "acme") })
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|0o700, info.Mode())
	found, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range found {
		info, err := f.Info()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode(), f.Name())
		names = append(names, f.Name())
	}
	require.ElementsMatch(t, []string{"destkit.db", "destkit.db-wal", "destkit.db-shm", "owner", "owner.lock"}, names)
}

// A file that others could read is closed to them again.
func TestModeIsMended(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the modes of files are those of Unix")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile), nil, 0o644))
	_ = open(t, Options{Dir: dir})
	info, err := os.Stat(filepath.Join(dir, databaseFile))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
}

// Whatever was left by a process that was killed, no file holds a secret: not
// the database, not its log, not a backup.
func TestNoSecretInAnyFile(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	c := start(t, "world", Options{Dir: dir})
	var given []string
	require.NoError(t, json.Unmarshal([]byte(c.line(t)), &given))
	require.Equal(t, "ready", c.line(t))
	require.NoError(t, Backup(t.Context(), dir, filepath.Join(outside, "backup.db")))
	c.kill()
	forbidden := append(given, secretToken, secretPassword, secretEndpoint, secretSigning, "SECRET", string(testKey))
	files := 0
	for _, root := range []string{dir, outside} {
		require.NoError(t, filepath.WalkDir(root, func(path string, f fs.DirEntry, err error) error {
			require.NoError(t, err)
			if f.IsDir() {
				return nil
			}
			files++
			text := contentOf(t, path)
			for _, secret := range forbidden {
				require.NotContains(t, string(text), secret, path)
			}
			return nil
		}))
	}
	require.Equal(t, 6, files)
	log, err := os.Stat(filepath.Join(dir, databaseFile+"-wal"))
	require.NoError(t, err)
	require.NotZero(t, log.Size())
}

func TestSecondProcessIsRefused(t *testing.T) {
	o := Options{MasterKey: testKey}.a(t, onDisk)
	c := start(t, "hold", o)
	require.Equal(t, "ready", c.line(t))
	refused := func(want string) {
		t.Helper()
		_, err := Open(t.Context(), o)
		var owned *OwnedError
		require.ErrorAs(t, err, &owned)
		require.Equal(t, want, owned.Owner)
		require.ErrorContains(t, err, "in use by "+want)
	}
	refused("pid 4711, http://127.0.0.1:8080")
	_, err := fmt.Fprintln(c.stdin, "pid 4711, http://127.0.0.1:9")
	require.NoError(t, err)
	require.Equal(t, "named", c.line(t))
	refused("pid 4711, http://127.0.0.1:9")
	c.kill()
	_ = open(t, o) // a process that is gone holds nothing
}

func TestSameProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Owner: "me"})
	_, err := Open(t.Context(), Options{Dir: dir, MasterKey: testKey})
	require.EqualError(t, err, "open data directory "+dir+": the data directory is in use by me")
	require.NoError(t, s.Close())
	_ = open(t, Options{Dir: dir})
}

func TestNewerVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	require.NoError(t, s.Close())
	path := filepath.Join(dir, databaseFile)
	raw(t, path, fmt.Sprintf("PRAGMA user_version = %d", sqlite.Version()+7))
	require.NoError(t, os.Remove(path+sumEnd)) // as that version would
	before := contentOf(t, path)
	_, err := Open(t.Context(), Options{Dir: dir, MasterKey: testKey})
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, fmt.Sprintf("the data has version %d, this program knows versions up to %d", sqlite.Version()+7, sqlite.Version()))
	after := contentOf(t, path)
	require.Equal(t, before, after)
}

func TestForeignFiles(t *testing.T) {
	for name, make := range map[string]func(path string){
		"another program's database": func(path string) { raw(t, path, "CREATE TABLE t (x)") },
		"no database": func(path string) {
			require.NoError(t, os.WriteFile(path, []byte("hello, this is a text and no database at all, really"), 0o600))
		},
		"a folder": func(path string) { require.NoError(t, os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			make(filepath.Join(dir, databaseFile))
			_, err := Open(t.Context(), Options{Dir: dir, MasterKey: testKey})
			require.ErrorContains(t, err, "open data directory "+dir)
			require.NoFileExists(t, filepath.Join(dir, ownerFile)) // and the lock is given back
		})
	}
}

func TestDirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(t.Context(), Options{Dir: filepath.Join(file, "below"), MasterKey: testKey})
	require.ErrorContains(t, err, "open data directory")
}

// Names with characters that mean something to SQLite or to globs.
func TestOddDirectoryNames(t *testing.T) {
	for _, name := range []string{"a b", "q?mode=ro", "h#x", "50%25", "[ab]*", "ü", "file:x"} {
		dir := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.Mkdir(dir, 0o700))
		old := filepath.Join(dir, "x"+leftover)
		require.NoError(t, os.WriteFile(old, nil, 0o600))
		s := open(t, Options{Dir: dir})
		require.NoFileExists(t, old)
		require.FileExists(t, filepath.Join(dir, databaseFile))
		require.NoError(t, Backup(t.Context(), dir, filepath.Join(t.TempDir(), name)))
		require.NoError(t, s.Close())
	}
}
