package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// place is where the books of a test are: a new ledger with these options finds
// them, as the next process does.
type place struct {
	name  string
	empty func(t testing.TB) Options
	child func(o Options) string // what another process is told of it; nil: none gets there
}

// PostgreSQL is a place of its own; the test package that may use it says how to get
// there.
var (
	PostgresRoom func(t testing.TB) (on Shelf, child string)
	JoinRoom     func(child string) (Shelf, error)
	SetFence     func(on Shelf, sync, fence int64) error // of the lease of a sync
)

var (
	inMemory = place{"memory", func(testing.TB) Options { return Options{} }, nil}
	onDisk   = place{"disk", func(t testing.TB) Options { return Options{Dir: t.TempDir()} }, func(o Options) string { return o.Dir }}
	onShelf  = place{"shelf", func(t testing.TB) Options { return Options{Shelf: newTestShelf(), Scratch: t.TempDir()} }, nil}
	onServer = place{"postgres", func(t testing.TB) Options {
		on, child := PostgresRoom(t)
		return Options{Shelf: placed{on, child}, Scratch: t.TempDir()}
	}, func(o Options) string { return o.Shelf.(placed).child }}
)

// placed is a shelf that another process can be told of.
type placed struct {
	Shelf
	child string
}

// everywhere runs a test in every place but PostgreSQL.
func everywhere(t *testing.T, test func(t *testing.T, p place)) {
	t.Run(inMemory.name, func(t *testing.T) { test(t, inMemory) })
	lasting(t, test)
}

// lasting are those that outlive their ledger.
func lasting(t *testing.T, test func(t *testing.T, p place)) {
	for _, p := range []place{onDisk, onShelf} {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

func (p place) open(t testing.TB) *Ledger {
	t.Helper()
	l, err := Open(p.empty(t))
	require.NoError(t, err)
	return l
}

// contentOf gives the bytes of a file; change puts others in their place.
func contentOf(t testing.TB, s *Sync, name string) []byte {
	t.Helper()
	f, err := s.files.open(name)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.size()
	require.NoError(t, err)
	data, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	require.NoError(t, err)
	return data
}

func change(t testing.TB, s *Sync, name string, data []byte) {
	t.Helper()
	require.NoError(t, s.files.write(name, data))
}

// testShelf is a shelf in memory that is as strict as one may be.
type testShelf struct {
	mu     sync.Mutex
	files  map[int64]*onTestShelf
	fences map[int64]int64
	twice  bool  // every change is done again, as after an answer that was lost
	fails  error // of every change
	left   *int  // changes that succeed before the others fail; nil: all
}

type onTestShelf struct {
	sync int64
	name string
	data []byte
}

func newTestShelf() *testShelf {
	return &testShelf{files: map[int64]*onTestShelf{}, fences: map[int64]int64{}, twice: true}
}

// List implements Shelf.
func (s *testShelf) List(sync int64) (all []Shelved, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.files {
		if f.sync == sync && f.name != "" {
			all = append(all, Shelved{f.name, id, int64(len(f.data))})
		}
	}
	return all, nil
}

// Read implements Shelf.
func (s *testShelf) Read(file int64, p []byte, at int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[file]
	if f == nil {
		return 0, fs.ErrNotExist
	}
	return bytes.NewReader(f.data).ReadAt(p, at)
}

// Change implements Shelf.
func (s *testShelf) Change(sync, fence int64, changes []Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return s.fails
	}
	if s.left != nil {
		if *s.left--; *s.left < 0 {
			return errors.New("the process is dead")
		}
	}
	if fence != 0 && fence != s.fences[sync] {
		return ErrFenced
	}
	before := map[int64]onTestShelf{}
	for id, f := range s.files {
		before[id] = *f
	}
	for range 1 + map[bool]int{true: 1}[s.twice] {
		for _, c := range changes {
			if err := s.change(sync, c); err != nil {
				s.files = map[int64]*onTestShelf{}
				for id, f := range before {
					s.files[id] = &f
				}
				return err
			}
		}
	}
	return nil
}

func (s *testShelf) change(sync int64, c Change) error {
	f := s.files[c.File]
	takes := func(name string) {
		for _, other := range s.files {
			if other != f && other.sync == sync && other.name == name {
				other.name = ""
			}
		}
	}
	switch {
	case c.Kind == MakeFile && f == nil:
		takes(c.Name)
		s.files[c.File] = &onTestShelf{sync, c.Name, nil}
	case c.Kind == MakeFile:
	case c.Kind == RemoveFile:
		if f != nil && f.name == c.Name {
			f.name = ""
		}
	case f == nil || f.name == "" || f.sync != sync:
		return fs.ErrNotExist
	case c.Kind == NameFile:
		takes(c.Name)
		f.name = c.Name
	case c.Kind != WriteFile && c.Kind != CutFile, c.At > int64(len(f.data)), c.Kind == CutFile && c.Data != nil:
		return fmt.Errorf("change %d at %d of %d bytes", c.Kind, c.At, len(f.data))
	default:
		f.data = slices.Concat(f.data[:c.At], c.Data)
	}
	return nil
}

// childWork is what a child process of the crash tests does.
type childWork struct{ Dir, Room, Crash string }

// options are those of the child.
func (w childWork) options() (Options, error) {
	if w.Room == "" {
		return Options{Dir: w.Dir}, nil
	}
	on, err := JoinRoom(w.Room)
	return Options{Shelf: on}, err
}

func (w childWork) String() string {
	text, err := json.Marshal(w)
	if err != nil {
		panic(err)
	}
	return string(text)
}
