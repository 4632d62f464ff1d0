package ledger

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
)

// Moment is the books of a sync as they were at one moment: what a process that was
// killed then would leave behind. Runs go on while it is written. Close it.
type Moment struct {
	s     *Sync
	files []momentFile
}

// momentFile is a file with its length at the moment. Logs only grow and anything else
// is replaced as a whole, so that an open file is the file as it was.
type momentFile struct {
	name string
	f    *file // nil: the log of a run that was over, which is opened when it is written
	size int64
}

// Still keeps every file of every sync as it is until release is called: each is whole
// then. It waits for the writes under way, one for each run at the most.
func (l *Ledger) Still() (release func()) {
	l.o.still.Lock()
	return sync.OnceFunc(l.o.still.Unlock)
}

// move makes one change of the files: between Still and its release there is none.
func (f *folder) move(change func() error) error {
	if f.still != nil {
		f.still.RLock()
		defer f.still.RUnlock()
	}
	return change()
}

// Moment notes what the books are. It belongs between Still and its release.
func (s *Sync) Moment() (*Moment, error) {
	m := &Moment{s: s}
	if err := m.note(); err != nil {
		return nil, errors.Join(fmt.Errorf("snapshot sync %d: %w", s.id, err), m.Close())
	}
	return m, nil
}

func (m *Moment) note() error {
	names, err := m.s.files.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !snapshotNames.MatchString(name) {
			continue
		}
		one := momentFile{name: name}
		// There may be many logs of runs that are over, and none of them changes.
		if over := strings.HasSuffix(name, doneSuffix); !over || m.s.files.dir == "" {
			if one.f, err = m.s.files.open(name); err != nil {
				return err
			}
			if one.size, err = one.f.size(); err != nil {
				return errors.Join(err, one.f.Close())
			}
		}
		m.files = append(m.files, one)
	}
	return nil
}

// Sync is the number of the sync.
func (m *Moment) Sync() int64 { return m.s.id }

// Empty tells that the sync has never run.
func (m *Moment) Empty() bool { return len(m.files) == 0 }

// Write writes the books as Restore reads them. The log of a run that was over and
// that are not needed any more may be gone by now.
func (m *Moment) Write(w io.Writer) error {
	archive := tar.NewWriter(w)
	for i := range m.files {
		if err := m.archive(archive, &m.files[i]); err != nil {
			return fmt.Errorf("snapshot %s of sync %d: %w", m.files[i].name, m.s.id, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("snapshot sync %d: %w", m.s.id, err)
	}
	return nil
}

func (m *Moment) archive(to *tar.Writer, one *momentFile) error {
	if one.f == nil {
		// A run that was over in the ledger alone goes on under its other name.
		f, err := m.s.files.open(one.name, strings.TrimSuffix(one.name, doneSuffix)+openSuffix)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			one.size, err = f.size()
		}
		if one.f = f; err != nil {
			return err
		}
	}
	if err := to.WriteHeader(&tar.Header{Name: one.name, Mode: 0o600, Size: one.size}); err != nil {
		return err
	}
	_, err := io.Copy(to, io.NewSectionReader(one.f, 0, one.size))
	return err
}

// Close closes the files.
func (m *Moment) Close() error {
	var errs []error
	for i := range m.files {
		if f := m.files[i].f; f != nil {
			errs = append(errs, f.Close())
		}
	}
	m.files = nil
	return errors.Join(errs...)
}
