package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Binding ties a folder of ledgers to the database that its syncs are in.
type Binding struct {
	ID         string `json:"id"`         // of the database, another one after each restore
	Generation int64  `json:"generation"` // counts the starts: a copy of an earlier day has a lesser one
}

const bindingFile = "binding"

// Found is what a folder holds, before anything in it is touched.
type Found struct {
	Binding   Binding
	Bound     bool  // there is a binding
	Used      bool  // some sync has files
	Sync, Run int64 // the newest run of all, and its sync; 0: none
}

// Look reads what a folder holds, and changes nothing. ErrDamaged: the binding cannot
// be read.
func Look(dir string) (found Found, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	for _, e := range entries {
		if err == nil && e.IsDir() {
			err = found.look(dir, e.Name())
		}
	}
	if err == nil {
		found.Binding, found.Bound, err = readBinding(&folder{dir: dir})
	}
	if err != nil {
		return found, fmt.Errorf("look into ledger: %w", plain(err))
	}
	return found, nil
}

// look adds what the folder of one sync has.
func (f *Found) look(dir, name string) error {
	number, found := strings.CutPrefix(name, syncPrefix)
	if !found {
		number, found = strings.CutPrefix(name, readyPrefix)
	}
	id, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil {
		return nil // not ours, or being deleted
	}
	s := &Sync{id: id, files: &folder{dir: dir + string(os.PathSeparator) + name}, o: &Options{}}
	names, err := s.files.names()
	if err != nil {
		return err
	}
	f.Used = f.Used || len(names) > 0
	runs, err := s.logs(openSuffix, doneSuffix)
	if err != nil {
		return err
	}
	meta, _, err := s.meta()
	if err != nil {
		return err
	}
	for _, run := range append(runs, meta.Run) {
		if run > f.Run {
			f.Sync, f.Run = id, run
		}
	}
	return nil
}

func readBinding(in *folder) (b Binding, there bool, err error) {
	f, err := in.open(bindingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return b, false, nil
	}
	if err != nil {
		return b, false, err
	}
	defer f.Close()
	size, err := f.size()
	if err != nil {
		return b, true, err
	}
	r := &sortedReader{f: f, end: size}
	err = r.load()
	if errors.Is(err, io.EOF) || err == nil && (r.at != size || json.Unmarshal(r.block, &b) != nil) {
		err = ErrDamaged
	}
	if err != nil {
		return Binding{}, true, fmt.Errorf("read binding: %w", err)
	}
	return b, true, nil
}

// Bind writes the binding of the ledger; it is durable when it returns. In memory
// there is none.
func (l *Ledger) Bind(b Binding) error {
	if l.o.Dir == "" {
		return nil
	}
	l.o.bound.Store(&b)
	if err := l.o.bind(b); err != nil {
		return fmt.Errorf("bind ledger: %w", err)
	}
	return nil
}

func (o *Options) bind(b Binding) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return (&folder{dir: o.Dir, fault: o.Fault}).write(bindingFile, sealed(text, 0))
}

// rebind writes the binding again where all files were removed under a process that
// goes on: the new files belong to its database, and the next start must know.
func (s *Sync) rebind() error {
	if s.o.bound == nil || s.o.bound.Load() == nil {
		return nil
	}
	_, err := os.Stat(s.o.Dir + string(os.PathSeparator) + bindingFile)
	if !errors.Is(err, fs.ErrNotExist) {
		return plain(err)
	}
	return s.o.bind(*s.o.bound.Load())
}
