package destination

import (
	"context"
	"crypto/tls"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// wire is a network connection of a gate. It reports when the first bytes of a
// request have been written, and gives its descriptor back when it is closed.
type wire struct {
	net.Conn
	release func()
	sending func()                 // Options.Sending
	written atomic.Pointer[func()] // waits for the next write
}

// Write is that of net.Conn.
func (c *wire) Write(b []byte) (int, error) {
	written := c.written.Swap(nil)
	if written == nil {
		return c.Conn.Write(b)
	}
	if c.sending != nil {
		c.sending()
	}
	n, err := c.Conn.Write(b)
	(*written)()
	return n, err
}

// Close is that of net.Conn.
func (c *wire) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// wireOf finds the wire below a connection of a pool; nil: it has none, as that of an
// emulated destination.
func wireOf(conn net.Conn) *wire {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	w, _ := conn.(*wire)
	return w
}

// AtFirstByte is the context of one request: written runs right after its first byte is
// written. net/http writes into a buffer first: its own word for written headers comes
// before anything is sent, and a process paused in between would count as sending in a
// past second. Without a network connection that has to do, and where a request is sent
// again on another connection, written runs again.
func AtFirstByte(ctx context.Context, written func()) context.Context {
	var known atomic.Bool
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			w := wireOf(info.Conn)
			if w != nil {
				w.written.Store(&written)
			}
			known.Store(w != nil)
		},
		WroteHeaders: func() {
			if !known.Load() {
				written()
			}
		},
	})
}
