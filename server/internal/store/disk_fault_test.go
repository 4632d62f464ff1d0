package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit/diskfault"
)

// diskFaults are what a disk may do to an operation that writes, with the error that the
// caller gets.
var diskFaults = []struct {
	name  string
	fault diskfault.Fault
	is    error
}{
	{"a sync fails", diskfault.Fault{Op: diskfault.Sync, Code: diskfault.SyncFails}, ErrDisk},
	{"a write fails", diskfault.Fault{Op: diskfault.Write, Code: diskfault.WriteFails}, ErrDisk},
	{"no room", diskfault.Fault{Op: diskfault.Write, Code: diskfault.NoRoom}, ErrFull},
	{"a short write", diskfault.Fault{Op: diskfault.Write, Code: diskfault.NoRoom, Short: true}, ErrFull},
	{"a read fails", diskfault.Fault{Op: diskfault.Read, Code: diskfault.ReadFails}, ErrDisk},
}

// faulty is a store on a disk that can fail.
type faulty struct {
	*testing.T
	*Store
	disk *diskfault.Disk
}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	disk := diskfault.Under(t, dir)
	return &faulty{t, open(t, Options{Dir: dir}), disk}
}

// put sets a setting to a text of so many bytes, which say which one it is.
func (f *faulty) put(key string, size int) error {
	return f.Update(f.Context(), func(tx *Tx) error { return tx.SetSetting(key, strings.Repeat("x", size)) })
}

// killed copies the directory as a process leaves it that is killed now.
func (f *faulty) killed() string {
	f.Helper()
	to := filepath.Join(f.TempDir(), "killed")
	require.NoError(f, os.CopyFS(to, os.DirFS(f.dir)))
	return to
}

// lost copies the directory as a machine leaves it whose power is lost now.
func (f *faulty) lost() string {
	f.Helper()
	to := filepath.Join(f.TempDir(), "lost")
	require.NoError(f, f.disk.PowerLost(to))
	return to
}

// settings opens a directory and reads how long the texts of settings are there; 0: there
// is none.
func settings(t *testing.T, dir string, keys ...string) (sizes []int) {
	t.Helper()
	s, err := Open(t.Context(), Options{Dir: dir, MasterKey: testKey})
	require.NoError(t, err)
	for _, key := range keys {
		view(t, s, func(tx *Tx) {
			text, err := tx.Setting(key)
			require.True(t, err == nil || errors.Is(err, ErrNotFound), err)
			sizes = append(sizes, len(text))
		})
	}
	require.NoError(t, s.Close())
	return sizes
}

// TestFaultsUnderAChange: a change that the disk refuses returns the reason and is visible
// to no one from then on, not even after a kill or a power loss, and the next one
// succeeds.
func TestFaultsUnderAChange(t *testing.T) {
	for _, c := range diskFaults {
		if c.fault.Op == diskfault.Read {
			continue // a change reads from memory
		}
		t.Run(c.name, func(t *testing.T) {
			f := newFaulty(t)
			require.NoError(t, f.put("kept", 10))
			c.fault.Times = 1
			f.disk.Fail(c.fault)
			err := f.put("refused", 30_000)
			require.ErrorIs(t, err, c.is)
			require.Equal(t, 1, f.disk.Heal())
			keys := []string{"kept", "refused", "later"}
			require.Equal(t, []int{10, 0, 0}, settings(t, f.killed(), keys...))
			require.Equal(t, []int{10, 0, 0}, settings(t, f.lost(), keys...))
			view(t, f.Store, func(tx *Tx) {
				_, err := tx.Setting("refused")
				require.ErrorIs(t, err, ErrNotFound)
			})
			require.NoError(t, f.put("later", 20))
			require.Equal(t, []int{10, 0, 20}, settings(t, f.killed(), keys...))
			require.Equal(t, []int{10, 0, 20}, settings(t, f.lost(), keys...))
		})
	}
}

// TestFailedSyncThenKilled: data that a sync could not write can be read as long as the
// machine runs, so the next process takes it for written. It makes sure of it, before
// changes are acknowledged that follow it in the log.
func TestFailedSyncThenKilled(t *testing.T) {
	f := newFaulty(t)
	require.NoError(t, f.put("kept", 10))
	f.disk.Fail(diskfault.Fault{Op: diskfault.Sync, Code: diskfault.SyncFails})
	require.ErrorIs(t, f.put("unknown", 30_000), ErrDisk)
	f.disk.Heal()
	dir := filepath.Join(t.TempDir(), "killed")
	f.disk = f.disk.Killed(t, dir)
	f.Store = open(t, Options{Dir: dir})
	require.NoError(t, f.put("later", 20))
	sizes := settings(t, f.lost(), "kept", "later")
	require.Equal(t, []int{10, 20}, sizes, "acknowledged")
}

// TestFailedChangesInTheLog: the remains of refused changes in the log are not taken for
// acknowledged ones.
func TestFailedChangesInTheLog(t *testing.T) {
	f := newFaulty(t)
	require.NoError(t, f.put("kept", 10))
	f.disk.Fail(diskfault.Fault{Op: diskfault.Sync, Code: diskfault.SyncFails})
	for _, size := range []int{60_000, 40_000, 20_000} {
		require.ErrorIs(t, f.put("refused", size), ErrDisk)
	}
	f.disk.Heal()
	require.NoError(t, f.put("later", 20))
	require.Equal(t, []int{10, 20}, settings(t, f.killed(), "kept", "later"))
}

// TestFaultsUnderAStart: if any operation of a start fails, in a new directory, after a
// kill or from a copy, the error names the directory, and the next start finds everything.
// A start that succeeds has made sure of all of it.
func TestFaultsUnderAStart(t *testing.T) {
	matrixtest.Long(t)
	source := newFaulty(t)
	require.NoError(t, source.put("kept", 10))
	killed := source.killed()
	var backup bytes.Buffer
	require.NoError(t, source.Copy(t.Context(), &backup))
	for _, c := range diskFaults {
		for _, how := range []string{"new", "killed", "from a copy"} {
			t.Run(how+", "+c.name, func(t *testing.T) {
				// The first operations one by one, then fewer and fewer of them.
				for n := 0; ; n += 1 + n/2 {
					dir, want, from := filepath.Join(t.TempDir(), "data"), 10, []byte(nil)
					switch how {
					case "new":
						want = 0
					case "killed":
						require.NoError(t, os.CopyFS(dir, os.DirFS(killed)))
					case "from a copy":
						from = backup.Bytes()
					}
					c.fault.After, c.fault.Times = n, 1
					if startsUnder(t, dir, from, c.fault, c.is, want) {
						return
					}
				}
			})
		}
	}
}

// startsUnder starts a directory under a fault and again without it. It reports whether the
// fault was past the end of the start.
func startsUnder(t *testing.T, dir string, from []byte, fault diskfault.Fault, is error, want int) (past bool) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	disk := diskfault.Under(t, dir)
	options := func() Options {
		o := Options{Dir: dir, MasterKey: testKey}
		if from != nil && !HoldsData(dir) {
			o.From = bytes.NewReader(from)
		}
		return o
	}
	disk.Fail(fault)
	s, err := Open(t.Context(), options())
	past = disk.Heal() == 0
	if err != nil {
		require.ErrorIs(t, err, is)
		require.ErrorContains(t, err, dir)
		s, err = Open(t.Context(), options())
		require.NoError(t, err, "after operation %d", fault.After)
	}
	to := filepath.Join(t.TempDir(), "lost")
	require.NoError(t, disk.PowerLost(to))
	require.Equal(t, []int{want}, settings(t, to, "kept"), "operation %d", fault.After)
	view(t, s, func(tx *Tx) {
		text, err := tx.Setting("kept")
		require.True(t, err == nil || want == 0, err)
		require.Len(t, text, want)
	})
	require.NoError(t, s.Close())
	return past
}

// TestFaultsUnderAStop: a stop whose last checkpoint fails keeps the log, and the next
// start finds everything.
func TestFaultsUnderAStop(t *testing.T) {
	for _, c := range diskFaults {
		t.Run(c.name, func(t *testing.T) {
			f := newFaulty(t)
			require.NoError(t, f.put("kept", 30_000))
			f.disk.Fail(c.fault)
			require.NoError(t, f.Close())
			require.Positive(t, f.disk.Heal())
			require.NoFileExists(t, filepath.Join(f.dir, databaseFile+sumEnd))
			require.Equal(t, []int{30_000}, settings(t, f.lost(), "kept"))
			require.Equal(t, []int{30_000}, settings(t, f.dir, "kept"))
		})
	}
}

// TestFaultsUnderACheckpoint: a checkpoint that fails changes nothing, and the next one
// writes all of it again.
func TestFaultsUnderACheckpoint(t *testing.T) {
	for _, c := range diskFaults {
		for _, file := range []string{databaseFile, databaseFile + "-wal"} {
			t.Run(c.name+", "+file, func(t *testing.T) {
				f := newFaulty(t)
				require.NoError(t, f.put("kept", 30_000))
				c.fault.File = file
				f.disk.Fail(c.fault)
				err := f.writing.Checkpoint()
				if f.disk.Heal() > 0 {
					require.ErrorIs(t, err, c.is)
				}
				require.Equal(t, []int{30_000}, settings(t, f.lost(), "kept"))
				require.Equal(t, []int{30_000}, settings(t, f.killed(), "kept"))
				err = f.writing.Checkpoint()
				require.NoError(t, err)
				require.NoError(t, f.put("later", 20))
				require.Equal(t, []int{30_000, 20}, settings(t, f.lost(), "kept", "later"))
			})
		}
	}
}

// TestNoRoomForTheIndexOfTheLog: the log has grown, its index cannot. SQLite reports an
// error of the disk; the disk is full.
func TestNoRoomForTheIndexOfTheLog(t *testing.T) {
	f := newFaulty(t)
	require.NoError(t, f.put("kept", 10))
	f.disk.Fail(diskfault.Fault{Op: diskfault.Share, Code: diskfault.NoRoomIndex})
	const more = 20 << 20 // bytes: more pages than the first part of the index counts
	err := f.put("refused", more)
	require.ErrorIs(t, err, ErrFull)
	require.True(t, Full(err))
	require.Positive(t, f.disk.Heal())
	require.Equal(t, []int{10, 0}, settings(t, f.killed(), "kept", "refused"))
	require.NoError(t, f.put("later", more))
	require.Equal(t, []int{10, 0, more}, settings(t, f.killed(), "kept", "refused", "later"))
}
