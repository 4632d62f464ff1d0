package ledger

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A snapshot is a tar archive of the files of a sync, in ascending order of
// their names. It can be taken while a run is open, which is resumed where the
// archive is restored.

// snapshotNames are the files that an archive may hold.
var snapshotNames = regexp.MustCompile(`^(state|meta|damaged|run-[1-9][0-9]{0,18}\.(open|log))$`)

// Empty reports whether the sync has never run.
func (s *Sync) Empty() (bool, error) {
	names, err := s.kept()
	return len(names) == 0, err
}

// kept are the names of the files that belong into an archive.
func (s *Sync) kept() ([]string, error) {
	names, err := s.files.names()
	return slices.DeleteFunc(names, func(name string) bool { return !snapshotNames.MatchString(name) }), err
}

// Snapshot writes the ledger of the sync as Restore reads it. No run may write meanwhile.
func (s *Sync) Snapshot(w io.Writer) error {
	names, err := s.kept()
	archive := tar.NewWriter(w)
	for _, name := range names {
		if err == nil {
			err = s.pack(archive, name)
		}
	}
	if err = errors.Join(err, archive.Close()); err != nil {
		return fmt.Errorf("snapshot sync %d: %w", s.id, err)
	}
	return nil
}

// pack writes one file. The log of a run that ended long ago may be gone by now.
func (s *Sync) pack(to *tar.Writer, name string) error {
	f, err := s.files.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.size()
	if err != nil {
		return err
	}
	if err := to.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size}); err != nil {
		return err
	}
	_, err = io.Copy(to, io.NewSectionReader(f, 0, size))
	return err
}

// Restore replaces the ledger of the sync by that of a snapshot, all or
// nothing: a bad archive, or a kill, leaves either the old or the new
// one. ErrBusy while a run is open.
func (s *Sync) Restore(r io.Reader) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.restore(r); err != nil {
		return fmt.Errorf("restore sync %d: %w", s.id, err)
	}
	return nil
}

func (s *Sync) restore(r io.Reader) error {
	if s.open != nil {
		return ErrBusy
	}
	fresh := &Sync{id: s.id, files: &folder{fault: s.files.fault}, o: s.o}
	if s.files.dir == "" {
		if err := fresh.unpack(r); err != nil {
			return err
		}
		s.files.mu.Lock()
		defer s.files.mu.Unlock()
		s.files.files = fresh.files.files
		return nil
	}
	fresh.files.dir = s.beside(newPrefix)
	err := errors.Join(os.RemoveAll(fresh.files.dir), os.RemoveAll(s.beside(readyPrefix)))
	if err == nil {
		err = os.MkdirAll(fresh.files.dir, 0o700)
	}
	if err == nil {
		err = fresh.unpack(r)
	}
	if err == nil {
		err = os.Rename(fresh.files.dir, s.beside(readyPrefix))
	}
	if err != nil {
		return errors.Join(plain(err), os.RemoveAll(fresh.files.dir))
	}
	s.crash(MidRestore)
	return plain(s.swapFolder())
}

// unpack writes the files of an archive and reads them through.
func (s *Sync) unpack(r io.Reader) error {
	archive := tar.NewReader(r)
	seen := map[string]bool{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return s.files.sync()
		}
		if err != nil {
			return fmt.Errorf("read archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg || !snapshotNames.MatchString(h.Name) || seen[h.Name] {
			return fmt.Errorf("read archive: %q does not belong there", h.Name)
		}
		seen[h.Name] = true
		if err := s.unpackFile(archive, h.Name); err != nil {
			return fmt.Errorf("restore %s: %w", h.Name, err)
		}
	}
}

func (s *Sync) unpackFile(from io.Reader, name string) error {
	f, err := s.files.create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := io.Copy(io.NewOffsetWriter(f, 0), from)
	if err != nil {
		return err
	}
	switch {
	case name == stateFile:
		err = checkItems(f)
	case name == metaFile:
		_, err = readMeta(f)
	case strings.HasPrefix(name, runPrefix):
		err = checkLog(f, size, name)
	}
	if err != nil {
		return err
	}
	return f.sync()
}

// checkItems reads all items of a state.
func checkItems(f *file) error {
	r, _, err := readState(f)
	var it item
	for err == nil {
		err = r.next(&it)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// checkLog reads all records of a log; a torn end is no damage.
func checkLog(f *file, size int64, name string) error {
	number, _, _ := strings.Cut(strings.TrimPrefix(name, runPrefix), ".")
	run, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return err
	}
	l, err := readLog(f, size, run)
	if err == nil {
		err = l.each(nil, func(*logged) error { return nil }, nil)
	}
	return untorn(err)
}
