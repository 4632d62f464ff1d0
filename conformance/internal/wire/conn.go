package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/destkit/destkit/internal/quantity"
)

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// Conn is one connection to the endpoint. It carries one call at a time.
type Conn struct {
	key  string
	raw  net.Conn // beneath TLS
	nc   net.Conn // what is spoken on
	rd   *meter
	br   *bufio.Reader
	uses int

	busy      sync.Mutex
	explicit  bool
	done      func() // ends the turn of an explicit one
	idleSince time.Time
	idleFor   time.Duration
	watch     chan error // non-nil at rest

	once sync.Once
	mu   sync.Mutex
	dead error
}

// dial opens a connection to t, handshake included, within ctx.
func (c *Client) dial(ctx context.Context, t target) (*Conn, error) {
	raw, err := c.opts.Dial(ctx, "tcp", t.addr)
	if err != nil {
		return nil, dialError(err)
	}
	conn := &Conn{key: poolKey(t), raw: raw, nc: raw, idleFor: maxIdle}
	if t.tls {
		tc, err := handshake(ctx, raw, c.opts.TLS, t.name, false)
		if err != nil {
			raw.Close()
			return nil, err
		}
		conn.nc = tc
	}
	conn.rd = &meter{conn: conn.nc}
	conn.br = bufio.NewReaderSize(conn.rd, 16<<10)
	return conn, nil
}

func poolKey(t target) string { return fmt.Sprint(t.tls, " ", t.addr, " ", t.name) }

// Close closes the connection at once. It may be called more than once.
func (c *Conn) Close() { c.kill(net.ErrClosed) }

// kill closes beneath TLS: a farewell could block on a peer that does not read.
func (c *Conn) kill(why error) {
	c.once.Do(func() {
		c.mu.Lock()
		c.dead = why
		c.mu.Unlock()
		c.raw.Close()
		if c.done != nil {
			c.done()
		}
	})
}

// Err tells why the connection can carry no further call, or nil.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// TLS gives the state of the handshake, or nil on plain HTTP.
func (c *Conn) TLS() *tls.ConnectionState {
	tc, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	state := tc.ConnectionState()
	return &state
}

// rest watches the connection while no call is on it, so that a close or a
// stray byte is seen before the next request is written.
func (c *Conn) rest() {
	c.idleSince = time.Now()
	c.rd.begin(0)
	c.nc.SetDeadline(time.Time{})
	watch := make(chan error, 1)
	c.watch = watch
	go func() {
		_, err := c.br.Peek(1)
		watch <- err
	}()
}

// wake ends the watch. It gives an error when the connection is not usable.
func (c *Conn) wake() error {
	if c.watch == nil {
		return c.Err()
	}
	c.nc.SetReadDeadline(longAgo)
	err := <-c.watch
	c.watch = nil
	if dead := c.Err(); dead != nil {
		return dead
	}
	switch {
	case err == nil:
		n := c.br.Buffered()
		return &Error{Kind: KindMalformed, Op: "reuse connection", Err: fmt.Errorf("%s came after the end of the previous response", quantity.Count(n, "byte"))}
	case isTimeout(err):
		return nil
	}
	return &Error{Kind: Classify(err, 0), Op: "reuse connection", Err: fmt.Errorf("the endpoint closed it at rest: %w", err)}
}

// meter counts what is read from a connection for one call at a time.
type meter struct {
	conn     net.Conn
	received int64
	cut      int64 // end after that many bytes, 0: never
	first    time.Time
	last     time.Time // of the previous byte of the body, zero before the body
	gap      time.Duration
}

func (m *meter) begin(cut int) { *m = meter{conn: m.conn, cut: int64(cut)} }

// body starts the measurement of pauses.
func (m *meter) body() { m.last = time.Now() }

// Read reads from the connection and notes when bytes came.
func (m *meter) Read(p []byte) (int, error) {
	if m.cut > 0 {
		if m.received >= m.cut {
			return 0, errCut
		}
		p = p[:min(int64(len(p)), m.cut-m.received)]
	}
	n, err := m.conn.Read(p)
	now := time.Now()
	if n > 0 && m.received == 0 {
		m.first = now
	}
	m.received += int64(n)
	if !m.last.IsZero() {
		m.gap = max(m.gap, now.Sub(m.last))
		m.last = now
	}
	return n, err
}

// within runs the exchange on a connection that ends at the deadline, and at
// once when ctx ends.
func (c *Conn) within(ctx context.Context, deadline time.Time, do func() error) error {
	c.nc.SetDeadline(deadline)
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.nc.SetDeadline(longAgo)
		close(fired)
	})
	err := do()
	if !stop() {
		<-fired // or it would cut the deadline of the next call on this connection
	}
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return &Error{Kind: KindCanceled, Op: "send call", Err: context.Canceled}
	}
	return err
}
