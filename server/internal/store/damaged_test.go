package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// version puts another user_version into the heading of a file.
func version(number ...byte) func([]byte) []byte {
	return func(text []byte) []byte { copy(text[60:], number); return text }
}

// TestDamagedDatabase: whatever a disk or an editor has done to the file, Open
// says so and leaves it as it is.
func TestDamagedDatabase(t *testing.T) {
	for name, spoil := range map[string]func(text []byte) []byte{
		"heading":                   func(text []byte) []byte { copy(text, "no database"); return text },
		"cut off":                   func(text []byte) []byte { return text[:10_000] },
		"a negative version":        version(0xff, 0xff, 0xff, 0xfe),
		"the most negative one":     version(0x80, 0, 0, 0),
		"tables and no version":     version(0, 0, 0, 0),
		"an older version's number": version(0, 0, 0, 2),
		"a text":                    func([]byte) []byte { return []byte("email,name\nada@example.com,Ada\n") },
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: filepath.Join(t.TempDir(), "data"), MasterKey: make([]byte, 32)}
			s, err := Open(t.Context(), o)
			require.NoError(t, err)
			require.NoError(t, s.Close())
			file := filepath.Join(o.Dir, databaseFile)
			require.NoError(t, os.Remove(file+sumEnd)) // as after a kill
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			text = spoil(text)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			_, err = Open(t.Context(), o)
			require.ErrorIs(t, err, ErrDamaged)
			kept, err := os.ReadFile(file)
			require.NoError(t, err)
			require.True(t, bytes.Equal(text, kept), "the file was changed")
		})
	}
}

// TestDamagedCopy: what does not open as a data directory does not restore either, and
// leaves nothing behind.
func TestDamagedCopy(t *testing.T) {
	s := open(t, Options{MasterKey: testKey})
	var good bytes.Buffer
	require.NoError(t, s.Copy(t.Context(), &good))
	for _, number := range [][]byte{{0xff, 0xff, 0xff, 0xfe}, {0x80, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 2}} {
		data := version(number...)(bytes.Clone(good.Bytes()))
		dir := filepath.Join(t.TempDir(), "data")
		_, err := Open(t.Context(), Options{Dir: dir, MasterKey: testKey, From: bytes.NewReader(data)})
		require.ErrorIs(t, err, ErrNotACopy, "version %x", number)
		require.False(t, HoldsData(dir))
		require.ErrorIs(t, s.Restore(t.Context(), bytes.NewReader(data)), ErrNotACopy, "version %x", number)
	}
}

// TestChangedBackup: whichever byte of a backup is another one, or wherever it ends, it
// is refused, or every value in it is as it was.
func TestChangedBackup(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: filepath.Join(dir, "data"), MasterKey: testKey})
	update(t, s, func(tx *Tx) { build(t, tx, "acme") })
	file := filepath.Join(dir, "backup.db")
	require.NoError(t, Backup(t.Context(), s.dir, file))
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	content := func(data []byte) (string, error) {
		opened, err := Open(t.Context(), Options{MasterKey: testKey, From: bytes.NewReader(data)})
		if err != nil {
			return "", err
		}
		defer func() { require.NoError(t, opened.Close()) }()
		return opened.writing.Checksum()
	}
	want, err := content(good)
	require.NoError(t, err)
	at := bytes.Index(good, []byte("acme"))
	require.Positive(t, at, "a value stands there in the clear")
	bad := bytes.Clone(good)
	bad[at] ^= 1
	_, err = content(bad)
	require.ErrorIs(t, err, ErrNotACopy)
	require.ErrorContains(t, err, "its checksum is wrong")
	for at := 0; at < len(good); at += 9973 {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		if got, err := content(bad); err == nil {
			require.Equal(t, want, got, "byte %d of %d", at, len(good))
		}
		_, err = content(good[:at])
		require.Error(t, err, "cut at %d of %d", at, len(good))
	}
}
