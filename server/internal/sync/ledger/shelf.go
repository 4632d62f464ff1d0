package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
)

// Shelf keeps the files of a ledger where several processes reach them, such as
// in a database. It is safe for parallel use, and waits a while for a database
// that does not answer.
type Shelf interface {
	// List gives the files of a sync that have a name, in any order.
	List(sync int64) ([]Shelved, error)
	// Read follows the rules of io.ReaderAt. A file that lost its name can be read
	// for some minutes more, and as long as a reader goes on reading it; after that
	// it is gone: fs.ErrNotExist.
	Read(file int64, p []byte, at int64) (int, error)
	// Change does all of the changes or none, in their order; they are durable
	// when it returns. Done twice they are done once, so that an implementation
	// that does not know what became of them does them again. fence is of the
	// lease "sync N": ErrFenced when another process has taken it since. 0 is not
	// looked at.
	Change(sync, fence int64, changes []Change) error
}

// Shelved is a file as List tells of it.
type Shelved struct {
	Name       string
	File, Size int64 // its number, never used again; bytes
}

// Change is one change of a file of a sync.
type Change struct {
	Kind ChangeKind
	File int64
	Name string // MakeFile, NameFile: its new name. RemoveFile: the one that it has
	At   int64  // WriteFile, CutFile: bytes from the start
	Data []byte // WriteFile
}

// ChangeKind is what a Change does.
type ChangeKind int

// The kinds of changes. The zero value is none.
const (
	// MakeFile makes an empty file; one that had its name loses it. Where the file
	// is there already nothing happens.
	MakeFile ChangeKind = iota + 1
	// WriteFile puts Data behind the first At bytes of the file, which ends there.
	// fs.ErrNotExist when it is not there or has no name any more.
	WriteFile
	// CutFile leaves the first At bytes of the file.
	CutFile
	// NameFile gives the file another name; one that had it loses it.
	// fs.ErrNotExist when the file is not there or has no name any more.
	NameFile
	// RemoveFile takes its name from the file, if it has this one.
	RemoveFile
)

// ErrAway is in the errors of a Shelf that has waited in vain for its database, or
// whose database is full: it says nothing about the sync, and may pass.
var ErrAway = errors.New("the books cannot be reached")

// ErrFenced refuses a change: another process works on this sync now. A run that
// meets it is over here, and what it had not made durable is lost with it.
var ErrFenced = errors.New("another process has taken over this sync")

// ErrChanged ends the reading of a file that another process has replaced or
// removed long ago: begin again.
var ErrChanged = errors.New("the file was replaced meanwhile")

// Under sets the fence of the lease under which this process works on the sync
// from now on: the runs that begin after it, Drain and Forget. A run that is open
// keeps the one that it began with; Drop, which touches what is over, and Restore
// ask for none. 0, which is at the beginning, is unguarded. Without a Shelf it
// means nothing.
func (s *Sync) Under(fence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fence = fence
}

// guard makes the fence that was set last that of what is written from now on.
func (s *Sync) guard() {
	if s.files.shelf != nil {
		s.files.shelf.fence = s.fence
	}
}

// shelved is the folder of a sync on a shelf.
type shelved struct {
	on      Shelf
	sync    int64
	fence   int64
	prefix  string // of the names of all files in this folder
	scratch string // where files without a name are
}

// unguarded is the same folder, written under no fence.
func (f *folder) unguarded() *folder {
	if f.shelf == nil {
		return f
	}
	own := *f.shelf
	own.fence = 0
	return &folder{shelf: &own, room: f.room, fault: f.fault, still: f.still}
}

// list gives the files of the folder by the names that they have in it.
func (h *shelved) list() ([]Shelved, error) {
	all, err := h.on.List(h.sync)
	if err != nil {
		return nil, err
	}
	var own []Shelved
	for _, one := range all {
		name, ours := strings.CutPrefix(one.Name, h.prefix)
		if ours && (h.prefix != "" || !strings.HasPrefix(name, newPrefix)) {
			one.Name = name
			own = append(own, one)
		}
	}
	slices.SortFunc(own, func(a, b Shelved) int { return strings.Compare(a.Name, b.Name) })
	return own, nil
}

// find gives the first of several names that is there.
func (h *shelved) find(names ...string) (Shelved, error) {
	all, err := h.list()
	if err != nil {
		return Shelved{}, err
	}
	for _, name := range names {
		if i := slices.IndexFunc(all, func(one Shelved) bool { return one.Name == name }); i >= 0 {
			return all[i], nil
		}
	}
	return Shelved{}, fs.ErrNotExist
}

func (h *shelved) names() ([]string, error) {
	all, err := h.list()
	var names []string
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names, err
}

func (h *shelved) open(names ...string) (*shelfFile, error) {
	one, err := h.find(names...)
	if err != nil {
		return nil, err
	}
	return &shelfFile{in: *h, id: one.File, kept: one.Size}, nil
}

// create gives a file that comes to be with its first change.
func (h *shelved) create(name string) *shelfFile {
	return &shelfFile{in: *h, id: newFile(), name: h.prefix + name}
}

// newFile is a number that no file has.
func newFile() int64 { return 1 + rand.Int64N(math.MaxInt64) }

func (h *shelved) rename(from, to string) error {
	one, err := h.find(from)
	if err != nil {
		return err
	}
	return h.change(Change{Kind: NameFile, File: one.File, Name: h.prefix + to})
}

func (h *shelved) remove(name string) error {
	one, err := h.find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.change(Change{Kind: RemoveFile, File: one.File, Name: h.prefix + name})
}

// write replaces a small file as a whole: a new one takes its name.
func (h *shelved) write(name string, data []byte) error {
	id := newFile()
	return h.change(Change{Kind: MakeFile, File: id, Name: h.prefix + name}, Change{Kind: WriteFile, File: id, Data: data})
}

func (h *shelved) change(changes ...Change) error {
	return h.on.Change(h.sync, h.fence, changes)
}

// temporary makes a file of this process alone: what is in it can be made again
// from the log.
func (h *shelved) temporary() (*os.File, error) {
	disk, err := os.CreateTemp(h.scratch, "destkit-*"+newSuffix)
	if err != nil {
		return nil, plain(err)
	}
	if err := os.Remove(disk.Name()); err != nil {
		return nil, errors.Join(plain(err), disk.Close())
	}
	return disk, nil
}

// clean removes what a killed process was writing, or restoring.
func (h *shelved) clean() error {
	all, err := h.on.List(h.sync)
	if err != nil {
		return err
	}
	return h.removeAll(slices.DeleteFunc(all, func(one Shelved) bool {
		return !strings.HasSuffix(one.Name, newSuffix) && !strings.HasPrefix(one.Name, newPrefix)
	}))
}

// removeAll removes files as List told of them.
func (h *shelved) removeAll(files []Shelved) error {
	if len(files) == 0 {
		return nil
	}
	return h.change(removals(files)...)
}

func removals(files []Shelved) (changes []Change) {
	for _, one := range files {
		changes = append(changes, Change{Kind: RemoveFile, File: one.File, Name: one.Name})
	}
	return changes
}

// forgetShelf is Forget on a shelf. A run that another process has open, because
// no process asked for a lease, finds its log gone and fails.
func (s *Sync) forgetShelf() error {
	s.guard()
	h := s.files.shelf
	all, err := h.on.List(h.sync)
	if err != nil {
		return err
	}
	return h.removeAll(all)
}

// restoreShelf is Restore on a shelf: the files are written under other names, and
// replace those of the books in one change. Killed before it, the next Begin
// removes them.
func (s *Sync) restoreShelf(fresh *Sync, r io.Reader) error {
	h := s.files.unguarded().shelf
	fresh.files.shelf = &shelved{on: h.on, sync: h.sync, scratch: h.scratch, prefix: newPrefix}
	err := h.clean()
	if err == nil {
		err = fresh.unpack(r)
	}
	if err != nil {
		return errors.Join(err, h.clean())
	}
	s.crash(MidRestore)
	old, err := h.list()
	if err != nil {
		return err
	}
	changes := removals(old)
	restored, err := fresh.files.shelf.list()
	for _, one := range restored {
		changes = append(changes, Change{Kind: NameFile, File: one.File, Name: one.Name})
	}
	if err != nil || len(changes) == 0 {
		return err
	}
	return h.change(changes...)
}

// checkShelf refuses options that contradict each other.
func (o *Options) checkShelf() error {
	if o.Shelf != nil && o.Dir != "" {
		return fmt.Errorf("open ledger: a folder (%s) and a shelf: choose one", o.Dir)
	}
	return nil
}
