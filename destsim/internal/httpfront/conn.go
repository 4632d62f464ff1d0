package httpfront

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/callers"
	"github.com/destkit/destkit/internal/rawconn"
)

// States of a connection of the fast path.
const (
	connIdle   = iota // no byte of the next request is there
	connActive        // a request is under way
	connClosed        // the server has closed it while it was idle
)

const (
	firstBuffer = 4 << 10   // size of a connection's first buffer
	keptBuffer  = 512 << 10 // a larger one is given back after the call
	bodyStep    = 64 << 10  // how far a buffer runs ahead of the received bytes
)

// fastConn is one connection on the fast path. Its buffers, its call and its
// remembered heads are reused from request to request.
type fastConn struct {
	server *Server
	front  *handedListener
	conn   net.Conn
	caller *callers.Conn
	atHead bool // the caller counts as one whose head is not there
	state  atomic.Int32
	begun  time.Time // of the connection
	armed  time.Time // when the deadline for idling was set; zero: it is not

	buf  []byte // buf[from:to] has been read and not been used
	from int
	to   int
	head headMemo
	call Call
	out  []byte
	last time.Time // of the last reply
	raw  rawConn
}

func newFastConn(s *Server, front *handedListener, conn net.Conn) *fastConn {
	c := &fastConn{server: s, front: front, conn: conn, caller: callers.Of(conn), atHead: true, begun: time.Now()}
	if s.Endpoint != nil {
		c.call, c.head.apart = s.Endpoint.NewCall(), s.Endpoint.Apart
	}
	c.raw.conn, c.raw.take = rawconn.Of(callers.Plain(conn)), c.takeRaw
	if c.raw.tls = socketOf(conn); c.raw.tls != nil {
		c.raw.conn = c.raw.tls.raw
	}
	return c
}

// serve answers calls until the connection ends or is handed over.
func (c *fastConn) serve() {
	defer c.server.remove(c)
	defer c.recover()
	if !c.server.Endpoint.Usual() || !c.handshake() {
		c.front.give(c.conn)
		return
	}
	c.buf = make([]byte, firstBuffer)
	for c.wait() {
		switch length, verdict := c.readHead(); verdict {
		case headEnded:
			_ = c.conn.Close()
			return
		case headForeign:
			c.handOver()
			return
		default:
			if !c.readBody(length) {
				c.handBack(length)
				return
			}
			if !c.answer() {
				_ = c.conn.Close()
				return
			}
		}
	}
	_ = c.conn.Close()
}

// recover ends a connection whose call has failed in our own code, as net/http
// does.
func (c *fastConn) recover() {
	err := recover()
	if err == nil {
		return
	}
	defer c.conn.Close()
	c.call.Finish()
	if err == http.ErrAbortHandler {
		return
	}
	if l := c.server.ErrorLog; l != nil {
		l.Printf("http: panic serving %v: %v\n%s", c.conn.RemoteAddr(), err, debug.Stack())
	}
}

// handshake agrees on TLS where the connection is one, and reports whether the
// client then speaks HTTP/1.1. A failure is left to net/http, which is given it
// again and knows what to say to whom.
func (c *fastConn) handshake() bool {
	t, ok := c.conn.(*tls.Conn)
	if !ok {
		return true
	}
	if d := c.server.ReadHeaderTimeout; d > 0 {
		_ = t.SetDeadline(c.begun.Add(d))
	}
	err := t.HandshakeContext(context.Background())
	_ = t.SetDeadline(time.Time{})
	if err != nil {
		return false
	}
	protocol := t.ConnectionState().NegotiatedProtocol
	return protocol == "" || protocol == "http/1.1"
}

// handOver gives the connection to net/http with the bytes read so far.
func (c *fastConn) handOver() {
	c.caller.Rest(nil)
	c.caller.Received(c.buf[c.from:c.to])
	c.conn.SetReadDeadline(time.Time{})
	c.front.give(handed(c.conn, bytes.Clone(c.buf[c.from:c.to])))
}

// handBack leaves a call whose body has ended too early to net/http.
func (c *fastConn) handBack(length int) {
	read := strconv.AppendInt(bytes.Clone(c.head.before), int64(length), 10)
	read = append(append(read, c.head.after...), c.buf[c.from:c.to]...)
	c.front.give(handed(c.conn, read))
}

// wait returns true when the first byte of a request is there.
func (c *fastConn) wait() bool {
	if c.from < c.to { // sent ahead of the reply to the request before
		return !c.server.closing.Load()
	}
	if !c.rest() {
		return false
	}
	if c.raw.conn != nil {
		return c.waitRaw()
	}
	c.idle()
	n, err := c.conn.Read(c.buf)
	c.to = n
	return (n > 0 || err == nil) && c.state.CompareAndSwap(connIdle, connActive)
}

// rest makes the connection ready for the next request; false: the server is
// closing.
func (c *fastConn) rest() bool {
	c.from, c.to = 0, 0
	if len(c.buf) > keptBuffer {
		c.buf = make([]byte, firstBuffer)
	}
	c.state.Store(connIdle)
	return !c.server.closing.Load() // stop may have looked before
}

// idle bounds the wait. Setting a deadline costs a twentieth of a call, so it
// is moved once a second only.
func (c *fastConn) idle() {
	d, now := c.server.IdleTimeout, c.last
	if now.IsZero() { // nothing has come yet
		d, now = c.server.ReadHeaderTimeout, c.begun
	}
	if d > 0 && now.Sub(c.armed) >= time.Second {
		c.armed = now
		c.conn.SetReadDeadline(now.Add(d))
	}
}

// deadline bounds the reading of the rest of a request; zero lifts all bounds.
func (c *fastConn) deadline(at time.Time) {
	c.armed = time.Time{}
	c.conn.SetReadDeadline(at)
}

// The verdicts of readHead.
const (
	headUsual   = iota // the fast path answers
	headForeign        // net/http answers
	headEnded          // the client has gone, or took too long
)

// readHead reads to the end of the head. It returns the length of the body.
func (c *fastConn) readHead() (length int, verdict int) {
	slow, blank := false, 0
	for {
		// Empty lines that old clients send after a POST are skipped, as many as
		// net/http skips.
		for !c.last.IsZero() && blank < 4 && c.from < c.to && (c.buf[c.from] == '\r' || c.buf[c.from] == '\n') {
			c.from++
			blank++
		}
		n, length, verdict := c.head.match(c.buf[c.from:c.to])
		if verdict != headPartial {
			if verdict == headUsual && (int64(length) > c.server.MaxBody || !c.server.Endpoint.Usual()) {
				verdict = headForeign
			}
			if verdict == headUsual {
				c.from += n
			}
			if slow {
				c.deadline(time.Time{})
			}
			return length, verdict
		}
		if d := c.server.ReadHeaderTimeout; d > 0 && !slow {
			c.deadline(time.Now().Add(d))
		}
		if !c.atHead {
			c.atHead = true
			c.caller.Rest(nil)
		}
		if !slow {
			c.caller.Received(c.buf[c.from:c.to])
		}
		slow = true
		switch err := c.more(HeadLimit); err {
		case nil:
		case io.EOF:
			return 0, headForeign // half a head has an answer too
		default:
			return 0, headEnded
		}
	}
}

// works notes that a head is there; at rest again, the connection does not count.
func (c *fastConn) works() {
	if c.atHead {
		c.atHead = false
		c.caller.Work()
	}
}

// readBody reads until the body of so many bytes is at buf[from:].
func (c *fastConn) readBody(length int) bool {
	c.works()
	if c.to-c.from >= length {
		return true
	}
	if !c.armed.IsZero() {
		c.deadline(time.Time{}) // a body has all the time that it needs
	}
	for c.to-c.from < length {
		if c.more(length) != nil {
			return false
		}
	}
	return true
}

// more reads further bytes of a piece of that size which begins at from. Room
// is made as bytes come: the length in the head may be false.
func (c *fastConn) more(size int) error {
	if c.to == len(c.buf) {
		have := c.to - c.from
		if c.from > 0 && len(c.buf) >= size {
			copy(c.buf, c.buf[c.from:c.to])
		} else {
			next := make([]byte, max(min(size, max(2*have, bodyStep)), firstBuffer))
			copy(next, c.buf[c.from:c.to])
			c.buf = next
		}
		c.from, c.to = 0, have
	}
	n, err := c.conn.Read(c.buf[c.to:])
	if c.to += n; n > 0 {
		return nil
	}
	return err
}

// answer runs one call; false ends the connection.
func (c *fastConn) answer() bool {
	c.works()
	length := int(c.head.request.ContentLength)
	body := c.buf[c.from : c.from+length : c.from+length]
	c.from += length
	reply := c.call.Run(c.head.request, body)
	if c.last = reply.At; c.last.IsZero() {
		c.last = time.Now()
	}
	closing := c.server.closing.Load()
	c.out = c.server.appendReply(c.out[:0], &reply, c.last, closing)
	c.call.Finish() // before the client can know of it
	err := c.write(c.out)
	if cap(c.out) > keptBuffer {
		c.out = nil
	}
	return err == nil && !closing
}
