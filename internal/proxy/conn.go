package proxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/callers"
)

// Times that the proxy takes by itself; all others are those of caller and endpoint.
const (
	// dialTimeout bounds how long a connection to the endpoint may take.
	dialTimeout = 10 * time.Second
	// lingerTimeout is how long what a caller still sends is read after its
	// connection was closed, so that it can read the last response.
	lingerTimeout = 500 * time.Millisecond
	// headTimeout is how long a head may take from its first byte.
	headTimeout = 30 * time.Second
	// goneTimeout is how long the endpoint may still answer a caller that has closed
	// its side.
	goneTimeout = time.Minute
)

// mostPipelined is how many requests of one connection may wait for their response.
const mostPipelined = 64

// pair is a connection of a caller with its connection to the endpoint.
type pair struct {
	p      *Proxy
	client net.Conn
	peer   string
	opened time.Time

	endpoint net.Conn
	pending  chan *exchange
	calls    int

	up, down *flow
	left     atomic.Pointer[time.Time] // when the caller closed or reset its side
	over     atomic.Bool               // the caller sends no more
	ended    *atomic.Bool              // the endpoint has ended the connection before that
	local    atomic.Bool               // the proxy has answered by itself: nothing follows
	open     atomic.Int32              // requests without their response
	answered chan struct{}
	ending   atomic.Bool // endClient has bounded what is still read
}

// exchange is one request with its response on the way.
type exchange struct {
	sight    conformance.Sight
	method   string
	request  capture
	response capture
	parts    atomic.Int32 // request and response that are still under way
	local    int          // the status of the proxy's own answer; 0: the endpoint has answered
}

// serve carries a connection until one side ends it.
func (p *Proxy) serve(client net.Conn) {
	c := &pair{p: p, client: client, peer: client.RemoteAddr().String(), opened: time.Now(), pending: make(chan *exchange, mostPipelined), answered: make(chan struct{}), ended: new(atomic.Bool)}
	c.up = newFlow(client)
	c.up.within = c.within
	defer client.Close()
	if secure, ok := client.(*tls.Conn); ok {
		ctx, cancel := context.WithTimeout(p.ctx, dialTimeout)
		err := secure.HandshakeContext(ctx)
		cancel()
		if err != nil {
			return
		}
	}
	err := c.requests()
	now := time.Now()
	c.over.Store(true)
	close(c.pending)
	if c.endpoint == nil {
		return
	}
	switch {
	case (err == nil || errors.Is(err, io.EOF)) && c.open.Load() == 0:
		c.endpoint.Close()
	case err == nil || errors.Is(err, io.EOF):
		// The caller has ended its side. Whether it still reads is not known, and the
		// endpoint is to see what it would see without the proxy.
		c.left.Store(&now)
		closeWrite(c.endpoint)
		timer := time.AfterFunc(goneTimeout, func() { c.endpoint.Close() })
		defer timer.Stop()
	case c.local.Load():
	default:
		c.left.Store(&now)
		reset(c.endpoint)
	}
	<-c.answered
	c.endpoint.Close()
}

// requests passes requests on until the caller ends; nil: the proxy ends.
func (c *pair) requests() error {
	caller := callers.Of(c.client)
	for {
		caller.Rest(func() bool { return c.open.Load() > 0 })
		head, err := c.up.head(mostAsked)
		caller.Work()
		if err != nil {
			switch {
			case errors.Is(err, errHeadTooLarge):
				c.answer(nil, http.StatusRequestHeaderFieldsTooLarge, "the head is larger than 16 KiB")
				return nil
			case errors.Is(err, os.ErrDeadlineExceeded) && !c.ending.Load() && c.open.Load() == 0:
				c.answer(nil, http.StatusRequestTimeout, "the head of the request did not come within "+headTimeout.String())
				return nil
			}
			return err
		}
		c.up.widen()
		h := readRequest(head)
		if h.refuse != "" {
			c.answer(nil, http.StatusBadRequest, h.refuse)
			return nil
		}
		x := c.newExchange(h)
		if c.endpoint == nil {
			if err := c.dial(x); err != nil {
				return nil
			}
		}
		c.calls++
		c.open.Add(1)
		c.pending <- x
		c.rewrite(h, head)
		c.up.r += len(head)
		c.up.capture = func(b []byte, content int) {
			if content > 0 {
				x.request.add(c.p, b)
			}
		}
		err = c.up.body(h.framing)
		c.up.flush()
		c.up.capture = nil
		c.done(x)
		switch {
		case errors.Is(err, errFraming), errors.Is(err, errHeadTooLarge):
			reset(c.endpoint) // where the next request would begin is not known
			return nil
		case err != nil:
			if errors.Is(err, io.ErrUnexpectedEOF) {
				return io.EOF
			}
			return err
		case c.up.writeErr != nil:
			return c.drain()
		}
	}
}

// drain reads a caller's remaining bytes for an endpoint that takes no more, so that
// the caller gets its response.
func (c *pair) drain() error {
	<-c.answered
	_, _ = io.Copy(io.Discard, c.client) // up to the deadline that endClient has set
	return nil
}

// rewrite passes the head on with the Host, and where the caller requested "/" the
// path, of the endpoint.
func (c *pair) rewrite(h *requestHead, head []byte) {
	out := c.up.out
	out = append(append(out, h.method...), ' ')
	out = append(out, c.p.target(h.target)...)
	rest := head[len(h.method)+1+len(h.target):]
	if h.hostTo > 0 {
		from := h.hostAt - (len(head) - len(rest))
		to := h.hostTo - (len(head) - len(rest))
		out = append(append(append(out, rest[:from]...), ' '), c.p.host...)
		rest = rest[to:]
	}
	c.up.out = append(out, rest...)
}

// newExchange begins the record of a request.
func (c *pair) newExchange(h *requestHead) *exchange {
	x := &exchange{method: h.method}
	x.parts.Store(2)
	x.sight = conformance.Sight{
		Number: int(c.p.numbers.Add(1)), Timing: conformance.Timing{Started: time.Now()}, Reused: c.calls > 0, Peer: c.peer, Opened: c.opened, Ended: c.ended,
		Asked: conformance.Asked{Method: h.method, Target: h.target, URL: c.p.shownURL(h.target), RequestHeader: h.header},
	}
	return x
}

// dial connects to the endpoint and begins to pass its responses on. On an error the
// caller gets a response.
func (c *pair) dial(x *exchange) error {
	ctx, cancel := context.WithTimeout(c.p.ctx, dialTimeout)
	defer cancel()
	conn, err := c.p.connect(ctx)
	if err != nil {
		x.sight.Err = err
		x.sight.Total = time.Since(x.sight.Started)
		c.answer(x, http.StatusBadGateway, "the endpoint cannot be reached: "+c.p.why(err))
		return err
	}
	c.endpoint, c.up.dst = conn, conn
	c.down = newFlow(conn)
	c.down.widen()
	c.down.dst = c.client
	go func() {
		defer close(c.answered)
		c.responses()
	}()
	return nil
}

// responses passes responses on, each with the request that it answers.
func (c *pair) responses() {
	defer func() {
		if !c.over.Load() {
			c.ended.Store(true)
		}
		c.endClient()
	}()
	for {
		x, ok := c.next()
		if !ok {
			return
		}
		more := c.response(x)
		c.open.Add(-1)
		if !more {
			c.abandon()
			return
		}
	}
}

// next waits for a request, while it watches the connection: an endpoint that closes
// at rest closes that of the caller too.
func (c *pair) next() (*exchange, bool) {
	select {
	case x, ok := <-c.pending:
		return x, ok
	default:
	}
	// Bytes or an end of the connection come with a request before them, or
	// without one.
	err := c.down.fill()
	select {
	case x, ok := <-c.pending:
		if ok && err != nil {
			x.sight.Err = err
		}
		return x, ok
	default:
	}
	if err != nil {
		return nil, false
	}
	// Bytes after a response without a request: its length was wrong.
	c.p.surplus.Add(1)
	_ = c.rest()
	c.down.flush()
	return nil, false
}

// response passes one response on; false: nothing can follow it.
func (c *pair) response(x *exchange) bool {
	started := x.sight.Started
	var last time.Time
	c.down.began = func() {
		now := time.Now()
		if x.sight.FirstByte == 0 {
			x.sight.FirstByte = now.Sub(started)
		} else if !last.IsZero() {
			x.sight.MaxGap = max(x.sight.MaxGap, now.Sub(last))
		}
		last = now
	}
	c.down.capture = func(b []byte, _ int) { x.response.add(c.p, b) }
	if c.down.r < c.down.w {
		c.down.began()
	}
	more, err := true, x.sight.Err
	if err == nil {
		more, err = c.message(x)
	}
	c.down.began, c.down.capture = nil, nil
	if err != nil && x.response.empty() && c.down.r == c.down.w && !x.sight.Reused && c.left.Load() == nil {
		x.sight.Err = err
		x.sight.Total = time.Since(started)
		x.local = http.StatusBadGateway
		c.answer(nil, http.StatusBadGateway, "the endpoint closed the connection without an answer: "+c.p.cfg.Secrets.String(err.Error()))
		c.done(x)
		return false
	}
	// The caller may begin its next call before a write to it returns: a response ends
	// with its last byte from the endpoint.
	x.sight.Total = last.Sub(started)
	if err != nil {
		x.sight.Total = time.Since(started)
	}
	c.down.flush()
	if err == nil && c.down.r < c.down.w && len(c.pending) == 0 {
		// Bytes behind the response, with no request that they could answer.
		x.response.add(c.p, c.down.buffered())
		_ = c.rest()
		c.down.flush()
		more = false
	}
	if err == nil && c.down.writeErr != nil {
		more = false
		x.sight.Err = fmt.Errorf("pass the response on: %w", context.Canceled)
	} else if err != nil {
		x.sight.Err = err
		if c.left.Load() != nil {
			x.sight.Err = fmt.Errorf("the caller has gone: %w", context.Canceled)
		}
	}
	c.done(x)
	return more && err == nil
}

// message passes one message on, with the interim ones before it.
func (c *pair) message(x *exchange) (more bool, err error) {
	for {
		head, err := c.down.head(maxHead)
		switch {
		case errors.Is(err, errHeadTooLarge):
			return false, c.rest()
		case errors.Is(err, io.EOF) && c.down.r < c.down.w:
			c.down.pass(c.down.w-c.down.r, false) // half a head
			return false, io.ErrUnexpectedEOF
		case err != nil:
			return false, err
		}
		h, ok := readResponse(head, x.method)
		if !ok || h.status == http.StatusSwitchingProtocols {
			return false, c.rest()
		}
		c.down.pass(len(head), false)
		if h.status < 200 {
			continue
		}
		err = c.down.body(h.framing)
		if errors.Is(err, errFraming) || errors.Is(err, errHeadTooLarge) {
			return false, c.rest()
		}
		if err != nil && c.down.r < c.down.w {
			c.down.pass(c.down.w-c.down.r, false)
		}
		return h.framing.kind != framedClose, err
	}
}

// rest passes everything on as it comes: its end is that of the connection, which the
// caller can no longer use.
func (c *pair) rest() error {
	c.ended.Store(true)
	return c.down.rest()
}

// abandon ends the requests that will get no response.
func (c *pair) abandon() {
	for {
		select {
		case x, ok := <-c.pending:
			if !ok {
				return
			}
			if x.sight.Err == nil {
				x.sight.Err = io.EOF
			}
			c.done(x)
		default:
			return
		}
	}
}

// within bounds the time of a head that has begun.
func (c *pair) within(head bool) {
	if head {
		_ = c.client.SetReadDeadline(time.Now().Add(headTimeout))
		return
	}
	_ = c.client.SetReadDeadline(time.Time{})
	if c.ending.Load() {
		_ = c.client.SetReadDeadline(time.Now().Add(lingerTimeout))
	}
}

// endClient ends the side of the caller once the endpoint has ended its own.
func (c *pair) endClient() {
	c.ending.Store(true)
	closeWrite(c.client)
	// The other direction ends when the caller closes, or after a while.
	_ = c.client.SetReadDeadline(time.Now().Add(lingerTimeout))
}

// done ends one half of an exchange; with the second one it is handed over.
func (c *pair) done(x *exchange) {
	if x.parts.Add(-1) > 0 {
		return
	}
	if left := c.left.Load(); left != nil {
		if after := left.Sub(x.sight.Started); after < x.sight.Total {
			x.sight.CallerLeft = after
		}
	}
	c.p.finished(x)
}

// answer lets the proxy answer by itself and end the connection. x may be nil.
func (c *pair) answer(x *exchange, status int, why string) {
	c.local.Store(true)
	if x != nil {
		x.local = status
		defer c.p.finished(x)
	}
	c.p.local.Add(1)
	body, _ := json.Marshal(map[string]string{"error": "destkit proxy: " + why})
	head := "HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) + "\r\nContent-Type: application/json\r\nX-Destkit-Proxy: answered\r\nConnection: close\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n"
	_, _ = c.client.Write(append([]byte(head), body...))
	if c.endpoint != nil {
		c.endpoint.Close()
		return
	}
	closeWrite(c.client)
	_ = c.client.SetReadDeadline(time.Now().Add(lingerTimeout))
	_, _ = io.Copy(io.Discard, c.client)
}

// closeWrite ends one direction of a connection.
func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	conn.Close()
}

// reset ends a connection as one that was cut.
func reset(conn net.Conn) {
	raw := conn
	if secure, ok := conn.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	if tcp, ok := raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	raw.Close()
}
