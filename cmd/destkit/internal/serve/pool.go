package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// folder is where a data directory keeps the records of emulated
// destinations, one database each.
const folder = "emulated"

// Pool holds the simulators that were opened.
type Pool struct {
	dir  string // "" keeps all in memory
	mu   sync.Mutex
	open map[string]*destsim.Sim
}

// NewPool keeps records below dir; "" in memory.
func NewPool(dir string) *Pool { return &Pool{dir: dir, open: map[string]*destsim.Sim{}} }

// Emulate is a server.Emulator. The same key opens the same records.
func (s *Pool) Emulate(key string, objects []server.EmulatedObject) (*server.Emulated, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sim := s.open[key]
	if sim == nil {
		// Without faults and limits: what is emulated obeys every rule.
		config := destsim.Config{Objects: described(objects)}
		if file := s.file(key); file != "" {
			// Before SQLite makes it, which would let others read it.
			if err := prepareFile(file); err != nil {
				return nil, err
			}
			config.Store = "sqlite:" + file
		}
		var err error
		if sim, err = destsim.New(config); err != nil {
			return nil, err
		}
		s.open[key] = sim
	}
	return &server.Emulated{
		Endpoint: sim, Snapshot: sim.Snapshot, Restore: sim.Restore, Records: sim.RecordsJSON,
		Close: func() error { return s.shut(key) }, Remove: func() error { return s.remove(key) },
	}, nil
}

// outlives reports whether the records of a key are kept: those of the destinations
// of the service are; what is tried out is not.
func outlives(key string) bool { return strings.HasPrefix(key, "destination-") }

// file is the database behind a key; "" is memory.
func (s *Pool) file(key string) string {
	if s.dir == "" || !outlives(key) {
		return ""
	}
	return filepath.Join(s.dir, folder, key+".db")
}

// prepareFile makes the file, so that others cannot read it; SQLite gives its
// companions the same mode.
func prepareFile(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make folder of emulated destinations: %w", err)
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("make store of emulated destination: %w", err)
	}
	return f.Close()
}

// shut closes a simulator whose records are in a file. Those in memory stay
// until they are removed: the key must find them again.
func (s *Pool) shut(key string) error {
	if s.file(key) == "" {
		return nil
	}
	return s.end(key)
}

// end closes a simulator and forgets it.
func (s *Pool) end(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sim := s.open[key]
	if sim == nil {
		return nil
	}
	delete(s.open, key)
	return sim.Close()
}

// remove deletes the records.
func (s *Pool) remove(key string) error {
	err := s.end(key)
	file := s.file(key)
	if file == "" {
		return err
	}
	// With the companions that a process leaves behind when it is killed.
	for _, name := range []string{file, file + "-wal", file + "-shm"} {
		if failed := os.Remove(name); failed != nil && !errors.Is(failed, os.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// Close closes all.
func (s *Pool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for key, sim := range s.open {
		errs = append(errs, sim.Close())
		delete(s.open, key)
	}
	return errors.Join(errs...)
}

// described translates objects of the service into those of a simulator.
func described(objects []server.EmulatedObject) []destsim.ObjectConfig {
	out := make([]destsim.ObjectConfig, len(objects))
	for i, o := range objects {
		out[i] = destsim.Described(o.Object, o.Operations, o.Fields)
	}
	return out
}
