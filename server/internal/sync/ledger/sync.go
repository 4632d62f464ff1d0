package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Files of a sync.
const (
	stateFile   = "state"
	metaFile    = "meta"    // a Meta that is newer than that in the state
	damagedFile = "damaged" // its text names the damage; it goes when a new state is written
	runPrefix   = "run-"
	openSuffix  = ".open" // the log of a run that is not in the state yet
	doneSuffix  = ".log"
	newSuffix   = ".new" // being written: nothing until it is renamed
)

// Sync is the books of one sync: its state, and the logs of its runs. It is
// safe for parallel use.
type Sync struct {
	id    int64
	files *folder
	o     *Options
	mu    sync.Mutex
	open  *Run
	// expected is the newest run that the caller knows to be in the state.
	expected int64
}

func (s *Sync) crash(point string) {
	if s.o.Crash != nil {
		s.o.Crash(point)
	}
}

func logName(run int64, suffix string) string {
	return runPrefix + strconv.FormatInt(run, 10) + suffix
}

// logs lists the runs that have a log with one of these suffixes, in ascending
// order.
func (s *Sync) logs(suffixes ...string) ([]int64, error) {
	names, err := s.files.names()
	if err != nil {
		return nil, err
	}
	var runs []int64
	for _, name := range names {
		number, ours := strings.CutPrefix(name, runPrefix)
		for _, suffix := range suffixes {
			number, wanted := strings.CutSuffix(number, suffix)
			if run, err := strconv.ParseInt(number, 10, 64); ours && wanted && err == nil {
				runs = append(runs, run)
			}
		}
	}
	slices.Sort(runs)
	return runs, nil
}

// Meta is of the state: the zero Meta when no run ever ended. Begin first: it
// puts into the state what killed runs before this one had acknowledged, and
// finds damage.
func (s *Sync) Meta() (Meta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	meta, _, err := s.meta()
	if err != nil {
		return Meta{}, fmt.Errorf("read state of sync %d: %w", s.id, err)
	}
	return meta.Meta, nil
}

// readItems gives the items of the state, none when there is none or it is
// damaged at its ends.
func (s *Sync) readItems() (*stateItems, error) {
	f, err := s.files.open(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &stateItems{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	r, _, err := readState(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read state: %w", err), f.Close())
	}
	return &stateItems{r: r}, nil
}

// stateItems are the items of a state that may be missing.
type stateItems struct{ r *sortedReader }

func (i *stateItems) next(it *item) error {
	if i.r == nil {
		return io.EOF
	}
	return i.r.next(it)
}

func (i *stateItems) Close() error {
	if i.r == nil {
		return nil
	}
	return i.r.f.Close()
}

// Cursor goes through a state as it was when Scan was called, whatever is
// finished or forgotten meanwhile.
type Cursor struct {
	s     *Sync
	items items
	it    item
	close func() error
}

// Scan reads the state in ascending order of the bytes of its keys, in
// constant memory. Close the cursor.
func (s *Sync) Scan() (*Cursor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, err := s.readItems()
	if err != nil {
		return nil, fmt.Errorf("scan sync %d: %w", s.id, err)
	}
	return &Cursor{s: s, items: state, close: state.Close}, nil
}

// Next gives the next entry, io.EOF after the last. Its key is good until the
// next call. With ErrDamaged the sync is marked: end the run, its next one is a
// full sync.
func (c *Cursor) Next() (Entry, error) {
	err := c.items.next(&c.it)
	if err == nil {
		return c.it.entry(), nil
	}
	if errors.Is(err, io.EOF) {
		return Entry{}, io.EOF
	}
	if errors.Is(err, ErrDamaged) {
		// Begin found it whole: it went bad since, and the next one must know.
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		err = errors.Join(err, c.s.files.write(damagedFile, []byte(stateDamaged)))
	}
	return Entry{}, fmt.Errorf("scan sync %d: %w", c.s.id, err)
}

// Close ends the scan.
func (c *Cursor) Close() error { return c.close() }
