package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// stopGrace is how long calls in flight may take after SIGINT or SIGTERM.
const stopGrace = 5 * time.Second

// service is one port that a command serves.
type service struct {
	addr    string // HOST:PORT; port 0 lets the system choose
	handler http.Handler
	tls     *tls.Config // nil: plain http
	// alsoPlain answers plain http on the TLS port with the same handler.
	// Without it net/http answers 400 there.
	alsoPlain bool
	log       io.Writer // complaints of net/http; nil drops them
}

// listen opens the port. The URL has the address that was really taken.
func (s *service) listen() (net.Listener, string, error) {
	ln, err := net.Listen("tcp", s.addr)
	if err != nil {
		return nil, "", usageError(fmt.Errorf("listen on %s: %w", s.addr, err))
	}
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return ln, scheme + "://" + reachable(ln.Addr()), nil
}

// reachable is the address with which this machine gets there: a port that is
// open on every address is shown with the loopback one.
func reachable(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", tcp.Port)
	}
	return addr.String()
}

// serve answers on ln until ctx ends, then lets calls in flight finish.
func (s *service) serve(ctx context.Context, ln net.Listener) error {
	logger := log.New(io.Discard, "", 0)
	if s.log != nil {
		logger = log.New(s.log, "", 0)
	}
	server := &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.tls,
		ErrorLog:          logger,
		ReadHeaderTimeout: 30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		// A violation of framing or keep-alive is decided per HTTP/1.1
		// exchange, and so is the published protocol: no HTTP/2.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	failed := make(chan error, 2)
	switch {
	case s.tls == nil:
		go func() { failed <- server.Serve(ln) }()
	case s.alsoPlain:
		secure, plain := splitTLS(ln)
		go func() { failed <- server.ServeTLS(secure, "", "") }()
		go func() { failed <- server.Serve(plain) }()
	default:
		go func() { failed <- server.ServeTLS(ln, "", "") }()
	}
	select {
	case err := <-failed:
		return untested(fmt.Errorf("serve %s: %w", ln.Addr(), err))
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		server.Close() // a client that never ends its call does not hold us
	}
	return nil
}

// splitTLS gives the connections of ln to one of two listeners by their first
// byte: a TLS handshake begins with 0x16, no HTTP request does.
func splitTLS(ln net.Listener) (secure, plain net.Listener) {
	done := make(chan struct{})
	var once sync.Once
	end := func() { once.Do(func() { close(done); ln.Close() }) }
	s := &half{conns: make(chan net.Conn), done: done, end: end, addr: ln.Addr()}
	p := &half{conns: make(chan net.Conn), done: done, end: end, addr: ln.Addr()}
	go func() {
		defer end()
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go dispatch(conn, s, p)
		}
	}()
	return s, p
}

// dispatch waits for the first byte of conn and passes it on unread.
func dispatch(conn net.Conn, secure, plain *half) {
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	reader := bufio.NewReader(conn)
	first, err := reader.Peek(1)
	if err != nil {
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	to := plain
	if first[0] == 0x16 {
		to = secure
	}
	select {
	case to.conns <- &peeked{Conn: conn, reader: reader}:
	case <-to.done:
		conn.Close()
	}
}

// peeked is a connection whose first bytes were looked at.
type peeked struct {
	net.Conn
	reader *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.reader.Read(b) }

// SetLinger lets the handler reset the connection underneath, as it can on a
// connection that nobody looked at.
func (p *peeked) SetLinger(sec int) error {
	if conn, ok := p.Conn.(interface{ SetLinger(int) error }); ok {
		return conn.SetLinger(sec)
	}
	return errors.ErrUnsupported
}

// half is one of the two listeners behind one port.
type half struct {
	conns chan net.Conn
	done  chan struct{}
	end   func()
	addr  net.Addr
}

func (h *half) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, errors.Join(net.ErrClosed, http.ErrServerClosed)
	}
}

func (h *half) Close() error   { h.end(); return nil }
func (h *half) Addr() net.Addr { return h.addr }
