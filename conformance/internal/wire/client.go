package wire

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
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

// Connections that rest longer than maxIdle are not used again: endpoints
// close idle connections after two seconds and more.
const (
	maxIdle      = 1500 * time.Millisecond
	maxIdleConns = 64
)

// Options of a Client. Only URL is needed.
type Options struct {
	// URL of the endpoint; path and query are kept verbatim.
	URL string
	// Token of the connection, sent as bearer (spec 5.2.2); "" sends none.
	Token string
	// Headers are further headers of the connection; their values are treated
	// as secrets.
	Headers map[string]string
	// Dial opens connections; nil dials the network without any proxy.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// TLS holds the roots and versions; nil is the system's roots.
	TLS *tls.Config
	// Spare gives up replies that are kept for speed alone, when there is no memory for
	// another one; nil: none are.
	Spare func()
	// MaxBody bounds a body in bytes, DefaultMaxBody when zero.
	MaxBody int64
	// Redactor works on everything recorded; nil makes a new one. New adds the
	// secrets of these options to it.
	Redactor *Redactor
	// UserAgent is "destkit" when empty.
	UserAgent string
	// Limiter is called before each send with the number of records carried; an
	// error of it ends the call as KindCanceled. It may be nil.
	Limiter func(ctx context.Context, records int) error
}

// Client sends calls to one endpoint. It is safe for parallel use.
type Client struct {
	opts    Options
	target  target
	redact  *Redactor
	hideURL bool
	budget  budget

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
	if opts.MaxBody <= 0 {
		opts.MaxBody = DefaultMaxBody
	}
	opts.UserAgent = cmp.Or(opts.UserAgent, "destkit")
	opts.Redactor = cmp.Or(opts.Redactor, NewRedactor())
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

// Redactor gives the redactor, so that further secrets can be added.
func (c *Client) Redactor() *Redactor { return c.redact }

// Calls gives the number of calls that were sent so far.
func (c *Client) Calls() int { return int(c.calls.Load()) }

// Close closes the connections at rest. Calls on their way end by themselves;
// later calls are still served, on connections that are not kept.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.CloseIdle()
}

// OneAtATime is for an endpoint that serves no second connection while another is
// open: from now on each call waits until no connection is open, and none is kept.
// No call may be on its way.
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

// Open dials a connection to the configured URL for calls that must share one.
// The caller closes it.
func (c *Client) Open(ctx context.Context) (*Conn, error) {
	done, err := c.Turn(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	conn, err := c.dial(ctx, c.target)
	if err != nil {
		done()
		return nil, fmt.Errorf("open connection: %w", err)
	}
	conn.explicit, conn.done = true, done
	conn.rest()
	return conn, nil
}

// Handshake performs one TLS handshake with cfg (nil: the options') against
// address (host:port, "": the URL's) asking for serverName ("": the URL's),
// and closes. When the certificates do not verify the state still holds them.
func (c *Client) Handshake(ctx context.Context, cfg *tls.Config, address, serverName string) (tls.ConnectionState, error) {
	done, err := c.Turn(ctx)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, DefaultTimeout)
	defer cancel()
	t := c.target
	if address != "" {
		t.addr = address
	}
	raw, err := c.opts.Dial(ctx, "tcp", t.addr)
	if err != nil {
		return tls.ConnectionState{}, dialError(err)
	}
	defer raw.Close()
	cfg = cmp.Or(cfg, c.opts.TLS)
	if serverName != "" {
		t.name = serverName
	}
	tc, err := handshake(ctx, raw, cfg, t.name, serverName != "")
	state := tc.ConnectionState()
	var bad *tls.CertificateVerificationError
	if errors.As(err, &bad) {
		state.PeerCertificates = bad.UnverifiedCertificates
	}
	return state, err
}

// handshake never passes the deadline of ctx. A name that was asked for wins
// over the one in cfg.
func handshake(ctx context.Context, raw net.Conn, cfg *tls.Config, name string, wins bool) (*tls.Conn, error) {
	cfg = cmp.Or(cfg, &tls.Config{})
	cfg = cfg.Clone()
	if cfg.ServerName == "" || wins {
		cfg.ServerName = name
	}
	cfg.NextProtos = []string{"http/1.1"}
	tc := tls.Client(raw, cfg)
	err := tc.HandshakeContext(ctx)
	if err == nil {
		return tc, nil
	}
	kind := Classify(err, 0)
	if kind != KindTimeout && kind != KindCanceled {
		kind = KindTLS
	}
	return tc, &Error{Kind: kind, Op: "tls handshake", Err: err}
}

// dialError keeps the kinds of a failed dial apart: anything that is neither a
// name nor a deadline means that no connection came about.
func dialError(err error) error {
	kind := Classify(err, 0)
	switch kind {
	case KindTimeout, KindCanceled, KindDNS:
	default:
		kind = KindRefused
	}
	return &Error{Kind: kind, Op: "dial", Err: err}
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
	full := c.closed || len(c.idle[conn.key]) >= maxIdleConns
	if !full {
		c.idle[conn.key] = append(c.idle[conn.key], conn)
	}
	c.mu.Unlock()
	if full {
		conn.Close()
	}
}
