package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// version puts another user_version into the heading of a file.
func version(number ...byte) func([]byte) []byte {
	return func(text []byte) []byte { copy(text[60:], number); return text }
}

// TestDamagedDatabase: whatever a disk or an editor has done to the file, Open
// reports the damage and leaves it as it is.
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
			text := contentOf(t, file)
			text = spoil(text)
			require.NoError(t, os.WriteFile(file, text, 0o600))
			_, err = Open(t.Context(), o)
			require.ErrorIs(t, err, ErrDamaged)
			kept := contentOf(t, file)
			require.True(t, bytes.Equal(text, kept), "the file was changed")
		})
	}
}

// TestDamagedCopy: a copy that does not open as a data directory does not restore
// either, and leaves nothing behind.
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
	good := contentOf(t, file)
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

// TestDamagedLog: with any bit of a killed process's log flipped, an opened store lacks
// at most the last change; else it is reported as damaged.
func TestDamagedLog(t *testing.T) {
	const changes = 12
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, Options{Dir: dir, MasterKey: testKey})
	for i := range changes {
		update(t, s, func(tx *Tx) { require.NoError(t, tx.SetSetting("change", strconv.Itoa(i+1))) })
	}
	killed := filepath.Join(t.TempDir(), "killed")
	require.NoError(t, os.CopyFS(killed, os.DirFS(dir)))
	log := filepath.Join(killed, databaseFile+"-wal")
	good := contentOf(t, log)
	database := contentOf(t, filepath.Join(killed, databaseFile))
	opened := func(text []byte) (change int, err error) {
		dir := filepath.Join(t.TempDir(), "data")
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile), database, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile+"-wal"), text, 0o600))
		s, err := Open(t.Context(), Options{Dir: dir, MasterKey: testKey})
		if err != nil {
			left, readErr := os.ReadFile(filepath.Join(dir, databaseFile+"-wal"))
			require.NoError(t, readErr)
			require.True(t, bytes.Equal(text, left), "the log was changed")
			return 0, err
		}
		view(t, s, func(tx *Tx) {
			value, err := tx.Setting("change")
			require.NoError(t, err)
			change, err = strconv.Atoi(value)
			require.NoError(t, err)
		})
		require.NoError(t, s.Close())
		return change, nil
	}
	change, err := opened(good)
	require.NoError(t, err)
	require.Equal(t, changes, change)
	refused, places := 0, []int{0, 3, 9, 16, 20, 30, len(good) - 1}
	for at := 32; at < len(good); at += 7919 {
		places = append(places, at)
	}
	for _, at := range places {
		bad := bytes.Clone(good)
		bad[at] ^= 1 << (at % 8)
		change, err := opened(bad)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged, "byte %d of %d", at, len(good))
			require.ErrorContains(t, err, "its log destkit.db-wal is damaged")
			refused++
			continue
		}
		require.GreaterOrEqual(t, change, changes-1, "byte %d of %d", at, len(good))
	}
	require.Greater(t, refused, len(places)/2)
	for _, torn := range [][]byte{good[:len(good)-1], good[:len(good)-100], append(bytes.Clone(good), make([]byte, 5000)...), append(bytes.Clone(good), good[32:32+24]...)} {
		change, err := opened(torn)
		require.NoError(t, err)
		require.GreaterOrEqual(t, change, changes-1)
	}
}

// A process that is killed in the middle of its writes leaves whole transactions:
// all that it saw committed, and at most one more.
func TestKilledWhileWriting(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	o := Options{MasterKey: testKey}.a(t, onDisk)
	total := 0
	for round := range rounds {
		c := start(t, "write", o)
		told := 1 + round%5
		for n := 1; n <= told; n++ {
			require.Equal(t, fmt.Sprint("committed ", n), c.line(t))
		}
		c.kill()
		for c.lines.Scan() { // its output before it died
			if strings.HasPrefix(c.lines.Text(), "committed ") {
				told++
			}
		}
		s, err := Open(t.Context(), o)
		require.NoError(t, err)
		done := requireWhole(t, s)
		require.GreaterOrEqual(t, done, total+told)
		require.LessOrEqual(t, done, total+told+1)
		total = done
		require.NoError(t, s.Close())
	}
}

// On a full disk a change fails as a whole, reading goes on, and after something
// was deleted writing goes on too.
func TestDiskFull(t *testing.T) {
	eachFull := map[string]Options{"memory": {maxPages: 150}, "disk": {Dir: t.TempDir(), maxPages: 150}}
	for name, o := range eachFull {
		t.Run(name, func(t *testing.T) {
			s := open(t, o)
			var err error
			rounds := 0
			for ; err == nil; rounds++ {
				err = s.Update(t.Context(), writeRound)
			}
			require.ErrorIs(t, err, ErrFull)
			require.ErrorContains(t, err, "no space left")
			require.Equal(t, rounds-1, requireWhole(t, s))
			// An error that is swallowed does not let half of the change through.
			err = s.Update(t.Context(), func(tx *Tx) error {
				for range 50 {
					_ = writeRound(tx)
				}
				return nil
			})
			require.ErrorIs(t, err, ErrFull)
			require.Equal(t, rounds-1, requireWhole(t, s))
			update(t, s, func(tx *Tx) {
				all, _, err := tx.Organizations(Page{PerPage: 10})
				require.NoError(t, err)
				for _, o := range all {
					require.NoError(t, tx.DeleteOrganization(o.ID))
				}
				require.NoError(t, tx.SetSetting("rounds", fmt.Sprint(rounds-1-len(all))))
			})
			for range 5 {
				require.NoError(t, s.Update(t.Context(), writeRound))
			}
			require.Equal(t, rounds-1-10+5, requireWhole(t, s))
			require.False(t, errors.Is(s.Close(), ErrFull))
		})
	}
}
