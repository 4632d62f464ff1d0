package destsim

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

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
