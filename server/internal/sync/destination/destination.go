// Package destination owns the service's connections to destinations: the
// catalogue of connection types, the rules of their credentials, the test of a
// connection in steps, and the objects and fields from planning calls.
//
// It refuses to know the REST API, storage, syncs and runs. It never listens
// and never imports a simulator: the program hands one in for the types that
// are emulated. No URL path, token or secret header leaves it in a message, in
// an error or in an Exchange.
package destination

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// Credentials are the members of service_connection.credentials as raw JSON.
type Credentials = map[string]json.RawMessage

// Options of a Gate. The zero value works: the system's roots, https only
// except for loopback, no emulated types.
type Options struct {
	// Now dates exchanges; nil: time.Now. Network timeouts and the validity of
	// certificates are real time regardless of Now.
	Now func() time.Time
	// Roots are the trusted certificate authorities; nil: the system's.
	Roots *x509.CertPool
	// AllowPlainHTTP admits http to any address; otherwise to loopback only.
	AllowPlainHTTP bool
	// UserAgent of every call; "" is destkit.
	UserAgent string
	// ConnectTimeout bounds looking up a name, connecting and the TLS handshake
	// together; 10 s when zero.
	ConnectTimeout time.Duration
	// CallTimeout bounds one call, except that of a batch; 30 s when zero.
	CallTimeout time.Duration
	// BatchTimeout bounds one sync_batch; when zero CallTimeout where that is
	// set, else 60 s. The caller's context may shorten it.
	BatchTimeout time.Duration
	// MaxReply bounds a reply in bytes, as received and as decoded; DefaultMaxReply
	// when zero.
	MaxReply int64
	// Pause waits in real time where a call outside of a run must wait for the
	// limit of its connection; nil: on a timer. Tests replace it.
	Pause func(ctx context.Context, d time.Duration) error
	// Connections is the budget of network connections to all destinations; nil: they
	// are not counted.
	Connections *descriptors.Budget
	// Observe gets every finished call, from many goroutines; it may be nil.
	Observe func(Exchange)
	// Emulate opens the store of an emulated destination; nil: emulated types
	// cannot be created.
	Emulate Emulator
	// FilesRoot, absolute, is the only folder that local_files destinations write below,
	// symbolic links included; their path is then relative to it. "": any
	// absolute path.
	FilesRoot string
	// Files selects the folders that local_files destinations may write to where
	// FilesRoot is ""; nil: all.
	Files *reach.Files
	// Resolve looks up a host name; nil: the system's resolver. Addresses and
	// localhost are never looked up.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Network selects the addresses that may be connected to; the zero value admits all.
	Network reach.Network
	// Carry wraps the network of custom destinations, and TLS changes how their
	// certificates are checked: a service that breaks a rule on purpose has them.
	// Nil: nothing.
	Carry func(http.RoundTripper) http.RoundTripper
	TLS   func(*tls.Config)
	// Sending is called right before the first byte of each request is written to a
	// network connection, from many goroutines. Nil: nothing.
	Sending func()
	// Crash is called at each point below, so that a test can end the process
	// there. Nil: nothing.
	Crash func(point string)
}

// DefaultMaxReply is Options.MaxReply where it is zero.
const DefaultMaxReply = 16 << 20

// The points at which a test can end a process that writes files, in the order of a run.
const (
	BeforeFileJournal = "before-file-journal" // of a batch of local_files
	AfterFileJournal  = "after-file-journal"  // the batch is announced, nothing of it written
	MidFileWrite      = "mid-file-write"      // half of it is written
	AfterFileWrite    = "after-file-write"    // it is durable, and not known to be
	BeforeFileSwap    = "before-file-swap"    // the new file is durable next to the old one
	AfterFileSwap     = "after-file-swap"     // it took its place, and is not known to have
)

// Gate is the way to destinations. It is safe for parallel use.
type Gate struct {
	options Options
	idle    time.Duration // how long a network connection without calls is kept
	kinds   atomic.Pointer[kindSet]

	roots atomic.Pointer[x509.CertPool]

	mu       sync.Mutex // guards what follows, and Trust
	pools    map[int64]*http.Transport
	emulated map[int64]*Emulated
	removed  map[int64]bool // of emulated destinations, whose stores a late call must not make again
	limiters map[int64]*pace.Limiter

	unrelieve func()       // ends that others may have idle connections closed
	locks     fileLocks    // of local_files
	opening   sync.Mutex   // held while a store opens
	fresh     atomic.Int64 // counts the stores of connections without an id
}

// Connection is one destination, ready for calls. It is safe for parallel
// use. Errors of calls are *CallError.
type Connection interface {
	// Test tries the connection step by step (spec 2.2, 7.1.3). After a failed
	// step the later ones are skipped.
	Test(ctx context.Context) api.TestResults
	// Objects fetches all objects with their fields and operations (spec 2.3,
	// 2.5), in the order of the destination.
	Objects(ctx context.Context) ([]*api.DestinationObject, error)
	// Close frees what this connection alone holds.
	Close() error
}

// New makes a gate. It panics when the embedded catalogue is damaged, which a
// test rules out.
func New(options Options) *Gate {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.UserAgent = cmp.Or(options.UserAgent, "destkit")
	options.ConnectTimeout = cmp.Or(options.ConnectTimeout, 10*time.Second)
	options.BatchTimeout = cmp.Or(options.BatchTimeout, options.CallTimeout, time.Minute)
	options.CallTimeout = cmp.Or(options.CallTimeout, 30*time.Second)
	options.MaxReply = cmp.Or(options.MaxReply, DefaultMaxReply)
	if options.Pause == nil {
		options.Pause = pause.For
	}
	g := &Gate{options: options, idle: idleTime, pools: map[int64]*http.Transport{}, emulated: map[int64]*Emulated{}, removed: map[int64]bool{}, limiters: map[int64]*pace.Limiter{}}
	if options.Roots != nil {
		g.roots.Store(options.Roots.Clone())
	}
	g.Declare(nil)
	g.unrelieve = func() {}
	if options.Connections != nil {
		g.unrelieve = options.Connections.Relief(g.closeIdle)
	}
	return g
}

// Types lists the connection types in a fixed order: custom_api, local_files,
// then the emulated ones by name, then those that were declared. Emulated types are creatable only with
// Options.Emulate. The list is the caller's to change.
func (g *Gate) Types() []api.Connector {
	known := g.kinds.Load()
	list := make([]api.Connector, len(known.order))
	for i, name := range known.order {
		list[i] = known.byName[name].connector
		list[i].ConfigurationFields.Fields = slices.Clone(list[i].ConfigurationFields.Fields)
	}
	return list
}

// FileSystem reports whether a type writes into a file system (spec 2.2,
// is_file_system_destination).
func (g *Gate) FileSystem(typ string) bool {
	k := g.kind(typ)
	return k != nil && k.fileSystem
}

// Trust adds the certificates in PEM to the trusted authorities, for network
// connections made from now on, and gives their number. Nothing is added when
// the text holds none or a damaged one. A server's self-signed certificate is
// refused unless it was itself handed to Trust.
func (g *Gate) Trust(text []byte) (int, error) {
	var found []*x509.Certificate
	for rest := text; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return 0, fmt.Errorf("read certificates: a %q stands among them", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return 0, fmt.Errorf("read certificate %d: %w", len(found)+1, err)
		}
		found = append(found, certificate)
	}
	if len(found) == 0 {
		return 0, errors.New("read certificates: no certificate in PEM found")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	pool := g.roots.Load()
	if pool == nil {
		var err error
		if pool, err = x509.SystemCertPool(); err != nil {
			pool = x509.NewCertPool()
		}
	}
	pool = pool.Clone()
	for _, certificate := range found {
		pool.AddCert(certificate)
	}
	g.roots.Store(pool)
	return len(found), nil
}

// Forget drops the open resources of a destination: idle connections and the
// store of an emulated one. It is opened again when needed; call it when
// credentials change. The endpoint's announced limit no longer holds.
func (g *Gate) Forget(id int64) error {
	g.mu.Lock()
	if l := g.limiters[id]; l != nil { // runs under way hold it
		l.Reset()
	}
	g.mu.Unlock()
	return g.shut(id)
}

// shut closes the open resources of a destination.
func (g *Gate) shut(id int64) error {
	g.mu.Lock()
	p, e := g.pools[id], g.emulated[id]
	delete(g.pools, id)
	delete(g.emulated, id)
	g.mu.Unlock()
	if p != nil {
		p.CloseIdleConnections()
	}
	if e != nil {
		return closeStore(e)
	}
	return nil
}

// Remove forgets a destination that was deleted, with the records of an
// emulated one, which no call opens again until Renew. Files of local_files stay: they are
// the user's.
func (g *Gate) Remove(id int64, typ string) error {
	k := g.kind(typ)
	if k == nil || k.emulated == nil || g.options.Emulate == nil {
		return g.Forget(id)
	}
	e, err := g.store(id, k.emulated)
	if errors.Is(err, ErrRemoved) {
		return nil
	}
	if err != nil {
		return err
	}
	g.opening.Lock() // who opens the store now waits, and is refused
	defer g.opening.Unlock()
	g.mu.Lock()
	g.removed[id] = true
	g.mu.Unlock()
	if err := g.Forget(id); err != nil {
		return err
	}
	if e.Remove == nil {
		return nil
	}
	if err := e.Remove(); err != nil {
		return fmt.Errorf("remove records of destination %d: %w", id, err)
	}
	return nil
}

// Renew forgets which destinations were removed: other ones get their ids once the state is
// replaced.
func (g *Gate) Renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.removed)
}

// Close closes all that is open. Connections must not be used after it. Limits stay
// as they are known: other processes may hold them too.
func (g *Gate) Close() error {
	g.unrelieve()
	g.mu.Lock()
	ids := slices.AppendSeq(slices.Collect(maps.Keys(g.pools)), maps.Keys(g.emulated))
	g.mu.Unlock()
	var errs []error
	for _, id := range ids {
		errs = append(errs, g.shut(id))
	}
	return errors.Join(errs...)
}

// kindOf finds a type or lists the known ones.
func (g *Gate) kindOf(typ string) (*kind, error) {
	if k := g.kind(typ); k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("unknown type %q; use one of %s", foreign.Clip(typ, 64), strings.Join(g.kinds.Load().order, ", "))
}

// Open gives the connection of a destination. Connections of one id share
// their network connections; id 0 is a destination that is not stored yet and
// shares nothing. Credentials are the merged ones of CheckConnection.
func (g *Gate) Open(id int64, typ string, credentials Credentials) (Connection, error) {
	k, err := g.kindOf(typ)
	if err != nil {
		return nil, fmt.Errorf("open destination %d: %w", id, err)
	}
	c, err := k.open(id, credentials)
	if err != nil {
		return nil, fmt.Errorf("open destination %d: %w", id, err)
	}
	return c, nil
}
