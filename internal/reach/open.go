package reach

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// headSize is how much of a file Secret gets to see.
const headSize = 4096

// Stat looks at the place without opening it.
func (p *Place) Stat() (os.FileInfo, error) {
	if p.files == nil {
		return os.Stat(p.real)
	}
	at, err := p.enter(p.parents())
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Lstat(p.last())
	if err != nil {
		return nil, err
	}
	return info, p.admit(info)
}

// Open opens a regular file for reading.
func (p *Place) Open() (*os.File, error) {
	if p.files == nil {
		return os.Open(p.real)
	}
	at, err := p.enter(p.parents())
	if err != nil {
		return nil, err
	}
	defer at.Close()
	// Before it is opened: a pipe would wait, a device act, and to open and close a
	// database takes away the locks that this process has on it.
	before, err := at.Lstat(p.last())
	if err == nil {
		err = p.admit(before)
	}
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, errNotRegular
	}
	if p.turn != nil {
		p.turn()
	}
	f, err := at.OpenFile(p.last(), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := p.opened(f, before); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

var errNotRegular = errors.New("it is not a regular file")

// opened checks the file that was really opened.
func (p *Place) opened(f *os.File, before os.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(before, info) {
		return errChanged
	}
	if err := p.admit(info); err != nil {
		return err
	}
	if p.files.Secret == nil {
		return nil
	}
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if p.files.Secret(head[:n], info.Size()) {
		return &FileError{p.given, whyPrivate}
	}
	return nil
}

// Entries lists a folder.
func (p *Place) Entries() ([]fs.DirEntry, error) {
	if p.files == nil {
		return os.ReadDir(p.real)
	}
	at, err := p.enter(p.below)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	return fs.ReadDir(at.FS(), ".")
}

// Folder opens a folder for everything below it, and makes it where it is missing.
func (f *Files) Folder(path string) (*os.Root, error) {
	if f == nil {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, err
		}
		return os.OpenRoot(path)
	}
	lexical, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	there, missing := split(lexical)
	parent, err := resolve(there)
	if err != nil {
		return nil, &FileError{path, whyFolder}
	}
	real := filepath.Join(append([]string{parent}, missing...)...)
	if f.private(lexical) || f.private(real) || system(real) {
		return nil, &FileError{path, whyPrivate}
	}
	if _, err := f.within(path, real); err != nil { // all of it, so that nothing hidden is made
		return nil, err
	}
	place, err := f.within(path, parent)
	if err != nil {
		return nil, err
	}
	at, err := place.enter(place.below)
	if err != nil || len(missing) == 0 {
		return at, err
	}
	defer at.Close()
	rest := filepath.Join(missing...)
	if err := at.MkdirAll(rest, 0o755); err != nil {
		return nil, err
	}
	return at.OpenRoot(rest)
}

// split cuts a clean path where it is not there any more.
func split(path string) (there string, missing []string) {
	for there = path; ; there = filepath.Dir(there) {
		if _, err := os.Lstat(there); err == nil || there == filepath.Dir(there) {
			missing, _ = under(there, path)
			return there, missing
		}
	}
}

// parents are the names of the folders on the way to the place.
func (p *Place) parents() []string {
	if len(p.below) == 0 {
		return nil
	}
	return p.below[:len(p.below)-1]
}

// last is the name of the place in the folder that holds it.
func (p *Place) last() string {
	if len(p.below) == 0 {
		return "."
	}
	return p.below[len(p.below)-1]
}

// admit refuses existing files of the service itself.
func (p *Place) admit(info os.FileInfo) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		return errChanged // the path had none
	}
	if p.files.own(info) {
		return &FileError{p.given, whyPrivate}
	}
	return nil
}

// enter opens one folder after the other. Each is looked at when it is open: a link
// that was put into its place meanwhile leads nowhere.
func (p *Place) enter(names []string) (*os.Root, error) {
	at, err := os.OpenRoot(p.folder)
	if err != nil {
		return nil, err
	}
	kept := false
	for _, name := range names {
		next, err := step(at, name)
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		at = next
		if kept, err = p.files.ownFolder(at, kept); err != nil {
			_ = at.Close()
			return nil, err
		}
	}
	if kept {
		_ = at.Close()
		return nil, &FileError{p.given, whyPrivate}
	}
	return at, nil
}

// step opens a folder of a folder that is no link.
func step(at *os.Root, name string) (*os.Root, error) {
	next, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	is, err := next.Stat(".")
	if err == nil {
		var named os.FileInfo
		if named, err = at.Lstat(name); err == nil && !os.SameFile(is, named) {
			err = errChanged
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open folder: %w", err), next.Close())
	}
	return next, nil
}
