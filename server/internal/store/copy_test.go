package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

func copyOf(t testing.TB, s *Store) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, s.Copy(t.Context(), &b))
	return b.Bytes()
}

// A copy of either kind of store starts a store of either kind.
func TestCopyAndStartFromIt(t *testing.T) {
	for _, from := range []string{inMem, onDisk} {
		for _, to := range []string{inMem, onDisk} {
			t.Run(from+" to "+to, func(t *testing.T) {
				s := open(t, Options{MasterKey: testKey}.a(t, from))
				w := built(t, s)
				token, err := s.SealText("log")
				require.NoError(t, err)
				data := copyOf(t, s)
				update(t, s, func(tx *Tx) { require.NoError(t, tx.DeleteOrganization(w.Organization.ID)) })

				o := Options{MasterKey: testKey, From: bytes.NewReader(data)}.a(t, to)
				copied := open(t, o)
				require.Equal(t, w.secrets(), secrets(t, copied, w))
				requireStored(t, copied, w)
				text, err := copied.UnsealText(token)
				require.NoError(t, err)
				require.Equal(t, "log", text)
				var later *world
				// A copy of one that nothing was added to since.
				second := open(t, Options{MasterKey: testKey, From: bytes.NewReader(copyOf(t, copied))}.a(t, to))
				update(t, second, func(tx *Tx) { later = build(t, tx, "later") })
				require.Equal(t, w.Sync.ID+1, later.Sync.ID, "ids go on in a copy of a copy")
				update(t, copied, func(tx *Tx) { later = build(t, tx, "later") })
				require.Equal(t, w.Sync.ID+1, later.Sync.ID, "ids go on")
				requireIntact(t, copied)
				require.Empty(t, names(t, s))
				require.NoError(t, copied.Close())
				if to == onDisk {
					left, err := filepath.Glob(filepath.Join(o.Dir, "*"))
					require.NoError(t, err)
					require.ElementsMatch(t, []string{filepath.Join(o.Dir, databaseFile), filepath.Join(o.Dir, databaseFile+sumEnd), filepath.Join(o.Dir, lockFile)}, left)
				}
				if to != inMem {
					again := open(t, Options{Dir: o.Dir})
					require.Equal(t, []string{"acme", "later"}, names(t, again))
				}
			})
		}
	}
}

// Unfit copies, for a new store and for one that runs.
func TestRefusedCopies(t *testing.T) {
	s := open(t, Options{MasterKey: testKey})
	update(t, s, func(tx *Tx) { build(t, tx, "acme") })
	data := copyOf(t, s)
	odd := filepath.Join(t.TempDir(), "odd")
	require.NoError(t, os.WriteFile(odd, data, 0o600))
	raw(t, odd, "CREATE TRIGGER surprise AFTER INSERT ON users BEGIN DELETE FROM users; END")
	oddData := contentOf(t, odd)
	newer := filepath.Join(t.TempDir(), "newer")
	require.NoError(t, os.WriteFile(newer, data, 0o600))
	raw(t, newer, "PRAGMA user_version = 99")
	newerData := contentOf(t, newer)
	foreign := filepath.Join(t.TempDir(), "foreign")
	raw(t, foreign, "CREATE TABLE t (x)")
	foreignData := contentOf(t, foreign)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		from func() io.Reader
		key  []byte
		want error // nil: some error
	}{
		"wrong key":          {func() io.Reader { return bytes.NewReader(data) }, otherKey, ErrWrongKey},
		"newer":              {func() io.Reader { return bytes.NewReader(newerData) }, testKey, ErrNewer},
		"another database":   {func() io.Reader { return bytes.NewReader(foreignData) }, testKey, nil},
		"other schema":       {func() io.Reader { return bytes.NewReader(oddData) }, testKey, ErrNotACopy},
		"cut":                {func() io.Reader { return bytes.NewReader(data[:len(data)/2]) }, testKey, ErrNotACopy},
		"text":               {func() io.Reader { return strings.NewReader(strings.Repeat("text ", 1000)) }, testKey, ErrNotACopy},
		"empty":              {func() io.Reader { return strings.NewReader("") }, testKey, ErrNotACopy},
		"unreadable":         {func() io.Reader { return io.MultiReader(bytes.NewReader(data[:5000]), iotest.ErrReader(broken)) }, testKey, broken},
		"header and nothing": {func() io.Reader { return strings.NewReader("SQLite format 3\x00") }, testKey, ErrNotACopy},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, o := range []Options{{}, {Dir: dir}} {
				o.MasterKey, o.From = c.key, c.from()
				_, err := Open(t.Context(), o)
				require.Error(t, err)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
				}
				if o.Dir != "" { // nothing is left that a later start would take for data
					require.NoFileExists(t, filepath.Join(dir, databaseFile))
				}
				o.From = nil
				running := open(t, o)
				update(t, running, func(tx *Tx) { build(t, tx, "stays") })
				err = running.Restore(t.Context(), c.from())
				require.Error(t, err)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
				}
				require.Equal(t, []string{"stays"}, names(t, running))
				require.NoError(t, running.Close())
			}
		})
	}
}

func TestStartFromCopyNeedsAnEmptyPlaceAndAKey(t *testing.T) {
	o := Options{MasterKey: testKey}.a(t, onDisk)
	s := open(t, o)
	data := copyOf(t, s)
	require.NoError(t, s.Close())
	o.From = bytes.NewReader(data)
	_, err := Open(t.Context(), o)
	require.ErrorIs(t, err, ErrHasData)
	_, err = Open(t.Context(), Options{From: bytes.NewReader(data)})
	require.ErrorContains(t, err, "a master key is needed")
}

func TestRestore(t *testing.T) {
	for _, kind := range []string{inMem, onDisk} {
		t.Run(kind, func(t *testing.T) {
			o := Options{MasterKey: testKey}.a(t, kind)
			s := open(t, o)
			var w, lost *world
			update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
			view(t, s, func(*Tx) {}) // a reader that has seen the old state
			data := copyOf(t, s)
			update(t, s, func(tx *Tx) {
				require.NoError(t, tx.DeleteOrganization(w.Organization.ID))
				lost = build(t, tx, "lost")
			})
			require.Equal(t, lost.secrets(), secrets(t, s, lost)) // its data keys are known now
			token, err := s.SealText("after")
			require.NoError(t, err)
			for range 2 {
				require.NoError(t, s.Restore(t.Context(), bytes.NewReader(data)))
				require.Equal(t, []string{"acme"}, names(t, s))
				require.Equal(t, w.secrets(), secrets(t, s, w))
				update(t, s, func(tx *Tx) { build(t, tx, "later") })
				requireIntact(t, s)
			}
			text, err := s.UnsealText(token)
			require.NoError(t, err)
			require.Equal(t, "after", text)
			if kind != inMem {
				require.NoError(t, s.Close())
				s = open(t, Options{Dir: o.Dir})
				require.Equal(t, []string{"acme", "later"}, names(t, s))
			}
		})
	}
}

// Backups and copies taken while another process, or this one, writes hold whole
// transactions only.
func TestBackupUnderWrites(t *testing.T) {
	matrixtest.Long(t)
	dir, outside := t.TempDir(), t.TempDir()
	to := filepath.Join(outside, "backup.db")
	c := start(t, "write", Options{Dir: dir})
	last := 0
	for range 5 {
		c.line(t)
		require.NoError(t, Backup(t.Context(), dir, to)) // replaces the one before
		f, err := os.Open(to)
		require.NoError(t, err)
		s, err := Open(t.Context(), Options{MasterKey: testKey, From: f})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		rounds := requireWhole(t, s)
		require.Greater(t, rounds, last)
		last = rounds
		require.NoError(t, s.Close())
	}
	c.kill()
	info, err := os.Stat(to)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestCopyUnderWrites(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		done := make(chan error)
		go func() {
			var err error
			for i := 0; i < 40 && err == nil; i++ {
				err = s.Update(context.Background(), writeRound)
			}
			done <- err
		}()
		for range 5 {
			var b bytes.Buffer
			require.NoError(t, s.Copy(t.Context(), &b))
			staged, _, err := sqlite.Stage(t.Context(), "", &b, s.keys.Check)
			require.NoError(t, err)
			var rounds, organizations int64
			require.NoError(t, second(staged.Run("SELECT (SELECT coalesce(max(value + 0), 0) FROM settings WHERE key <> 'session'), (SELECT count(*) FROM organizations)", func(c sqlite.Row) error {
				rounds, _ = c.Number(0)
				organizations, _ = c.Number(1)
				return nil
			})))
			require.Equal(t, rounds, organizations)
			require.NoError(t, staged.Close())
		}
		require.NoError(t, <-done)
	})
}

func TestRefusedBackups(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	to := filepath.Join(outside, "backup.db")
	require.ErrorIs(t, Backup(t.Context(), dir, to), os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, databaseFile), nil, 0o600))
	require.ErrorContains(t, Backup(t.Context(), dir, to), "no data yet")
	s := open(t, Options{Dir: dir})
	update(t, s, func(tx *Tx) { build(t, tx, "acme") })
	require.ErrorContains(t, Backup(t.Context(), dir, filepath.Join(dir, "backup.db")), "outside of the data directory")
	require.ErrorContains(t, Backup(t.Context(), dir, filepath.Join(dir, databaseFile)), "outside of the data directory")
	require.ErrorIs(t, Backup(t.Context(), dir, filepath.Join(outside, "missing", "b")), os.ErrNotExist)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, Backup(ctx, dir, to), context.Canceled)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

func FuzzRestore(f *testing.F) {
	s, err := Open(f.Context(), Options{MasterKey: testKey})
	require.NoError(f, err)
	var b bytes.Buffer
	require.NoError(f, s.Copy(f.Context(), &b))
	f.Add(0, []byte{})
	f.Add(18, []byte{2, 2})
	f.Add(5000, []byte("xxxxxxxxxxxxxxxxxxxxx"))
	f.Fuzz(func(t *testing.T, at int, change []byte) {
		data := bytes.Clone(b.Bytes())
		if at < 0 {
			data = change
		} else if at < len(data) {
			copy(data[at:], change)
		}
		restored, err := Open(t.Context(), Options{MasterKey: testKey, From: bytes.NewReader(data)})
		if err == nil {
			require.NoError(t, restored.Close())
		}
	})
}
