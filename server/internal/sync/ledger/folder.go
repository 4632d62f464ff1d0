package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// folder is where the files of one sync are: a directory, or memory. They
// behave the same, so that a ledger in memory forgets and keeps the same things.
type folder struct {
	dir   string // "" in memory
	mu    sync.Mutex
	files map[string]*content
	fault fault // tests
}

// plain takes the path out of an error: callers name the sync and the run.
func plain(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// open opens the first of several files that is there.
func (f *folder) open(names ...string) (*file, error) {
	for _, name := range names {
		if opened, err := f.openOne(name); !errors.Is(err, fs.ErrNotExist) {
			return opened, err
		}
	}
	return nil, fs.ErrNotExist
}

func (f *folder) openOne(name string) (*file, error) {
	if f.dir != "" {
		disk, err := os.OpenFile(filepath.Join(f.dir, name), os.O_RDWR, 0)
		if err != nil {
			return nil, plain(err)
		}
		return &file{disk: disk, name: name, fault: f.fault}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	mem := f.files[name]
	if mem == nil {
		return nil, fs.ErrNotExist
	}
	return &file{mem: mem, name: name, fault: f.fault}, nil
}

// create makes an empty file, or empties the one that is there. Its name is
// durable after sync.
func (f *folder) create(name string) (*file, error) {
	if err := f.fault.of(FaultCreate, name); err != nil {
		return nil, err
	}
	if f.dir != "" {
		if err := f.makeDir(); err != nil {
			return nil, err
		}
		disk, err := os.OpenFile(filepath.Join(f.dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, plain(err)
		}
		return &file{disk: disk, name: name, fault: f.fault}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files == nil {
		f.files = map[string]*content{}
	}
	f.files[name] = &content{}
	return &file{mem: f.files[name], name: name, fault: f.fault}, nil
}

// makeDir makes the folder of the sync, durably, when it is missing.
func (f *folder) makeDir() error {
	switch err := os.Mkdir(f.dir, 0o700); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return plain(err)
	}
	return syncDir(filepath.Dir(f.dir))
}

// scratchName is what faults know a file without a name by.
const scratchName = "scratch"

// scratch makes a file without a name: it is gone with the process, whatever
// ends it.
func (f *folder) scratch() (*file, error) {
	if f.dir == "" {
		return &file{mem: &content{}, name: scratchName, fault: f.fault}, nil
	}
	// Where there is no deleting of open files, Begin deletes it by its suffix.
	disk, err := os.CreateTemp(f.dir, "scratch-*"+newSuffix)
	if err != nil {
		return nil, plain(err)
	}
	if err := os.Remove(disk.Name()); err != nil {
		return nil, errors.Join(plain(err), disk.Close())
	}
	return &file{disk: disk, name: scratchName, fault: f.fault}, nil
}

// rename is durable when it returns.
func (f *folder) rename(from, to string) error {
	if err := f.fault.of(FaultRename, to); err != nil {
		return err
	}
	if f.dir != "" {
		if err := os.Rename(filepath.Join(f.dir, from), filepath.Join(f.dir, to)); err != nil {
			return plain(err)
		}
		return f.sync()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.files[from] == nil {
		return fs.ErrNotExist
	}
	f.files[to] = f.files[from]
	delete(f.files, from)
	return nil
}

// remove is content when there is no such file.
func (f *folder) remove(name string) error {
	if err := f.fault.of(FaultRemove, name); err != nil {
		return err
	}
	if f.dir != "" {
		if err := os.Remove(filepath.Join(f.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return plain(err)
		}
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.files, name)
	return nil
}

// sync makes the names durable.
func (f *folder) sync() error {
	if f.dir == "" {
		return nil
	}
	if err := f.fault.of(FaultSync, ""); err != nil {
		return err
	}
	return syncDir(f.dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return plain(err)
	}
	defer d.Close()
	return plain(d.Sync())
}

// names lists the files in ascending order.
func (f *folder) names() ([]string, error) {
	var names []string
	if f.dir == "" {
		f.mu.Lock()
		defer f.mu.Unlock()
		for name := range f.files {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, nil
	}
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, plain(err)
}

// write replaces a small file as a whole, durably.
func (f *folder) write(name string, data []byte) error {
	w, err := f.create(name + newSuffix)
	if err != nil {
		return err
	}
	_, err = w.WriteAt(data, 0)
	if err == nil {
		err = w.sync()
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return errors.Join(err, f.remove(name+newSuffix))
	}
	return f.rename(name+newSuffix, name)
}
