package httpfront

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
)

// handedListener is what net/http serves: it gives the connections that are
// handed over.
type handedListener struct {
	net.Listener
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
	shut   sync.Once
	failed error // of the inner listener; read after done
}

func newHanded(inner net.Listener) *handedListener {
	return &handedListener{Listener: inner, conns: make(chan net.Conn), done: make(chan struct{})}
}

// give hands a connection to net/http, or closes it when that has ended.
func (l *handedListener) give(conn net.Conn) {
	select {
	case l.conns <- conn:
	case <-l.done:
		_ = conn.Close()
	}
}

func (l *handedListener) end(err error) {
	l.once.Do(func() { l.failed = err; close(l.done) })
}

// Accept implements net.Listener.
func (l *handedListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, l.failed
	}
}

// Close closes the inner listener too.
func (l *handedListener) Close() (err error) {
	l.end(net.ErrClosed)
	l.shut.Do(func() { err = l.Listener.Close() })
	return err
}

// handedConn is a connection of which some bytes have been read already.
type handedConn struct {
	net.Conn
	read []byte
}

// Read gives the bytes that were read before first.
func (c *handedConn) Read(b []byte) (int, error) {
	if len(c.read) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.read)
	if c.read = c.read[n:]; len(c.read) == 0 {
		c.read = nil
	}
	return n, nil
}

// NetConn is the connection beneath.
func (c *handedConn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http end its side first, so that a client that still
// writes can read the answer.
func (c *handedConn) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return errors.ErrUnsupported
}

// handedPlain is one that a handler can reset.
type handedPlain struct{ handedConn }

// SetLinger lets a handler reset the connection.
func (c *handedPlain) SetLinger(seconds int) error {
	if conn, ok := c.Conn.(interface{ SetLinger(int) error }); ok {
		return conn.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}

// handedTLS is the same over TLS. net/http finds the state of the connection by
// this method.
type handedTLS struct {
	handedConn
	tls *tls.Conn
}

// ConnectionState gives net/http the result of the handshake.
func (c *handedTLS) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// NetConn is the connection below TLS, for a handler that resets it.
func (c *handedTLS) NetConn() net.Conn { return c.tls.NetConn() }

// handed wraps a connection of which read has been read.
func handed(conn net.Conn, read []byte) net.Conn {
	if t, ok := conn.(*tls.Conn); ok {
		return &handedTLS{handedConn{conn, read}, t}
	}
	return &handedPlain{handedConn{conn, read}}
}
