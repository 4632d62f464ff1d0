package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server"
)

// With --store the records of an emulated destination live in a schema of their
// own beside that of the service, which every process opens as one of several
// simulators that are one destination.

// sharedIdle is how long a process keeps its connections to an emulated
// destination that is not called: a database has few, and there may be many
// destinations and processes.
const sharedIdle = 30 * time.Second

// sharedSettings bound the connections of one process to one destination.
var sharedSettings = map[string]string{"pool_max_conns": "8", "pool_max_conn_idle_time": "10s"}

// Database is where the processes of one service have the records in common: a
// schema for each destination.
type Database struct {
	at     url.URL // with the password
	schema string  // of the service
}

// DatabaseOf is the database of a service at place; nil for one without --store.
func DatabaseOf(place server.Place) (*Database, error) {
	if place.Store == "" {
		return nil, nil
	}
	schema, err := place.Schema()
	if err != nil {
		return nil, exit.Usagef("--store: %w", err)
	}
	u, err := url.Parse(place.Store)
	if err != nil { // it was read before
		return nil, exit.Usagef("--store: the URL cannot be read")
	}
	if _, given := u.User.Password(); !given && place.StorePassword != "" {
		u.User = url.UserPassword(u.User.Username(), place.StorePassword)
	}
	return &Database{*u, schema}, nil
}

// longestName is what PostgreSQL keeps of a name, in bytes.
const longestName = 63

// of is the store of a key, in the schema SERVICE_destination_7.
func (s *Database) of(key string) string {
	end := "_" + strings.ReplaceAll(key, "-", "_")
	name := s.schema + end
	if len(name) > longestName {
		// Cut, two services could meet in one schema.
		h := fnv.New64a()
		_, _ = h.Write([]byte(s.schema))
		end = fmt.Sprintf("_%x", h.Sum64()) + end
		name = s.schema[:longestName-len(end)] + end
	}
	u, query := s.at, s.at.Query()
	query.Del("search_path")
	query.Set("schema", name)
	for setting, value := range sharedSettings {
		query.Set(setting, value)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// sharedSim is one emulated destination whose records other processes have, too.
// It is opened when it is called, and closed when it is not called for a while.
type sharedSim struct {
	config destsim.Config
	idle   time.Duration

	mu    sync.Mutex
	sim   *destsim.Sim // nil: closed
	users int
	timer *time.Timer // of the closing; nil while it is called
}

// take opens the simulator, or gives the open one, for one call.
func (s *sharedSim) take() (*destsim.Sim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.sim == nil {
		sim, err := destsim.New(s.config)
		if err != nil {
			return nil, err
		}
		s.sim = sim
	}
	s.users++
	return s.sim, nil
}

// give ends a call.
func (s *sharedSim) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 && s.sim != nil {
		s.timer = time.AfterFunc(s.idle, func() { _ = s.rest() })
	}
}

// rest closes the simulator unless it is called again.
func (s *sharedSim) rest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 || s.sim == nil {
		return nil
	}
	return s.end()
}

// Close closes the simulator; calls under way fail. The next call opens it again.
func (s *sharedSim) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.sim == nil {
		return nil
	}
	return s.end()
}

// end closes it; the lock is held.
func (s *sharedSim) end() error {
	sim := s.sim
	s.sim = nil
	return sim.Close()
}

// with makes one call.
func (s *sharedSim) with(fn func(*destsim.Sim) error) error {
	sim, err := s.take()
	if err == nil {
		defer s.give()
		err = fn(sim)
	}
	if errors.Is(err, destsim.ErrStoreAway) { // it is in the database of the service
		err = fmt.Errorf("%w: %w", server.ErrUnavailable, err)
	}
	return err
}

// ServeHTTP is the endpoint. A database that is away makes a call fail that may be
// made again.
func (s *sharedSim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := s.with(func(sim *destsim.Sim) error {
		sim.ServeHTTP(w, r)
		return nil
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// emulated is the destination as the service sees it.
func (s *sharedSim) emulated() *server.Emulated {
	return &server.Emulated{
		Endpoint: s,
		Snapshot: func(w io.Writer) error { return s.with(func(sim *destsim.Sim) error { return sim.Snapshot(w) }) },
		Restore:  func(r io.Reader) error { return s.with(func(sim *destsim.Sim) error { return sim.Restore(r) }) },
		Records: func(object string, after int64, limit int) (records []json.RawMessage, total int, err error) {
			err = s.with(func(sim *destsim.Sim) (err error) {
				records, total, err = sim.RecordsJSON(object, after, limit)
				return err
			})
			return records, total, err
		},
	}
}
