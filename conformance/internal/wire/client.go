// Package wire owns the judge's line to an endpoint: a raw HTTP/1.1 client that writes every
// request byte by hand and parses every reply strictly, the record and redactor of what
// passed, and a JSON tree that keeps the text of every value. It knows no rule of the
// protocol and never repairs a reply: wrong framing is reported, not guessed around.
//
// Everything that a peer controls is bounded: the head of a reply, its body as received and
// as decoded, the memory of all living replies together, the time of a call.
package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// DefaultMaxBody bounds a reply's body, as received and as decoded, in bytes.
// With it the whole judge stays below 256 MiB, whatever the endpoint sends.
const DefaultMaxBody = 32 << 20

const (
	maxIdle      = 1500 * time.Millisecond // endpoints close idle connections after two seconds and more
	maxIdleConns = 64
)

// Options of a Client. Only URL is needed.
type Options struct {
	// URL of the endpoint; path and query are kept verbatim.
	URL string
	// Token of the connection, sent as bearer (spec 5.2.2); "" sends none.
	Token string
	// Headers are further headers of the connection; their values are treated as secrets.
	Headers map[string]string
	// Dial opens connections; nil dials the network without any proxy.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS holds the roots and versions; nil is the system's roots.
	TLS *tls.Config
	// Spare gives up replies that are kept for speed alone; nil: none are.
	Spare func()
	// MaxBody bounds a body in bytes, DefaultMaxBody when zero.
	MaxBody int64
	// Redactor works on all records; nil makes one. New adds the secrets of these options.
	Redactor *Redactor
	// UserAgent is "destkit" when empty.
	UserAgent string
	// Limiter is called before each send with the number of records carried; nil: nothing is.
	// Its error ends the call as KindCanceled.
	Limiter func(ctx context.Context, records int) error
}

// Client sends calls to one endpoint. It is safe for parallel use.
type Client struct {
	opts   Options
	target target
	redact *Redactor
	budget budget

	calls   atomic.Int64
	mu      sync.Mutex
	idle    map[string][]*Conn
	closed  bool
	one     *semaphore.Weighted // whose turn it is to have a connection; nil: everyone's
	numbers atomic.Int64        // of exchanges
}

// New checks the options and gives a client. Its errors hold no secret.
func New(opts Options) (*Client, error) {
	t, err := parseTarget(opts.URL)
	if err != nil {
		return nil, err
	}
	opts.MaxBody = cmp.Or(opts.MaxBody, DefaultMaxBody)
	opts.UserAgent = cmp.Or(opts.UserAgent, "destkit")
	opts.Redactor = cmp.Or(opts.Redactor, NewRedactor())
	opts.TLS = cmp.Or(opts.TLS, &tls.Config{})
	if opts.Dial == nil {
		opts.Dial = new(net.Dialer).DialContext
	}
	c := &Client{opts: opts, target: t, redact: opts.Redactor, idle: map[string][]*Conn{}}
	c.budget.max, c.budget.spare = memoryBudget, opts.Spare
	c.seedRedactor()
	if _, err := c.prepare(&Call{}); err != nil {
		return nil, err
	}
	return c, nil
}

// Calls gives the number of calls that were sent so far.
func (c *Client) Calls() int { return int(c.calls.Load()) }

// Close closes the connections at rest, and keeps those of later calls no more.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.CloseIdle()
}

// OneAtATime is for an endpoint that serves no second connection while another is open: each
// later call waits until none is, and none is kept. No call may be on its way.
func (c *Client) OneAtATime() {
	c.mu.Lock()
	c.one = semaphore.NewWeighted(1)
	c.mu.Unlock()
	c.Close()
}

// Turn waits until this side may open a connection, at once unless OneAtATime was
// called. The caller calls done when it has closed the connection.
func (c *Client) Turn(ctx context.Context) (done func(), err error) {
	c.mu.Lock()
	one := c.one
	c.mu.Unlock()
	if one == nil {
		return func() {}, nil
	}
	if err := one.Acquire(ctx, 1); err != nil {
		return nil, &Error{Kind: KindCanceled, Op: "wait for the end of another connection", Err: err}
	}
	return func() { one.Release(1) }, nil
}

// CloseIdle closes the connections at rest.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	idle := c.idle
	c.idle = map[string][]*Conn{}
	c.mu.Unlock()
	for _, conns := range idle {
		for _, conn := range conns {
			conn.Close()
		}
	}
}

// Open dials a connection for calls that must share one; the caller closes it.
func (c *Client) Open(ctx context.Context) (*Conn, error) {
	done, err := c.Turn(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	conn, err := c.dial(ctx, c.target, c.opts.TLS)
	if err != nil {
		done()
		return nil, fmt.Errorf("open connection: %w", err)
	}
	conn.explicit, conn.done = true, done
	conn.rest()
	return conn, nil
}

// Handshake performs one TLS handshake and closes. A cfg without a name uses the URL's.
func (c *Client) Handshake(ctx context.Context, cfg *tls.Config) (tls.ConnectionState, error) {
	done, err := c.Turn(ctx)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	t := c.target
	t.tls = true
	conn, err := c.dial(ctx, t, cfg)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer conn.Close()
	return conn.nc.(*tls.Conn).ConnectionState(), nil
}

// unconnected is why no connection came about; kind: where it is neither a name nor a deadline.
func unconnected(err error, op string, kind Kind) error {
	if is := Classify(err, 0); is == KindTimeout || is == KindCanceled || is == KindDNS {
		kind = is
	}
	return &Error{Kind: kind, Op: op, Err: err}
}

// take gives a live connection from the pool, or nil.
func (c *Client) take(key string) *Conn {
	for {
		c.mu.Lock()
		conns := c.idle[key]
		if len(conns) == 0 {
			c.mu.Unlock()
			return nil
		}
		conn := conns[len(conns)-1]
		c.idle[key] = conns[:len(conns)-1]
		c.mu.Unlock()
		if time.Since(conn.idleSince) < conn.idleFor && conn.wake() == nil {
			return conn
		}
		conn.Close()
	}
}

// put lets a connection rest in the pool.
func (c *Client) put(conn *Conn) {
	conn.rest()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.idle[conn.key]) >= maxIdleConns {
		conn.Close()
		return
	}
	c.idle[conn.key] = append(c.idle[conn.key], conn)
}
