package diskfault

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	lib "modernc.org/sqlite/lib"
)

// Op is what SQLite does with a file.
type Op int

// Operations that can fail.
const (
	Sync Op = iota
	Write
	Read
	Truncate
	Share // maps a part of the index of a log; it fails where the file has to grow
)

// How it fails.
const (
	SyncFails   = int32(lib.SQLITE_IOERR_FSYNC)
	WriteFails  = int32(lib.SQLITE_IOERR_WRITE)
	ReadFails   = int32(lib.SQLITE_IOERR_READ)
	NoRoom      = int32(lib.SQLITE_FULL)
	NoRoomIndex = int32(lib.SQLITE_IOERR_SHMSIZE) // the full-disk error of Share
	shortWrites = 2                               // a short write gets as much of its bytes to the disk: one half
)

// Fault is what happens to some operations.
type Fault struct {
	Op Op
	// Code is what SQLite is answered.
	Code int32
	// File is the end of the names of the files; "" are all.
	File string
	// After is how many succeed before; Times is how many fail then, 0: all.
	After, Times int
	// Short has half of a write reach the file.
	Short bool
}

// Disk is what the databases in a folder lie on.
type Disk struct {
	dir string

	mu    sync.Mutex
	fault *Fault
	seen  int // operations that the fault is for
	met   int // of them, those that failed
	files []*file
}

// file is one file of a database by its place on the disk, under whatever name.
type file struct {
	path    string
	info    os.FileInfo
	durable []byte
	pending []change // written since the last sync
	open    int
}

// change is a write, or where data is nil the end of the file.
type change struct {
	at   int64
	data []byte
}

var disks sync.Map // *Disk to nothing

// Under has the databases that are opened in a folder from now on lie on a disk that can
// fail, until the test ends.
func Under(t testing.TB, dir string) *Disk {
	t.Helper()
	if registered != lib.SQLITE_OK {
		t.Fatalf("put a disk beneath SQLite: code %d", registered)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := &Disk{dir: dir}
	disks.Store(d, nil)
	t.Cleanup(func() { disks.Delete(d) })
	return d
}

// Fail lets operations fail from now on, and no others.
func (d *Disk) Fail(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.seen, d.met = &f, 0, 0
}

// Heal ends the fault and gives how many operations have failed.
func (d *Disk) Heal() (met int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = nil
	return d.met
}

// Met is how many operations have failed since Fail.
func (d *Disk) Met() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.met
}

// PowerLost copies the folder as it is after the power is lost now: synced data of the
// databases in it, and present data of all other files.
func (d *Disk) PowerLost(to string) error {
	return d.copied(to, func(f *file, path string) error { return os.WriteFile(path, f.durable, 0o600) })
}

// Killed copies the folder as it is after the process is killed now, onto a disk of the
// same state: all that was written is there, and unsynced data is not durable.
func (d *Disk) Killed(t testing.TB, to string) *Disk {
	t.Helper()
	after := Under(t, to)
	err := d.copied(to, func(f *file, path string) error {
		info, err := os.Stat(path)
		after.files = append(after.files, &file{path: path, info: info, durable: bytes.Clone(f.durable), pending: slices.Clone(f.pending)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// copied copies the folder, and calls each for the files of databases.
func (d *Disk) copied(to string, each func(f *file, path string) error) error {
	if err := os.CopyFS(to, os.DirFS(d.dir)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return filepath.WalkDir(d.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rest, err := filepath.Rel(d.dir, path)
		if err != nil {
			return err
		}
		copied := filepath.Join(to, rest)
		if strings.HasSuffix(path, "-shm") { // memory that processes share
			return os.Remove(copied)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		for _, f := range d.files {
			if os.SameFile(f.info, info) && f.holds(info) {
				return each(f, copied)
			}
		}
		return nil
	})
}

// on finds the disk that a path is on; nil: none that can fail.
func on(path string) (found *Disk) {
	disks.Range(func(key, _ any) bool {
		d := key.(*Disk)
		if rest, err := filepath.Rel(d.dir, path); err == nil && filepath.IsLocal(rest) {
			found = d
		}
		return found == nil
	})
	return found
}

// fails decides whether an operation fails.
func (d *Disk) fails(op Op, path string) (Fault, bool) {
	f := d.fault
	if f == nil || f.Op != op || !strings.HasSuffix(path, f.File) {
		return Fault{}, false
	}
	d.seen++
	if d.seen <= f.After || f.Times > 0 && d.seen > f.After+f.Times {
		return Fault{}, false
	}
	d.met++
	return *f, true
}

// opened gives the file behind a path. One that was renamed, or closed and opened again,
// is the same; writes of others meanwhile count as durable.
func (d *Disk) opened(path string) (*file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, f := range d.files {
		if !os.SameFile(f.info, info) {
			continue
		}
		if f.open > 0 || f.holds(info) {
			f.path, f.open = path, f.open+1
			return f, nil
		}
		d.files = append(d.files[:i], d.files[i+1:]...) // its place was given to another
		break
	}
	text, err := os.ReadFile(path) //nolint:gosec // a database of the test
	if err != nil {
		return nil, err
	}
	f := &file{path: path, info: info, durable: text, open: 1}
	d.files = append(d.files, f)
	return f, nil
}

// holds reports whether the file is still as SQLite has left it.
func (f *file) holds(info os.FileInfo) bool {
	return f.open > 0 || f.info.Size() == info.Size() && f.info.ModTime().Equal(info.ModTime())
}

func (c change) apply(text []byte) []byte {
	if more := c.at + int64(len(c.data)) - int64(len(text)); more > 0 {
		text = append(text, make([]byte, more)...)
	}
	if c.data == nil {
		return text[:c.at]
	}
	copy(text[c.at:], c.data)
	return text
}

// synced ends the pending writes: they are durable, or after a failure never will be.
func (f *file) synced(ok bool) {
	if ok {
		for _, c := range f.pending {
			f.durable = c.apply(f.durable)
		}
	}
	f.pending = nil
}

// closed notes how the file was left.
func (f *file) closed() {
	if f.open--; f.open == 0 {
		if info, err := os.Stat(f.path); err == nil && os.SameFile(info, f.info) {
			f.info = info
		}
	}
}
