// Package destsim owns the reference destination: an http.Handler that speaks the custom
// destination protocol (spec 4.2), obeys every rule of it, stores what it acknowledges, and can
// be configured to break exactly one rule at a time.
//
// It refuses to know who calls it: nothing here depends on a judge, a load
// generator or a service. It never listens, prints, reads the environment or
// exits; the program that embeds it does.
package destsim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/internal/meter"
	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/console"
)

// ErrUnknownFault means that there is no fault of that id.
var ErrUnknownFault = errors.New("no such fault")

// Sim is a simulated destination. POST on any path is the endpoint; /_control
// and /healthz are separate and never touched by violations, faults or the
// endpoint's token. It is safe for parallel use.
type Sim struct {
	config Config
	delays Delays
	clock  func() time.Time
	// systemClock means that clock is time.Now; dressed, that replies
	// have extra headers or codings; framed, that some of these are the
	// business of net/http.
	systemClock, dressed, framed bool
	store                        store.Store
	seams                        atomic.Pointer[chain] // of the extensions and the armed violations
	violations                   violationBoard
	base                         int // how many seams the extensions fill; more are violations
	limits                       atomic.Pointer[limits]
	control                      http.Handler
	console                      *console.Console

	extensions []extension
	faults     *faultBoard
	journal    *callJournal
	meter      *meter.Meter

	catalogueLock sync.Mutex // serialises editors; readers load the snapshot
	catalogue     atomic.Pointer[catalogue]
	token         atomic.Pointer[string]
	speed         atomic.Pointer[rpc.Speed]
	rateLimit     atomic.Int64
	broken        atomic.Bool // the downstream system is down
	plans         planCache
	requests      codec.PlanCache
	batches       sync.Pool
	tally         tally
	world         sync.Mutex // held while everything changes at once: reset, restore

	life     context.Context // ends with Close
	end      context.CancelFunc
	deferred sync.WaitGroup
}

// extension adds to a simulator what is not part of the protocol: faults,
// the journal, metrics. Every part may be left nil.
type extension struct {
	// seams come before those of the violations in every list.
	seams seams
	// done gets every finished call of the endpoint, also of those that a
	// violation answered by itself.
	done func(c *call)
	// endpoints are added to the others below /_control/. Access is checked before.
	endpoints []endpoint
	// reset forgets everything, for POST /_control/reset.
	reset func()
}

// New makes a destination. All that is wrong with the configuration is in the
// error, each with its place, such as objects[1].fields[2].type.
func New(config Config) (*Sim, error) {
	systemClock := config.Clock == nil
	config, err := config.resolve()
	if err != nil {
		return nil, err
	}
	s := &Sim{
		config: config, delays: config.Delays, clock: config.Clock, systemClock: systemClock,
		dressed: len(config.Headers) > 0 || config.Compress != "",
	}
	s.batches.New = func() any { return &batch{Batch: codec.Batch{Plans: &s.requests}} }
	for _, name := range []string{"Connection", "Content-Length", "Date", "Trailer", "Transfer-Encoding", "Upgrade"} {
		for given := range config.Headers {
			s.framed = s.framed || strings.EqualFold(name, given)
		}
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.seams.Store(&chain{})
	s.extensions = extensions(s)
	for _, e := range s.extensions {
		s.chain().add(e.seams)
	}
	s.base = s.chain().filled
	if err := s.arm(config.Violate, true); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(config.Store); err != nil {
		return nil, err
	}
	if err := s.initial(); err != nil {
		_ = s.Close()
		return nil, err
	}
	s.control = s.controlRoutes()
	return s, nil
}

// initial sets everything that the control endpoints may have changed, and
// restores the fields that were created on write.
func (s *Sim) initial() error {
	c := newCatalogue(s.config.Objects)
	speed, token := s.config.Speed, s.config.Token
	s.speed.Store(&speed)
	s.token.Store(&token)
	s.rateLimit.Store(s.config.RateLimit)
	s.broken.Store(false)
	s.limits.Store(newLimits(s))
	c, err := s.restoreFields(c)
	if err != nil {
		return err
	}
	return s.editCatalogue(func(*catalogue) (*catalogue, error) { return c, nil })
}

// Close ends sleeping calls, waits for late writes and closes the store. Calls
// after it fail.
func (s *Sim) Close() error {
	s.CloseConsole()
	s.end()
	s.deferred.Wait()
	if c, ok := s.store.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return fmt.Errorf("close store: %w", err)
		}
	}
	return nil
}

// ServeHTTP answers one call of the endpoint, of /_control or of /healthz.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if apart(r.URL.Path) {
		s.control.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == "/" && s.forBrowser(r) {
		s.console.Front(w, r)
		return
	}
	c := &call{sim: s, w: w, r: r, verb: r.Method, start: s.clock()}
	defer s.finish(c) // also when a seam aborts the handler
	c.serve()
}

// forBrowser reports whether a person opens the address: the endpoint takes POST alone,
// and no program requests a page of it.
func (s *Sim) forBrowser(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/html") && (s.console.Guarded() || s.console.Admitted(r))
}

// CloseConsole ends the live updates of open pages, which otherwise never end.
func (s *Sim) CloseConsole() {
	if s.console != nil {
		s.console.Close()
	}
}

// stamp changes with every call and with what the control endpoints change.
func (s *Sim) stamp() string {
	_, total := s.tally.counts()
	s.violations.mu.Lock()
	defer s.violations.mu.Unlock()
	matched, fired := int64(0), int64(0)
	for _, f := range s.faults.all(false) {
		matched, fired = matched+f.Matched, fired+f.Fired
	}
	return fmt.Sprint(total, s.faults.live.Load(), matched, fired, s.violations.ids, *s.speed.Load(), s.rateLimit.Load(), s.broken.Load(), fmt.Sprintf("%p", s.catalogue.Load()))
}

// apart reports whether a path is not the endpoint's.
func apart(path string) bool {
	return path == "/healthz" || path == "/_control" || strings.HasPrefix(path, "/_control/")
}

// usual reports whether nothing is armed that may touch a reply or a connection:
// no violation, no fault, no header that net/http looks at.
func (s *Sim) usual() bool {
	return s.chain().filled == s.base && s.faults.live.Load() == 0 && !s.framed
}

// run answers one call of the fast path: c.reply is the reply to send, and
// finish is still to be called. The body must be left alone until then.
func (s *Sim) run(c *call, r *http.Request, body []byte) {
	*c = call{sim: s, r: r, verb: r.Method, body: body, start: s.clock()}
	c.serve()
}

// finish counts a call, notifies the extensions, and frees reused memory.
func (s *Sim) finish(c *call) {
	c.end = s.clock()
	s.tally.add(c)
	for _, e := range s.extensions {
		if e.done != nil {
			e.done(c)
		}
	}
	if c.batch != nil {
		s.batches.Put(c.batch)
	}
}

// TLSViolation is the id of the armed violation that the listener has to carry
// out, "" when there is none: the argument of Certificates.TLSConfig. Two of
// them need no bad certificate. TLS-001 requires plain http although TLS was
// wanted; TLS-007 for TLSListener with plainToo.
func (s *Sim) TLSViolation() string {
	if len(s.chain().tls) == 0 {
		return ""
	}
	return s.chain().tls[len(s.chain().tls)-1]
}

// later runs fn after d, or at once when the simulator is closed before; Close
// waits for it.
func (s *Sim) later(d time.Duration, fn func()) {
	s.deferred.Add(1)
	go func() {
		defer s.deferred.Done()
		s.sleep(context.Background(), d)
		fn()
	}()
}

// extensions lists the parts besides the protocol in every simulator. The
// meter comes first, so that it counts what faults answer by themselves.
func extensions(s *Sim) []extension {
	s.meter = meter.New(s.clock)
	s.faults = &faultBoard{seed: s.config.Seed, fired: s.meter.FaultFired}
	s.journal = &callJournal{}
	s.journal.bodies.configure(&s.config)
	return []extension{
		s.metered(),
		{seams: s.faults.seams(), endpoints: s.faults.endpoints(), reset: s.faults.reset},
		{done: s.journal.add, endpoints: s.journal.endpoints(), reset: s.journal.reset},
		{endpoints: s.violationEndpoints(), reset: s.armConfigured},
	}
}

// Results of Sim.Figures.
type (
	Figures        = meter.Figures
	MethodFigures  = meter.Method
	LatencyFigures = meter.Latency
)

// Figures gives rates, latencies and parallelism since the start or the last
// reset.
func (s *Sim) Figures() Figures { return s.meter.Figures() }

// metered counts the calls of a simulator.
func (s *Sim) metered() extension {
	return extension{
		seams: seams{
			http: func(*call) bool {
				s.meter.Begin()
				return false
			},
			parsed: func(c *call) {
				if c.method == rpc.MethodSyncBatch {
					c.metered = true
					s.meter.BeginBatch()
				}
			},
		},
		done: s.meterCall, reset: s.meter.Reset,
		endpoints: []endpoint{
			{"GET", "/_control/figures", "rates, latencies and parallelism by method", give(func(*http.Request) (any, error) { return s.Figures(), nil })},
			{"GET", "/_control/metrics", "the same for Prometheus", s.meter.Handler(s.storedRecords)},
		},
	}
}

// meterCall counts a finished call.
func (s *Sim) meterCall(c *call) {
	m := meter.Call{
		Method: c.method, Batch: c.metered, Refused: c.err != nil, Status: c.answeredStatus(),
		BytesIn: len(c.body), BytesOut: len(c.reply.sent), Start: c.start, End: c.end,
	}
	if c.isBatchText() { // refused batches count too
		m.Records = c.batch.Len()
	}
	m.Succeeded, m.Failed = c.recordCounts()
	s.meter.Done(&m)
}

// storedRecords gives every object with the number of its records.
func (s *Sim) storedRecords(yield func(string, int) bool) {
	for _, name := range s.catalogue.Load().names() {
		if _, n, err := s.store.Scan(name, 0, 0); err == nil && !yield(name, n) {
			return
		}
	}
}
