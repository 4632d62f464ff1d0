package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Options of a ledger; the zero value keeps it in memory.
type Options struct {
	// Dir is where the files are, one folder for each sync; it is made when it
	// is missing. "" keeps everything in memory, with the same behaviour. One
	// process at a time uses it: the caller holds a lock.
	Dir string
	// Crash is called at each of CrashPoints, so that a test can end the process
	// there. Nil: nothing.
	Crash func(point string)
	// Fault is called before each use of a file, so that a test can have a bad disk:
	// how many of n bytes are written, and the error. Nil: a good one.
	Fault func(what, name string, n int) (int, error)

	indexItems int // tests: keys of a run in memory, and how many segments make one
	indexFan   int
	block      int                      // tests: bytes of a block of the state
	bound      *atomic.Pointer[Binding] // the argument of Bind
}

// The points at which a test can end the process.
const (
	BeforeAppend = "before-append"             // of a batch to the log
	MidAppend    = "mid-append"                // half of it is written
	AfterAppend  = "after-append"              // it is durable, Append has not returned
	BeforeMerge  = "before-merge"              // of the log into the state
	MidMerge     = "mid-merge"                 // after the first entry and after each block
	AfterMerge   = "after-merge-before-rename" // the new state is written next to the old one
	AfterRename  = "after-rename"              // it took its place; the log does not know
	MidRestore   = "mid-restore"               // the restored files are complete next to the old ones
)

// CrashPoints lists those of a run in their order; MidRestore is in none.
func CrashPoints() []string {
	return []string{BeforeAppend, MidAppend, AfterAppend, BeforeMerge, MidMerge, AfterMerge, AfterRename}
}

// Errors that are not of the disk.
var (
	ErrDamaged = errors.New("the file is damaged")
	ErrBusy    = errors.New("a run of this sync is open")
	ErrClosed  = errors.New("the run is closed")
	ErrNoRun   = errors.New("the ledger has no such run")
)

// Ledger keeps the books of all syncs. It is safe for parallel use.
type Ledger struct {
	o     Options
	mu    sync.Mutex
	syncs map[int64]*Sync
}

// Folders of a sync: its own, a restored one that is complete, and one that is
// to be deleted.
const (
	syncPrefix  = "sync-"
	readyPrefix = "ready-"
	newPrefix   = "new-"
	gonePrefix  = "gone-"
)

// Open makes the folder and finishes the work of a killed process there.
func Open(o Options) (*Ledger, error) {
	o.bound = new(atomic.Pointer[Binding])
	l := &Ledger{o: o, syncs: map[int64]*Sync{}}
	if o.Dir == "" {
		return l, nil
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make ledger folder: %w", err)
	}
	if err := l.tidy(); err != nil {
		return nil, fmt.Errorf("tidy ledger: %w", err)
	}
	return l, nil
}

// tidy completes restores and deletions.
func (l *Ledger) tidy() error {
	entries, err := os.ReadDir(l.o.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, gonePrefix), strings.HasPrefix(name, newPrefix):
			if err := os.RemoveAll(filepath.Join(l.o.Dir, name)); err != nil {
				return err
			}
		case strings.HasPrefix(name, readyPrefix):
			id, err := strconv.ParseInt(name[len(readyPrefix):], 10, 64)
			if err != nil {
				continue // not ours
			}
			if err := l.Sync(id).swapFolder(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Sync gives the books of one sync. It need not exist: books that are empty
// take no room.
func (l *Ledger) Sync(id int64) *Sync {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.syncs[id]
	if s == nil {
		files := &folder{fault: l.o.Fault}
		if l.o.Dir != "" {
			files.dir = filepath.Join(l.o.Dir, syncPrefix+strconv.FormatInt(id, 10))
		}
		s = &Sync{id: id, files: files, o: &l.o}
		l.syncs[id] = s
	}
	return s
}

// Close closes the runs that are open; the next Begin resumes them.
func (l *Ledger) Close() error {
	l.mu.Lock()
	var open []*Run
	for _, s := range l.syncs {
		s.mu.Lock()
		if s.open != nil {
			open = append(open, s.open)
		}
		s.mu.Unlock()
	}
	l.mu.Unlock()
	var errs []error
	for _, r := range open {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// Forget deletes the books of a sync, its logs included: the next run is the
// first. ErrBusy while a run is open.
func (s *Sync) Forget() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		return fmt.Errorf("forget sync %d: %w", s.id, ErrBusy)
	}
	if err := s.forget(); err != nil {
		return fmt.Errorf("forget sync %d: %w", s.id, plain(err))
	}
	s.expected = 0
	return nil
}

func (s *Sync) forget() error {
	if s.files.dir != "" {
		return s.discard(s.files.dir)
	}
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	s.files.files = nil
	return nil
}

// discard deletes a folder: at once as far as its name goes.
func (s *Sync) discard(dir string) error {
	gone := s.beside(gonePrefix)
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	if err := os.Rename(dir, gone); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// beside is this sync's folder with another prefix.
func (s *Sync) beside(prefix string) string {
	return filepath.Join(filepath.Dir(s.files.dir), prefix+strconv.FormatInt(s.id, 10))
}

// swapFolder puts the restored folder in place of the sync's. When it is
// killed, Open does it again.
func (s *Sync) swapFolder() error {
	if err := s.discard(s.files.dir); err != nil {
		return err
	}
	if err := os.Rename(s.beside(readyPrefix), s.files.dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.files.dir))
}
