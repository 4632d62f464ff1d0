package wire

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// pipeBuffer is what one direction of an in-memory connection holds, in bytes,
// like the buffers of a socket.
const pipeBuffer = 64 << 10

// MemoryListener is a net.Listener without a network. Its connections are
// buffered like TCP and seem to come from 127.0.0.1:1.
type MemoryListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Listen gives a listener for a server in the same process.
func Listen() *MemoryListener {
	return &MemoryListener{conns: make(chan net.Conn, 128), done: make(chan struct{})}
}

// Accept waits for the next connection; after Close it gives net.ErrClosed.
func (l *MemoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close refuses new connections and drops those that wait.
func (l *MemoryListener) Close() error {
	l.once.Do(func() { close(l.done) })
	for {
		select {
		case conn := <-l.conns:
			conn.Close()
		default:
			return nil
		}
	}
}

// Addr is 127.0.0.1:2.
func (l *MemoryListener) Addr() net.Addr { return serverAddr }

// Dial connects to the listener, whatever the address. It fits Options.Dial.
func (l *MemoryListener) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	refused := &net.OpError{Op: "dial", Net: "memory", Addr: serverAddr, Err: syscall.ECONNREFUSED}
	select {
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	default:
	}
	client, server := memoryPipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ServeHandler serves a handler in memory. The returned dial fits Options.Dial;
// stop ends the server and its connections.
func ServeHandler(h http.Handler) (dial func(ctx context.Context, network, addr string) (net.Conn, error), stop func()) {
	l := Listen()
	// A handler that panics shows as a closed connection, not on a user's
	// standard error.
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(l)
	}()
	return l.Dial, func() {
		srv.Close()
		l.Close()
		<-ended
	}
}

var (
	clientAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	serverAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2}
)

// memoryPipe gives the two ends of a connection.
func memoryPipe() (client, server net.Conn) {
	up, down := newStream(), newStream()
	return &memoryConn{in: down, out: up, local: clientAddr, remote: serverAddr},
		&memoryConn{in: up, out: down, local: serverAddr, remote: clientAddr}
}

// memoryConn reads from one stream and writes to the other.
type memoryConn struct {
	in, out       *stream
	local, remote net.Addr
}

func (c *memoryConn) Read(p []byte) (int, error)         { return c.in.read(p) }
func (c *memoryConn) Write(p []byte) (int, error)        { return c.out.write(p) }
func (c *memoryConn) LocalAddr() net.Addr                { return c.local }
func (c *memoryConn) RemoteAddr() net.Addr               { return c.remote }
func (c *memoryConn) SetReadDeadline(t time.Time) error  { c.in.readers.set(c.in, t); return nil }
func (c *memoryConn) SetWriteDeadline(t time.Time) error { c.out.writers.set(c.out, t); return nil }

func (c *memoryConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close ends both directions: the peer reads what is buffered, then the end,
// and cannot write any more.
func (c *memoryConn) Close() error {
	c.out.finish(false)
	c.in.finish(true)
	return nil
}
