// Package forks owns the independent copies of a service in the same process: their names,
// how many there may be, and the paths at which they are served. It refuses to know what a
// service is made of: it is handed how one is made, and how one ends.
package forks

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/internal/console"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/problem"
)

// Path is where the forks of a service are served, each below its name.
const Path = "/_forks/"

// Fork is a service: a pointer that serves.
type Fork interface {
	comparable
	http.Handler
}

// Parts are what forks need of the service that they are of.
type Parts[F Fork] struct {
	// Make makes a fork of the present state, or of a snapshot where that is not nil.
	Make func(ctx context.Context, w Wanted, snapshot io.Reader) (F, error)
	// End closes a fork with all that it kept outside its store.
	End func(F) error
	// Refuse answers a call of a fork that does not exist.
	Refuse func(w http.ResponseWriter, r *http.Request, f *problem.Failure)
	Most   int           // that the process may have
	Room   *atomic.Int64 // how many more it may have now; shared with all forks
}

// Wanted is a fork that is being made. Number is its own among all that the service has
// made. Base is the address at which it will be served; "": taken from each request.
type Wanted struct {
	Name, Base string
	Number     int64
}

// Forks are those of one service, each with its own API, control API and clock.
type Forks[F Fork] struct {
	Parts[F]

	mu      sync.Mutex
	open    map[string]F // zero while it is being made
	closed  bool
	made    int64
	trusted []byte // PEM that was trusted since the start
}

// New begins without a fork.
func New[F Fork](p Parts[F]) *Forks[F] { return &Forks[F]{Parts: p, open: map[string]F{}} }

var forkName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Close ends the forks with the service: no caller could reach them any more.
func (f *Forks[F]) Close() {
	f.mu.Lock()
	f.closed = true
	var open []F
	for name, fork := range f.open {
		if there(fork) { // one that is being made ends itself
			open = append(open, fork)
			delete(f.open, name)
		}
	}
	f.mu.Unlock()
	for _, fork := range open {
		_ = f.end(fork)
	}
}

// end makes room for another one.
func (f *Forks[F]) end(fork F) error {
	defer f.Room.Add(1)
	return f.End(fork)
}

func there[F Fork](fork F) bool {
	var none F
	return fork != none
}

// Fork makes one, and opens it to calls. When ctx ends before it is made there is none.
func (f *Forks[F]) Fork(ctx context.Context, name, base string, snapshot io.Reader) (F, error) {
	var none F
	if !forkName.MatchString(name) {
		return none, problem.InvalidField("name", "must be 1 to 63 of a-z, 0-9 and -, beginning with a letter or digit")
	}
	number, err := f.reserve(name)
	if err != nil {
		return none, err
	}
	fork, err := f.Make(ctx, Wanted{Name: name, Base: base, Number: number}, snapshot)
	if err := f.keep(name, fork, err); err != nil {
		return none, err
	}
	return fork, nil
}

// reserve takes a name and a place before anything is copied: the other forks must
// not wait for this one.
func (f *Forks[F]) reserve(name string) (number int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return 0, problem.Refuse(http.StatusServiceUnavailable, "the service is about to stop")
	}
	if _, taken := f.open[name]; taken {
		return 0, problem.ConflictField("name", "there is a fork %s already", name)
	}
	if f.Room.Add(-1) < 0 {
		f.Room.Add(1)
		return 0, problem.Refuse(http.StatusConflict, "there are %d forks already, the most this service has (--max-forks); delete some", f.Most)
	}
	var none F
	f.open[name] = none
	f.made++
	return f.made, nil
}

// keep opens a fork that was made to calls, or gives back what was reserved for it.
func (f *Forks[F]) keep(name string, fork F, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && !f.closed {
		f.open[name] = fork
		return nil
	}
	delete(f.open, name)
	if err != nil {
		f.Room.Add(1)
		return err
	}
	return errors.Join(problem.Refuse(http.StatusServiceUnavailable, "the service is about to stop"), f.end(fork))
}

// Trust keeps certificates for the forks to come.
func (f *Forks[F]) Trust(text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trusted = append(append(f.trusted, '\n'), text...)
}

// Trusted are the certificates that were trusted since the start, as PEM.
func (f *Forks[F]) Trusted() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]byte{}, f.trusted...)
}

// Get finds an open fork, the zero value when there is none.
func (f *Forks[F]) Get(name string) F {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[name]
}

// Each runs fn for every open fork.
func (f *Forks[F]) Each(fn func(F)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fork := range f.open {
		if there(fork) {
			fn(fork)
		}
	}
}

// ServeHTTP hands /_forks/{name}/… to the fork, as if it were at the root.
func (f *Forks[F]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, Path), "/")
	fork := f.Get(name)
	if !there(fork) {
		f.Refuse(w, r, problem.Refuse(http.StatusNotFound, "there is no fork %q", foreign.Clip(name, 63)))
		return
	}
	prefix := strings.TrimSuffix(Path, "/") + "/" + name
	http.StripPrefix(prefix, fork).ServeHTTP(w, r.WithContext(console.WithRoot(r.Context(), prefix)))
}
