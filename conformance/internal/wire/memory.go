package wire

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// memoryListener is a net.Listener without a network. Its connections seem to come from
// 127.0.0.1:1.
type memoryListener struct {
	conns chan net.Conn
	done  chan struct{}
	close func()
}

func listenInMemory() *memoryListener {
	l := &memoryListener{conns: make(chan net.Conn), done: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.done) })
	return l
}

// Accept waits for the next connection; after Close it gives net.ErrClosed.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close refuses new connections.
func (l *memoryListener) Close() error {
	l.close()
	return nil
}

// Addr is 127.0.0.1:2.
func (l *memoryListener) Addr() net.Addr { return serverAddr }

// dial connects to the listener, whatever the address.
func (l *memoryListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	accepted := *serverAddr // a connection has its own address, as from the system
	select {
	case l.conns <- memoryConn{server, &accepted, clientAddr}:
		return memoryConn{client, clientAddr, serverAddr}, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: serverAddr, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHandler serves a handler in memory. The returned dial fits Options.Dial;
// stop ends the server and its connections.
func ServeHandler(h http.Handler) (dial func(ctx context.Context, network, addr string) (net.Conn, error), stop func()) {
	l := listenInMemory()
	// A handler that panics shows as a closed connection, not on a user's
	// standard error.
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(l)
	}()
	return l.dial, func() {
		srv.Close()
		<-ended
	}
}

var (
	clientAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	serverAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}
)

// memoryConn is one end of a connection, with the addresses that handlers expect.
type memoryConn struct {
	net.Conn
	local, remote net.Addr
}

func (c memoryConn) LocalAddr() net.Addr  { return c.local }
func (c memoryConn) RemoteAddr() net.Addr { return c.remote }
