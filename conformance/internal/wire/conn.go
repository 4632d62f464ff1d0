package wire

import (
	"bufio"
	"cmp"
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
	nc   net.Conn // the connection, plain or TLS
	rd   *meter
	br   *bufio.Reader
	uses int

	busy      sync.Mutex
	explicit  bool
	done      func() // ends the turn of an explicit one
	idleSince time.Time
	idleFor   time.Duration
	watch     chan error // non-nil at rest

	mu   sync.Mutex
	dead error // why it can carry no further call
}

// dial opens a connection to t, handshake included, within ctx.
func (c *Client) dial(ctx context.Context, t target, cfg *tls.Config) (*Conn, error) {
	raw, err := c.opts.Dial(ctx, "tcp", t.addr)
	if err != nil {
		return nil, unconnected(err, "dial", KindRefused)
	}
	conn := &Conn{key: poolKey(t), raw: raw, nc: raw, idleFor: maxIdle}
	if t.tls {
		cfg = cfg.Clone()
		cfg.ServerName = cmp.Or(cfg.ServerName, t.name)
		cfg.NextProtos = []string{"http/1.1"}
		tc := tls.Client(raw, cfg)
		if err := tc.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, unconnected(err, "tls handshake", KindTLS)
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

// kill closes beneath TLS, whose closing message could block on a peer that does not read.
func (c *Conn) kill(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead != nil {
		return
	}
	c.dead = why
	c.raw.Close()
	if c.done != nil {
		c.done()
	}
}

func (c *Conn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// rest watches a connection for a close or a stray byte before the next request is written.
func (c *Conn) rest() {
	c.idleSince = time.Now()
	c.rd.begin(0)
	c.nc.SetDeadline(time.Time{})
	c.watch = make(chan error, 1)
	go func(watch chan error) {
		_, err := c.br.Peek(1)
		watch <- err
	}(c.watch)
}

// wake ends the watch. It gives an error when the connection is not usable.
func (c *Conn) wake() error {
	if c.watch == nil {
		return c.err()
	}
	c.nc.SetReadDeadline(longAgo)
	err := <-c.watch
	c.watch = nil
	switch dead := c.err(); {
	case dead != nil:
		return dead
	case err == nil:
		came := quantity.Count(c.br.Buffered(), "byte")
		return &Error{Kind: KindMalformed, Op: "reuse connection", Err: fmt.Errorf("%s came after the end of the previous response", came)}
	case isTimeout(err):
		return nil
	}
	return &Error{Kind: Classify(err, 0), Op: "reuse connection", Err: fmt.Errorf("the endpoint closed it at rest: %w", err)}
}

// meter counts the bytes read from a connection for one call at a time.
type meter struct {
	conn     net.Conn
	received int64
	cut      int64     // end after that many bytes, 0: never
	last     time.Time // of the previous byte of the body, zero before the body
	gap      time.Duration
}

func (m *meter) begin(cut int) { *m = meter{conn: m.conn, cut: int64(cut)} }

// body starts the measurement of pauses.
func (m *meter) body() { m.last = time.Now() }

// Read notes how many bytes came, and when.
func (m *meter) Read(p []byte) (int, error) {
	if m.cut > 0 {
		if m.received >= m.cut {
			return 0, errCut
		}
		p = p[:min(int64(len(p)), m.cut-m.received)]
	}
	n, err := m.conn.Read(p)
	m.received += int64(n)
	if !m.last.IsZero() {
		now := time.Now()
		m.gap = max(m.gap, now.Sub(m.last))
		m.last = now
	}
	return n, err
}

// within runs an exchange that ends at the deadline, and at once when ctx ends.
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
