package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/snapshot"
	"github.com/destkit/destkit/server/internal/strictjson"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// forksPath is where the forks of a service stand.
const forksPath = "/_forks/"

// forks are independent worlds in the same process, each with its own API,
// control API and clock. The zero value has none.
type forks struct {
	mu      sync.Mutex
	open    map[string]*Server // nil while it is being made
	closed  bool
	made    int64
	trusted []byte // PEM that was trusted since the start

	room *atomic.Int64 // how many more the process may have; shared with all forks
}

var forkName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// closeAll ends the forks with the service: nobody could reach them any more.
func (f *forks) closeAll() {
	f.mu.Lock()
	f.closed = true
	var open []*Server
	for name, fork := range f.open {
		if fork != nil { // one that is being made ends itself
			open = append(open, fork)
			delete(f.open, name)
		}
	}
	f.mu.Unlock()
	for _, fork := range open {
		_ = fork.end()
	}
}

// end closes a fork with all that it kept outside its store, when the calls under
// way have ended.
func (s *Server) end() error {
	defer s.forks.room.Add(1)
	ctx := context.Background() // whoever has asked for it may be gone
	unlock, err := s.latch.Stand(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	left, err := s.organizations.Everything(ctx)
	return errors.Join(err, s.organizations.Drop(left), s.Close())
}

// abandon closes a service that could not start. What a fork has brought with it goes.
func (s *Server) abandon() (err error) {
	if s.config.forked {
		var left organizations.Outside
		left, err = s.organizations.Everything(context.Background())
		err = errors.Join(err, s.organizations.Drop(left))
	}
	return errors.Join(err, s.Close())
}

// Fork makes an independent copy of the world, or one of a snapshot when r is
// not nil. Runs under way go on in both; webhooks and e-mails that were open are
// delivered by the first world alone. base is the address at which the caller will serve it, for the URLs
// in replies; "" takes it from each request. The fork is closed with s. When ctx ends
// before it is made there is none.
func (s *Server) Fork(ctx context.Context, name, base string, r io.Reader) (*Server, error) {
	if !forkName.MatchString(name) {
		return nil, problem.InvalidField("name", "must be 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit")
	}
	f := &s.forks
	if err := f.reserve(name, s.config.MaxForks); err != nil {
		return nil, err
	}
	fork, err := s.makeFork(ctx, name, base, r)
	return fork, f.keep(name, fork, err)
}

// reserve takes a name and a place before anything is copied: the other forks must
// not wait for this one.
func (f *forks) reserve(name string, most int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return problem.Refuse(http.StatusServiceUnavailable, "the service is about to stop")
	}
	if _, taken := f.open[name]; taken {
		return problem.ConflictField("name", "there is a fork %s already", name)
	}
	if f.room.Add(-1) < 0 {
		f.room.Add(1)
		return problem.Refuse(http.StatusConflict, "there are %d forks already, the most this service has (--max-forks); delete some", most)
	}
	if f.open == nil {
		f.open = map[string]*Server{}
	}
	f.open[name] = nil
	return nil
}

// keep opens a fork that was made to calls, or gives back what was reserved for it.
func (f *forks) keep(name string, fork *Server, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && !f.closed {
		f.open[name] = fork
		return nil
	}
	delete(f.open, name)
	if err != nil {
		f.room.Add(1)
		return err
	}
	return errors.Join(problem.Refuse(http.StatusServiceUnavailable, "the service is about to stop"), fork.end())
}

func (s *Server) makeFork(ctx context.Context, name, base string, r io.Reader) (*Server, error) {
	spooled, err := s.forkFrom(ctx, r)
	if err != nil {
		return nil, err
	}
	defer spooled.Close()
	a, err := archive.Open(spooled)
	if err != nil {
		return nil, err
	}
	leave, err := s.config.copies.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	fork, err := New(ctx, s.forkConfig(name, base, a))
	if err != nil {
		return nil, fmt.Errorf("make fork %s: %w", name, err)
	}
	fork.forks.room = s.forks.room
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(err, fork.abandon())
	}
	return fork, nil
}

// forkFrom gives the snapshot to fork from, all of it: who sends one slowly must
// not hold the other forks.
func (s *Server) forkFrom(ctx context.Context, r io.Reader) (*archive.Spool, error) {
	if r == nil {
		return s.snapshots.Take(ctx)
	}
	return archive.Receive(r, s.config.Dir)
}

// forkConfig is the configuration of a fork: in memory, with the tokens that
// its world has.
func (s *Server) forkConfig(name, base string, a *archive.Archive) Config {
	s.forks.mu.Lock()
	defer s.forks.mu.Unlock()
	s.forks.made++
	config := s.config
	config.Dir, config.Owner, config.BaseURL, config.Restore = "", "", base, nil
	config.world = a
	config.Store, config.StorePassword, config.NoFiles = "", "", false
	// The tokens of the configuration may be others than those of a snapshot.
	config.PersonalAccessToken, config.WorkspaceAPIKey = "", ""
	config.Role, config.Workers, config.Process, config.Advertise = "", 0, "", ""
	config.forked = true
	config.Random = nil // the sequence of the first world is its own
	prefix := fmt.Sprintf("fork-%s-%d-", name, s.forks.made)
	config.Trusted = append(append([]byte{}, config.Trusted...), s.forks.trusted...)
	config.Log = s.log.With("fork", name)
	if s.config.Emulate != nil {
		// A fork's destinations have the ids of the first world's.
		config.Emulate = func(key string, objects []destination.EmulatedObject) (*destination.Emulated, error) {
			return s.config.Emulate(prefix+key, objects)
		}
	}
	return config
}

// trust keeps certificates for the forks to come.
func (f *forks) trust(text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trusted = append(append(f.trusted, '\n'), text...)
}

// get finds an open fork, nil when there is none.
func (f *forks) get(name string) *Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[name]
}

// serveFork hands /_forks/{name}/… to the fork, as if it stood at the root.
func (s *Server) serveFork(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, forksPath), "/")
	fork := s.forks.get(name)
	if fork == nil {
		s.refuseCall(w, r, problem.Refuse(http.StatusNotFound, "there is no fork %q", foreign.Clip(name, 63)))
		return
	}
	prefix := strings.TrimSuffix(forksPath, "/") + "/" + name
	http.StripPrefix(prefix, fork).ServeHTTP(w, r.WithContext(console.WithRoot(r.Context(), prefix)))
}

// forkShown is a fork as the control API shows it.
type forkShown struct {
	Name    string `json:"name"`
	URL     string `json:"url"` // of its API
	Control string `json:"control"`
}

// shownFork builds its addresses from the one that the caller has used, which
// may be a proxy's.
func shownFork(r *http.Request, name string) forkShown {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	root := scheme + "://" + r.Host + forksPath + name
	return forkShown{name, root + BasePath, root + call.ControlPath}
}

// forkRoutes take the world for themselves.
func (s *Server) forkRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/fork", "makes an independent copy of the world below /_forks/{name}: name; with ?name= the body is a snapshot to start from", s.controlFork),
		call.Route("GET", "/forks", "lists the forks", s.controlForks),
		call.Route("DELETE", "/forks/{name}", "ends a fork", s.controlEndFork),
	}
}

// controlFork takes the name in the body, or in the query when the body is a
// snapshot.
func (s *Server) controlFork(c *call.Control) (any, error) {
	query, err := c.Query("name")
	if err != nil {
		return nil, err
	}
	body := struct {
		Name string `json:"name"`
	}{query.Get("name")}
	var from io.Reader
	if body.Name != "" {
		from = http.MaxBytesReader(c.W, c.R.Body, snapshot.MaxSize)
	} else if err := c.Body(&body); err != nil {
		return nil, err
	}
	shown := shownFork(c.R, body.Name)
	if _, err := s.Fork(c.R.Context(), body.Name, shown.URL, from); err != nil {
		return nil, snapshot.Refused(err)
	}
	return call.Status(http.StatusCreated, shown), nil
}

// controlForks lists the forks by name.
func (s *Server) controlForks(c *call.Control) (any, error) {
	s.forks.mu.Lock()
	open := maps.Clone(s.forks.open)
	s.forks.mu.Unlock()
	maps.DeleteFunc(open, func(_ string, fork *Server) bool { return fork == nil })
	names := strictjson.SortedKeys(open)
	list := []forkShown{}
	for _, name := range names {
		list = append(list, shownFork(c.R, name))
	}
	return map[string]any{"forks": list}, nil
}

// controlEndFork takes the name off first, so that no new call gets into a fork
// that ends.
func (s *Server) controlEndFork(c *call.Control) (any, error) {
	name := c.R.PathValue("name")
	s.forks.mu.Lock()
	fork := s.forks.open[name]
	if fork != nil {
		delete(s.forks.open, name)
	}
	s.forks.mu.Unlock()
	if fork == nil {
		return nil, call.Gone("fork", foreign.Clip(name, 63))
	}
	if err := fork.end(); err != nil {
		return nil, fmt.Errorf("end fork %s: %w", name, err)
	}
	return call.Done, nil
}
