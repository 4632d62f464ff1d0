// Package httpfront is the HTTP/1.1 server of a simulated destination: calls in
// their usual form are read and answered by a separate loop, everything else is
// handed over to net/http together with its connection. It knows nothing of what
// the calls mean.
package httpfront

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/callers"
)

// Endpoint is what a Server answers for.
type Endpoint interface {
	// Usual reports whether calls in their usual form may be answered here now.
	// Otherwise net/http answers them.
	Usual() bool
	// Apart reports whether a path is not the endpoint's.
	Apart(path string) bool
	// NewCall makes what one connection answers its calls with, one after the
	// other.
	NewCall() Call
}

// Call answers one call at a time.
type Call interface {
	// Run answers a call. body and the content of the reply must be left alone
	// until Finish.
	Run(r *http.Request, body []byte) Reply
	// Finish ends the call, before its reply is sent or after Run has panicked. It
	// does nothing when no call is under way.
	Finish()
}

// Reply is the answer to a call.
type Reply struct {
	Status int
	// Header is nil for Content-Type: application/json and RateLimit alone.
	Header    http.Header
	RateLimit int64 // of X-RateLimit-Limit; 0: there is none
	Body      []byte
	// At is the time of the call by the system clock; zero: it is not known.
	At time.Time
}

// Server reads and answers the calls of an endpoint in their usual form, and
// hands every other connection over to net/http.
type Server struct {
	Endpoint Endpoint
	// MaxBody is the longest body in bytes that is answered here.
	MaxBody int64
	// Handler answers requests that are handed over.
	Handler http.Handler
	// ReadHeaderTimeout bounds the time from the first byte of a request to the
	// end of its head, and that of a TLS handshake; 0: no bound.
	ReadHeaderTimeout time.Duration
	// IdleTimeout bounds the wait for the next request; 0: no bound.
	IdleTimeout time.Duration
	// ErrorLog takes what net/http complains about; nil: the log package.
	ErrorLog *log.Logger

	look time.Duration // see lookAgain, which 0 means

	once sync.Once
	http *http.Server

	mu      sync.Mutex
	conns   map[*fastConn]struct{}
	fronts  map[*handedListener]struct{}
	closing atomic.Bool
	empty   chan struct{} // closed when closing and the last connection has gone
	date    atomic.Pointer[dateText]
}

// init makes what a zero Server lacks.
func (s *Server) init() {
	s.once.Do(func() {
		s.http = &http.Server{
			Handler: s.Handler, ErrorLog: s.ErrorLog,
			ReadHeaderTimeout: s.ReadHeaderTimeout, IdleTimeout: s.IdleTimeout,
			MaxHeaderBytes: callers.MaxHead, ConnState: callers.State,
		}
		s.conns, s.fronts = map[*fastConn]struct{}{}, map[*handedListener]struct{}{}
		s.empty = make(chan struct{})
	})
}

// Serve answers on ln until it fails or the server is shut down, and closes it.
// The error is never nil; after Shutdown and Close it is http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error {
	s.init()
	front := newHanded(callers.Listen(ln, 0))
	s.mu.Lock()
	if s.closing.Load() {
		s.mu.Unlock()
		return errors.Join(http.ErrServerClosed, ln.Close())
	}
	s.fronts[front] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.fronts, front)
	}()
	var accepting sync.WaitGroup
	accepting.Go(func() { s.accept(front) })
	err := s.http.Serve(front) // closes front, and so ln
	accepting.Wait()
	if s.closing.Load() {
		return http.ErrServerClosed
	}
	return err
}

// accept starts a goroutine for each connection of the inner listener.
func (s *Server) accept(front *handedListener) {
	pause := time.Duration(0)
	for {
		conn, err := front.Listener.Accept()
		if err != nil {
			// Too many open files pass; net/http waits in the same way.
			var soft interface{ Temporary() bool }
			if errors.As(err, &soft) && soft.Temporary() && !s.closing.Load() {
				pause = min(max(2*pause, 5*time.Millisecond), time.Second)
				select {
				case <-time.After(pause):
				case <-front.done:
				}
				continue
			}
			front.end(err)
			return
		}
		pause = 0
		c := newFastConn(s, front, conn)
		if !s.add(c) {
			_ = conn.Close()
			continue
		}
		go c.serve()
	}
}

// add counts a connection in; false once the server is closing.
func (s *Server) add(c *fastConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

// remove counts a connection out that has ended or was handed over.
func (s *Server) remove(c *fastConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.check()
}

// check reports that nothing is left; mu is held.
func (s *Server) check() {
	if s.closing.Load() && len(s.conns) == 0 {
		select {
		case <-s.empty:
		default:
			close(s.empty)
		}
	}
}

// Shutdown closes the listeners and the connections without a call under way,
// and waits until the other calls are answered or ctx ends.
func (s *Server) Shutdown(ctx context.Context) error {
	s.init()
	s.stop(false)
	err := s.http.Shutdown(ctx)
	select {
	case <-s.empty:
	case <-ctx.Done():
		err = errors.Join(err, ctx.Err())
	}
	return err
}

// Close closes the listeners and every connection.
func (s *Server) Close() error {
	s.init()
	s.stop(true)
	return s.http.Close()
}

// stop keeps new connections away, and closes those that wait for a call, or
// all.
func (s *Server) stop(all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing.Store(true)
	for front := range s.fronts {
		_ = front.Close()
	}
	for c := range s.conns {
		if all || c.state.CompareAndSwap(connIdle, connClosed) {
			_ = c.conn.Close()
		}
	}
	s.check()
}
