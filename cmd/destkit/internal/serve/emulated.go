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

// emulatedFolder is where a data directory keeps the records of emulated
// destinations, one database each.
const emulatedFolder = "emulated"

// simulators are behind the emulated destinations of a service: one for each,
// called in this process, with its records in memory or in a file. The service
// knows none of them: it gets an endpoint with its records. Faults and limits
// belong to destkit destsim.
type simulators struct {
	dir  string // "" keeps all in memory
	mu   sync.Mutex
	open map[string]*destsim.Sim
}

// newSimulators keeps records below dir, or in memory without one.
func newSimulators(dir string) *simulators {
	return &simulators{dir: dir, open: map[string]*destsim.Sim{}}
}

// emulate is a server.Emulator. The same key opens the same records.
func (s *simulators) emulate(key string, objects []server.EmulatedObject) (*server.Emulated, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sim := s.open[key]
	if sim == nil {
		var config destsim.Config // without faults and limits: an emulated destination obeys every rule
		for _, o := range objects {
			config.Objects = append(config.Objects, destsim.Described(o.Object, o.Operations, o.Fields))
		}
		if file := s.file(key); file != "" {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return nil, fmt.Errorf("make folder of emulated destinations: %w", err)
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
		Close:  func() error { return s.shut(key) },
		Remove: func() error { return s.remove(key) },
	}, nil
}

// file is the database behind a key; "" is memory. The records of the destinations
// of the service are kept; those of connection tests are not.
func (s *simulators) file(key string) string {
	if s.dir == "" || !strings.HasPrefix(key, "destination-") {
		return ""
	}
	return filepath.Join(s.dir, emulatedFolder, key+".db")
}

// shut closes a simulator whose records are in a file. Those in memory stay
// until they are removed: the key must find them again.
func (s *simulators) shut(key string) error {
	if s.file(key) == "" {
		return nil
	}
	return s.end(key)
}

// end closes a simulator and forgets it.
func (s *simulators) end(key string) error {
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
func (s *simulators) remove(key string) error {
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
func (s *simulators) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for key, sim := range s.open {
		errs = append(errs, sim.Close())
		delete(s.open, key)
	}
	return errors.Join(errs...)
}
