package serve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
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
	dir      string    // "" keeps all in memory
	database *Database // nil: no other process has the records
	mu       sync.Mutex
	open     map[string]simulated
}

// simulated is an open simulator.
type simulated interface {
	http.Handler
	io.Closer
}

// NewPool keeps records in database where it is not nil, else below dir, else in
// memory.
func NewPool(dir string, database *Database) *Pool {
	return &Pool{dir: dir, database: database, open: map[string]simulated{}}
}

// Emulate is a server.Emulator. The same key opens the same records.
func (s *Pool) Emulate(key string, objects []server.EmulatedObject) (*server.Emulated, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Without faults and limits: what is emulated obeys every rule.
	config := destsim.Config{Objects: described(objects)}
	open := s.embedded
	if s.shares(key) {
		open = s.shared
	}
	emulated, err := open(key, config)
	if err != nil {
		return nil, err
	}
	emulated.Close = func() error { return s.shut(key) }
	emulated.Remove = func() error { return s.remove(key) }
	return emulated, nil
}

// embedded opens a simulator whose records this process alone has.
func (s *Pool) embedded(key string, config destsim.Config) (*server.Emulated, error) {
	sim, _ := s.open[key].(*destsim.Sim)
	if sim == nil {
		file := s.file(key)
		if file != "" {
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
	return &server.Emulated{Endpoint: sim, Snapshot: sim.Snapshot, Restore: sim.Restore, Records: sim.RecordsJSON}, nil
}

// shared opens a simulator whose records are in the database.
func (s *Pool) shared(key string, config destsim.Config) (*server.Emulated, error) {
	sim, _ := s.open[key].(*sharedSim)
	if sim == nil {
		config.Store = s.database.of(key)
		sim = &sharedSim{config: config, idle: sharedIdle}
		// At once, so that a database that refuses is told of at the creation.
		if err := sim.with(func(*destsim.Sim) error { return nil }); err != nil {
			return nil, refusedSchema(err)
		}
		s.open[key] = sim
	}
	return sim.emulated(), nil
}

// refusedSchema says what is missing when the database refuses to make a schema.
func refusedSchema(err error) error {
	const insufficientPrivilege = "42501"
	if strings.Contains(err.Error(), insufficientPrivilege) {
		err = fmt.Errorf("%w; an emulated destination has a schema of its own: GRANT CREATE ON DATABASE to the role of --store", err)
	}
	return err
}

// outlives reports whether the records of a key are kept: those of the destinations
// of the first world are; what is tried out and forks are not.
func outlives(key string) bool { return strings.HasPrefix(key, "destination-") }

// shares reports whether other processes have the records, too.
func (s *Pool) shares(key string) bool { return s.database != nil && outlives(key) }

// file is the database behind a key; "" is memory.
func (s *Pool) file(key string) string {
	if s.dir == "" || s.database != nil || !outlives(key) {
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

// shut closes a simulator whose records lie elsewhere. Those in memory stay
// until they are removed: the key must find them again.
func (s *Pool) shut(key string) error {
	if s.file(key) == "" && !s.shares(key) {
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
	if s.shares(key) {
		return errors.Join(err, destsim.RemoveStore(s.database.of(key)))
	}
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
