package destsim

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves one simulator on listeners that it is handed. Calls of the
// endpoint in their usual form (spec 4.2: a POST with one Content-Length) are
// read and answered by a loop of their own, which costs a third of what
// net/http does. Every other request is handed over to net/http together with
// its connection, the bytes read so far included: other methods, chunked
// bodies, Expect, HTTP/1.0 and HTTP/2, long or odd heads, /_control and
// /healthz, and all of them while a violation or a fault is armed. Replies have
// the same bytes either way.
type Server struct {
	Sim *Sim
	// Handler answers what is handed over; Sim when nil. POST beside /healthz
	// and /_control never reaches it for sure.
	Handler http.Handler
	// ReadHeaderTimeout bounds the time from the first byte of a request to the
	// end of its head, and that of a TLS handshake; 0: no bound.
	ReadHeaderTimeout time.Duration
	// IdleTimeout bounds the wait for the next request; 0: no bound.
	IdleTimeout time.Duration
	// ErrorLog takes what net/http complains about; nil: the log package.
	ErrorLog *log.Logger

	look time.Duration // see lookAgain, which 0 stands for

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
		}
		if s.Handler == nil {
			s.http.Handler = s.Sim
		}
		s.conns, s.fronts = map[*fastConn]struct{}{}, map[*handedListener]struct{}{}
		s.empty = make(chan struct{})
	})
}

// Serve answers on ln until it fails or the server is shut down, and closes it.
// The error is never nil; after Shutdown and Close it is http.ErrServerClosed.
func (s *Server) Serve(ln net.Listener) error {
	s.init()
	front := &handedListener{Listener: ln, conns: make(chan net.Conn), done: make(chan struct{})}
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
