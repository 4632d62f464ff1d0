package wire

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/quantity"
)

// continueWait is how long a body waits for the answer to Expect (RFC 9110 10.1.1).
const continueWait = time.Second

// Do sends one call and gives what came back. It returns when the response is complete, at the
// call's deadline, or when ctx ends; it never panics on what a peer sends.
func (c *Client) Do(ctx context.Context, call Call) *Reply {
	r := &Reply{Request: call.Body, Timing: Timing{Started: time.Now()}, budget: &c.budget}
	q, err := c.prepare(&call)
	if err != nil {
		r.Err = &Error{Kind: KindInvalid, Op: "prepare call", Err: err}
	} else if c.opts.Limiter != nil {
		if err := c.opts.Limiter(ctx, call.Records); err != nil {
			r.Err = &Error{Kind: KindCanceled, Op: "wait for the limiter", Err: err}
		}
	}
	done := func() {}
	if r.Err == nil && call.Conn == nil {
		done, r.Err = c.Turn(ctx)
	}
	if r.Err == nil {
		c.calls.Add(1)
		r.Started = time.Now()
		r.Err = c.send(ctx, q, r)
		r.Total = time.Since(r.Started)
		done()
	}
	r.Kind = Classify(r.Err, r.Received)
	c.keep(&call, q, r)
	return r
}

// send carries the call over the right connection. A kept-alive one may be closed at rest: where it
// is dead before any byte came, the call is repeated once, on a fresh one, unless that may meet its own effect.
func (c *Client) send(ctx context.Context, q *request, r *Reply) error {
	deadline, ours := r.Started.Add(cmp.Or(q.call.Timeout, DefaultTimeout)), true
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline, ours = d, false
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	if ctx.Err() != nil {
		return &Error{Kind: KindCanceled, Op: "send call", Err: ctx.Err()}
	}
	conn, err := c.connect(ctx, q, r)
	if err == nil {
		err = c.exchange(ctx, q, r, conn, deadline)
	}
	if kind := Classify(err, 0); r.Reused && r.Received == 0 && (kind == KindClosed || kind == KindReset) && q.call.Conn == nil && !q.call.Once {
		*r = Reply{Request: r.Request, Timing: Timing{Started: r.Started}, budget: r.budget, Carrier: Carrier{Retried: true}}
		if conn, err = c.dialTimed(ctx, q, r); err == nil {
			err = c.exchange(ctx, q, r, conn, deadline)
		}
	}
	// The end of the whole run is not the endpoint's fault.
	if err != nil && !ours && Classify(err, r.Received) == KindTimeout {
		return &Error{Kind: KindCanceled, Op: "send call", Err: fmt.Errorf("the deadline of the caller passed: %w", err)}
	}
	return err
}

// connect gives the connection for the call.
func (c *Client) connect(ctx context.Context, q *request, r *Reply) (*Conn, error) {
	if q.call.Conn != nil {
		return q.call.Conn, nil
	}
	if !q.call.FreshConn {
		if conn := c.take(poolKey(q.target)); conn != nil {
			return conn, nil
		}
	}
	return c.dialTimed(ctx, q, r)
}

func (c *Client) dialTimed(ctx context.Context, q *request, r *Reply) (*Conn, error) {
	started := time.Now()
	conn, err := c.dial(ctx, q.target, c.opts.TLS)
	r.Dial = time.Since(started)
	return conn, err
}

// exchange writes the request while it reads the response, since an endpoint may answer early.
func (c *Client) exchange(ctx context.Context, q *request, r *Reply, conn *Conn, deadline time.Time) error {
	if conn.explicit { // one of the pool is free for the next call as soon as it is put back
		if !conn.busy.TryLock() {
			return &Error{Kind: KindInvalid, Op: "use connection: another call is on it"}
		}
		defer conn.busy.Unlock()
	}
	r.Reused = conn.uses > 0
	if err := conn.wake(); err != nil {
		conn.kill(err)
		return &Error{Kind: Classify(err, 0), Op: "use connection", Err: err}
	}
	conn.uses++
	conn.rd.begin(q.call.CutResponseAfter)
	goAhead := make(chan struct{}, 1)
	written := make(chan error, 1)
	var writeErr error
	err := conn.within(ctx, deadline, func() error {
		go func() { written <- conn.write(q, goAhead, deadline) }()
		err := c.readResponse(conn.br, q, r, goAhead, conn.rd.body)
		close(goAhead)
		if err == nil {
			err = surplus(conn.br.Buffered())
		}
		var aboutToEnd time.Duration
		if err == nil {
			aboutToEnd = 50 * time.Millisecond
		}
		select {
		case writeErr = <-written:
		case <-time.After(aboutToEnd): // the response is here or never will be: the rest is not needed
			unwritten := errors.New("the request was not written to its end")
			conn.kill(cmp.Or(err, unwritten))
			writeErr = errors.Join(unwritten, <-written)
		}
		if errors.Is(writeErr, errCut) {
			return errCut // as the call requested: other errors follow from it
		}
		return err
	})
	r.Received, r.MaxGap = conn.rd.received, conn.rd.gap
	c.finish(q, r, conn, err, writeErr)
	if err != nil {
		return err
	}
	return c.decodeBody(q, r, deadline)
}

// finish closes the connection or lets it rest for the next call.
func (c *Client) finish(q *request, r *Reply, conn *Conn, err, writeErr error) {
	r.CloseAnnounced = r.Status > 0 && closeAnnounced(r)
	r.ConnClosed = r.CloseAnnounced || err != nil || writeErr != nil || r.Framing == FramingClose
	switch {
	case r.ConnClosed:
		conn.kill(cmp.Or(err, io.EOF))
	case conn.explicit:
		conn.rest()
	case q.call.FreshConn:
		conn.Close()
	default:
		for _, value := range r.Header["Keep-Alive"] {
			var seconds int
			if n, _ := fmt.Sscanf(value, "timeout=%d", &seconds); n == 1 && seconds > 0 {
				conn.idleFor = min(maxIdle, time.Duration(seconds)*time.Second/2)
			}
		}
		c.put(conn)
	}
}

// readResponse reads interim responses, the head and the body, before which it calls atBody.
func (c *Client) readResponse(br *bufio.Reader, q *request, r *Reply, goAhead chan<- struct{}, atBody func()) error {
	h := &headReader{br: br, left: maxHead}
	var length int64
	if err := attempt(func() {
		readFinalHead(h, r, goAhead)
		r.Framing, length = framing(r, q.method)
	}); err != nil {
		if r.Header == nil { // the head is wrong or has no end
			r.RawHeaders = slices.Clone(r.RawHeaders[:min(len(r.RawHeaders), shownLines)])
		}
		return reading("read response head", err)
	}
	atBody()
	g := &grower{max: c.opts.MaxBody, budget: &c.budget}
	err := attempt(func() {
		h.readBody(g, r.Framing, length)
		fail(g.ended())
	})
	if kind := Classify(err, 1); kind == KindTooLarge || kind == KindUnread {
		r.Raw = g.clip()
	} else {
		r.Raw = g.take()
	}
	r.Body = r.Raw
	return reading("read response body", err)
}

// reading adds in which part of a response the connection failed.
func reading(part string, err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return fmt.Errorf("%s: %w", part, err)
}

// readFinalHead reads past the 1xx responses (RFC 9110 15.2).
func readFinalHead(h *headReader, r *Reply, goAhead chan<- struct{}) {
	for h.head(r); r.Status < 200; h.head(r) {
		if r.Status == 101 {
			fail(malformed("status 101 without being asked to switch protocols"))
		}
		if r.Interim = append(r.Interim, r.Status); len(r.Interim) > maxInterim {
			fail(malformed("more than %d interim responses", maxInterim))
		}
		if r.Status == 100 {
			select {
			case goAhead <- struct{}{}:
			default:
			}
		}
		r.Status, r.Proto, r.Header, r.RawHeaders = 0, "", nil, nil
	}
}

// surplus reports bytes after the end of a response: its length was wrong.
func surplus(n int) error {
	if n == 0 {
		return nil
	}
	return malformed("%s %s after the end of the response", quantity.Count(n, "byte"), quantity.Verb(n, "comes", "come"))
}
