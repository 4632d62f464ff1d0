package httpfront

import (
	"cmp"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/destkit/destkit/internal/rawconn"
)

// rawConn is the plain socket of a connection, or the one beneath its TLS, where
// the system lets the fast path read and write it by itself. A request that is there as a whole is then
// answered within one call of Read of the socket, with one read and one write
// of the system:
//
//   - The system calls never block, so the scheduler need not know of them.
//   - The poller tells of every byte that comes after a read that did not fill
//     its buffer. So nothing is read in vain before waiting.
//
// The poller does not report again that the client has ended its side, which
// may have come with the last request. Therefore only a connection of many
// requests waits without a look, and not for long.
type rawConn struct {
	conn  syscall.RawConn // nil: there is none
	tls   *tlsSocket      // nil: no TLS
	take  func(fd uintptr) bool
	fd    uintptr
	open  bool // fd may be used: conn.Read is under way
	ended bool
	taken int // requests that were answered in this way
	// trusting means that a wait for the poller comes without a look before.
	trusting bool
}

const (
	lookAgain = 2 * time.Second // how long the poller is trusted
	manyTaken = 16              // after so many requests
)

// waitRaw is wait on a socket. It answers the requests that are there as a
// whole; true leaves the beginning of a request to the loop of serve.
func (c *fastConn) waitRaw() bool {
	for {
		if !c.raw.trusting {
			c.idle()
		}
		c.raw.ended = false
		err := c.raw.conn.Read(c.raw.take)
		c.raw.close()
		switch {
		case err == nil:
			return !c.raw.ended
		case !c.raw.trusting || !errors.Is(err, os.ErrDeadlineExceeded):
			return false
		}
		// Nothing has come for a while: look, and wait for all the rest.
		c.raw.trusting, c.armed = false, time.Time{}
		c.conn.SetReadDeadline(time.Time{})
	}
}

// close ends the use of the socket by itself.
func (r *rawConn) close() {
	if r.open = false; r.tls != nil {
		r.tls.open = false
	}
}

// read reads the available bytes, through TLS where there is any. It fails with syscall.EAGAIN
// where nothing is; drained means that nothing was left.
func (c *fastConn) read(fd uintptr) (n int, drained bool, err error) {
	if c.raw.tls == nil {
		c.raw.fd, c.raw.open = fd, true
		n, err = rawconn.Read(fd, c.buf)
		return n, n < len(c.buf), err
	}
	c.raw.tls.fd, c.raw.tls.open = fd, true
	c.raw.tls.fresh()
	n, err = c.conn.Read(c.buf)
	return n, n < len(c.buf) && c.raw.tls.single(), err
}

// takeRaw is called when there may be bytes; false waits for more.
func (c *fastConn) takeRaw(fd uintptr) (done bool) {
	for {
		n, drained, err := c.read(fd)
		if err == syscall.EAGAIN {
			return false
		}
		c.to = n
		if n == 0 || !c.state.CompareAndSwap(connIdle, connActive) {
			c.raw.ended = true
			return true
		}
		if !c.whole() {
			c.untrust()
			return true
		}
		if !c.answer() {
			c.raw.ended = true
			return true
		}
		if c.from < c.to {
			c.untrust()
			return true
		}
		if !c.rest() {
			c.raw.ended = true
			return true
		}
		if c.raw.taken++; drained && c.raw.taken >= manyTaken {
			c.trust()
			return false
		}
	}
}

// trust bounds a wait without a look; the deadline is moved once a second.
func (c *fastConn) trust() {
	if c.raw.trusting && c.last.Sub(c.armed) < time.Second {
		return
	}
	d := cmp.Or(c.server.look, lookAgain)
	if idle := c.server.IdleTimeout; idle > 0 {
		d = min(d, idle)
	}
	c.raw.trusting, c.armed = true, c.last
	c.conn.SetReadDeadline(c.last.Add(d))
}

// untrust lets the next wait begin with a look and its own deadline.
func (c *fastConn) untrust() {
	if c.raw.trusting {
		c.raw.trusting = false
		c.deadline(time.Time{})
	}
}

// whole reports whether a usual request is there to the end of its body, and
// steps behind its head.
func (c *fastConn) whole() bool {
	n, length, verdict := c.head.match(c.buf[:c.to])
	if verdict != headUsual || c.to-n < length || int64(length) > c.server.MaxBody || !c.server.Endpoint.Usual() {
		return false
	}
	c.from = n
	return true
}

// write sends the reply.
func (c *fastConn) write(b []byte) error {
	if c.raw.open {
		n, _ := rawconn.Write(c.raw.fd, b) // a fault shows again below
		b = b[n:]
		if len(b) == 0 {
			return nil
		}
	}
	_, err := c.conn.Write(b)
	return err
}
