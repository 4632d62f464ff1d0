package destsim

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/destkit/destkit/destsim/internal/httpfront"
)

// Server serves one simulator on listeners that it is handed. Calls of the
// endpoint in their usual form (spec 4.2: a POST with one Content-Length) are
// read and answered by a separate loop, which costs a third of what net/http
// does. Every other request is handed over to net/http together with its
// connection, the bytes read so far included: other methods, chunked bodies,
// Expect, HTTP/1.0 and HTTP/2, long or odd heads, /_control and /healthz, and
// all of them while a violation or a fault is armed. Replies have the same
// bytes either way.
type Server struct {
	Sim *Sim
	// Handler answers requests that are handed over; Sim when nil. POST
	// outside /healthz and /_control may never reach it.
	Handler http.Handler
	// ReadHeaderTimeout bounds the time from the first byte of a request to the
	// end of its head, and that of a TLS handshake; 0: no bound.
	ReadHeaderTimeout time.Duration
	// IdleTimeout bounds the wait for the next request; 0: no bound.
	IdleTimeout time.Duration
	// ErrorLog takes what net/http complains about; nil: the log package.
	ErrorLog *log.Logger

	once  sync.Once
	front httpfront.Server
}

// init makes what a zero Server lacks.
func (s *Server) init() *httpfront.Server {
	s.once.Do(func() {
		s.front = httpfront.Server{
			Endpoint: frontEndpoint{s.Sim}, MaxBody: s.Sim.config.MaxBody, Handler: s.Handler,
			ReadHeaderTimeout: s.ReadHeaderTimeout, IdleTimeout: s.IdleTimeout, ErrorLog: s.ErrorLog,
		}
		if s.Handler == nil {
			s.front.Handler = s.Sim
		}
	})
	return &s.front
}

// Serve answers on ln until it fails or the server is shut down, and closes it.
// The error is never nil; after Shutdown and Close it is http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error { return s.init().Serve(ln) }

// Shutdown closes the listeners and the connections without a call under way,
// and waits until the other calls are answered or ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.init().Shutdown(ctx) }

// Close closes the listeners and every connection.
func (s *Server) Close() error { return s.init().Close() }

// TLSListener serves TLS on the connections of inner, which Close closes. A
// client that speaks plain http gets what net/http gives on a TLS port, status
// 400, unless plainToo (violation TLS-007): then a connection whose first byte
// begins no TLS handshake is handed on as it is, so that the same handler
// answers plain http on the same port.
func TLSListener(inner net.Listener, cfg *tls.Config, plainToo bool) net.Listener {
	return httpfront.TLSListener(inner, cfg, plainToo)
}

// frontEndpoint is a simulator as the front sees it.
type frontEndpoint struct{ sim *Sim }

func (e frontEndpoint) Usual() bool             { return e.sim.usual() }
func (e frontEndpoint) Apart(path string) bool  { return apart(path) }
func (e frontEndpoint) NewCall() httpfront.Call { return &frontCall{sim: e.sim} }

// frontCall is the call of one connection, reused from request to request.
type frontCall struct {
	sim  *Sim
	call call
}

// Run answers a call on the fast path.
func (f *frontCall) Run(r *http.Request, body []byte) httpfront.Reply {
	s, c := f.sim, &f.call
	s.run(c, r, body)
	reply := httpfront.Reply{Status: c.reply.status, Header: c.reply.header, Body: c.reply.sent}
	if reply.Header == nil {
		reply.RateLimit = s.rateLimit.Load() // spec 8
	}
	if s.systemClock {
		reply.At = c.start
	}
	return reply
}

// Finish implements httpfront.Call.
func (f *frontCall) Finish() {
	if f.call.sim != nil && f.call.end.IsZero() {
		f.sim.finish(&f.call)
	}
}

// authorised reports whether a call carries the token and the URL secret that
// are configured (spec 5.2.2, 5.2.3).
func (s *Sim) authorised(r *http.Request) bool {
	token := *s.token.Load()
	return (token == "" || tokenMatches(token, r.Header["Authorization"])) && s.config.URLSecret.matches(r.URL)
}

// tokenMatches wants exactly one Authorization header with exactly the token.
func tokenMatches(token string, headers []string) bool {
	if token == "" {
		return true
	}
	if len(headers) != 1 {
		return false
	}
	given, ok := strings.CutPrefix(headers[0], "Bearer ")
	return ok && same(given, token)
}

// matches looks for the secret. A parameter that is repeated must be right
// every time, or an attacker could hide a guess behind another.
func (u URLSecret) matches(at *url.URL) bool {
	switch {
	case u.Query != "":
		values := at.Query()[u.Query]
		for _, v := range values {
			if !same(v, u.Value) {
				return false
			}
		}
		return len(values) > 0
	case u.Path != nil:
		segments := strings.Split(strings.TrimPrefix(at.EscapedPath(), "/"), "/")
		if *u.Path >= len(segments) {
			return false
		}
		segment, err := url.PathUnescape(segments[*u.Path])
		return err == nil && same(segment, u.Value)
	}
	return true
}

// same compares in constant time.
func same(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// limits enforces what the destination declares (spec 8): X-RateLimit-Limit
// over the whole connection, get_sync_speed for one sync.
type limits struct {
	sim      *Sim
	requests *rate.Limiter
	mu       sync.Mutex
	syncs    map[int64]*syncLimit
}

type syncLimit struct {
	parallel int64
	records  *rate.Limiter
}

// newLimits starts with full buckets, as after a restart.
func newLimits(s *Sim) *limits {
	l := &limits{sim: s, syncs: map[int64]*syncLimit{}}
	if n := s.rateLimit.Load(); n > 0 {
		l.requests = rate.NewLimiter(rate.Limit(n), int(n))
	}
	return l
}

// request takes one request from the connection-wide limit.
func (l *limits) request() bool {
	return l.requests == nil || l.requests.AllowN(l.sim.clock(), 1)
}

// enter admits a batch or answers the call; release is to be called either way.
func (l *limits) enter(c *call, b *batch) (release func(), ok bool) {
	speed, records := *l.sim.speed.Load(), int64(b.Len())
	if records > speed.MaximumBatchSize {
		c.refuse(http.StatusRequestEntityTooLarge, codeTooLarge,
			fmt.Sprintf("%d records are more than maximum_batch_size %d", records, speed.MaximumBatchSize))
		return func() {}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	sync := l.syncs[b.Plan.SyncID]
	if sync == nil {
		// A batch may be larger than a second's worth of records, so the burst is at
		// least one batch.
		perSecond := speed.MaximumRecordsPerSecond
		sync = &syncLimit{records: rate.NewLimiter(rate.Limit(perSecond), int(max(perSecond, speed.MaximumBatchSize)))}
		l.syncs[b.Plan.SyncID] = sync
	}
	if sync.parallel >= speed.MaximumParallelBatches {
		c.tooFast("more batches at once than maximum_parallel_batches")
		return func() {}, false
	}
	sync.parallel++
	release = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		sync.parallel--
	}
	if !sync.records.AllowN(l.sim.clock(), int(records)) {
		c.tooFast("more records per second than maximum_records_per_second")
		return release, false
	}
	return release, true
}
