package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/internal/callers"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/reach"
	"github.com/destkit/destkit/internal/unreached"
)

// DefaultMaxBody is how many bytes of a request body, and of a response, are kept to
// be judged and recorded. Longer ones are passed on and not judged.
const DefaultMaxBody = 8 << 20

// Bounds of the kept exchanges: an exchange beyond them is passed on and counted
// as not judged.
const (
	mostHeld   = 64 << 20 // bytes of all exchanges that are not judged yet
	mostQueued = 4096     // exchanges that wait to be judged
)

// mostConnections of callers are carried at once. A further one takes the place of the one that
// has been without a request the longest, and waits where all have one.
const mostConnections = 2048

// Config of a Proxy. Only To is needed.
type Config struct {
	// To is the URL of the endpoint, http or https. A call of "/" goes to its path
	// and query; any other path is passed on as it is.
	To string
	// TLS is for https; nil are the public roots.
	TLS *tls.Config
	// Verify looks at the certificates of the endpoint after a handshake, before a
	// byte is sent; an error ends the connection. It may be nil.
	Verify func(tls.ConnectionState) error
	// Dial opens connections; nil dials the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// MaxBody is DefaultMaxBody when 0.
	MaxBody int
	// Observer gets every exchange, one at a time, in a separate goroutine. It may
	// be nil: then nothing is kept.
	Observer Observer
	// Secrets must not be in any message of the proxy; nil: nothing.
	Secrets *foreign.Redactor
}

// Observer gets what went by.
type Observer interface {
	Observe(*Seen)
}

// Proxy passes connections on. Its methods are safe for parallel use.
type Proxy struct {
	cfg  Config
	to   *url.URL
	addr string
	host string // the Host header
	path string // for "/", with its query

	ctx     context.Context
	cancel  context.CancelFunc
	conns   sync.WaitGroup
	mu      sync.Mutex
	live    map[net.Conn]struct{}
	own     []netip.AddrPort // where the proxy listens
	queue   chan *exchange
	drained chan struct{}

	numbers   atomic.Int64
	held      atomic.Int64
	passed    atomic.Int64
	notJudged atomic.Int64
	local     atomic.Int64
	surplus   atomic.Int64
}

// Counts of a proxy so far.
type Counts struct {
	// Passed exchanges, those of them that were not judged because the judge did not
	// keep up or a body was too long, and answers that the proxy gave by itself.
	Passed    int64 `json:"passed"`
	NotJudged int64 `json:"not_judged"`
	Local     int64 `json:"local"`
}

// Counts gives the counts so far.
func (p *Proxy) Counts() Counts {
	return Counts{p.passed.Load(), p.notJudged.Load(), p.local.Load()}
}

// New prepares a proxy. Its errors hold no part of the URL, which may be secret.
func New(cfg Config) (*Proxy, error) {
	u, err := url.Parse(cfg.To)
	if err != nil {
		return nil, errors.New("the URL of the endpoint does not parse: check the escapes, the port and the brackets")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errors.New("the URL of the endpoint must be http://HOST/… or https://HOST/…")
	}
	if u.User != nil {
		return nil, errors.New("the URL of the endpoint has a user name: the caller sends its credentials by itself, and the proxy passes them on")
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	p := &Proxy{
		cfg: cfg, to: u, host: u.Host, addr: net.JoinHostPort(u.Hostname(), portOf(u)), path: verbatimTarget(cfg.To),
		live: map[net.Conn]struct{}{}, queue: make(chan *exchange, mostQueued), drained: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.observe()
	return p, nil
}

// verbatimTarget is everything behind the host of a URL, as it was given.
func verbatimTarget(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	rest, _, _ = strings.Cut(rest, "#")
	at := strings.IndexAny(rest, "/?")
	switch {
	case at < 0:
		return "/"
	case rest[at] == '?':
		return "/" + rest[at:]
	}
	return rest[at:]
}

// target is the requested path at the endpoint.
func (p *Proxy) target(asked string) string {
	if asked == "/" {
		return p.path
	}
	return asked
}

// shownURL is the address of a request before redaction.
func (p *Proxy) shownURL(asked string) string {
	return p.to.Scheme + "://" + p.to.Host + p.target(asked)
}

// CallerPath is the path and query under which a caller reaches the endpoint.
func (p *Proxy) CallerPath() string { return p.path }

// Bound bounds the connections of a listener. Serve does that too; with TLS, it has to be
// done beneath.
func Bound(ln net.Listener) net.Listener { return callers.Listen(ln, mostConnections) }

// Serve carries the connections of a listener until ctx ends or the listener is
// closed; it closes the listener, and returns when all connections have ended.
func (p *Proxy) Serve(ctx context.Context, ln net.Listener) error {
	ln = Bound(ln)
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	defer ln.Close()
	if at, err := netip.ParseAddrPort(ln.Addr().String()); err == nil {
		p.mu.Lock()
		p.own = append(p.own, at)
		p.mu.Unlock()
	}
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			return fmt.Errorf("accept a connection: %w", err)
		}
		p.mu.Lock()
		p.live[conn] = struct{}{}
		p.mu.Unlock()
		p.conns.Go(func() {
			defer func() {
				p.mu.Lock()
				delete(p.live, conn)
				p.mu.Unlock()
			}()
			p.serve(conn)
		})
	}
}

// Shutdown waits until the exchanges under way have ended, at most for grace, and then
// closes.
func (p *Proxy) Shutdown(grace time.Duration) {
	for deadline := time.Now().Add(grace); p.numbers.Load() > p.passed.Load() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	p.Close()
}

// Close ends all connections and returns when everything that went by was judged.
func (p *Proxy) Close() {
	p.cancel()
	p.mu.Lock()
	for conn := range p.live {
		conn.Close()
	}
	p.mu.Unlock()
	p.conns.Wait()
	close(p.queue)
	<-p.drained
}

// why is the cause of an error of the endpoint's connection, with what to do, for the
// caller and without secrets.
func (p *Proxy) why(err error) string {
	if cause := unreached.Of(err, "endpoint", p.to.Host); cause.What != "" {
		return p.cfg.Secrets.String(cause.What + ": " + cause.Fix)
	}
	return p.cfg.Secrets.String(err.Error())
}

// errOwn ends a call before it goes round without end. Requests that are passed on have
// no mark of the proxy: their bytes stay those of the caller.
var errOwn = errors.New("its URL leads to this proxy itself: name the address of the endpoint with --to")

// CallsItself reports whether a proxy that listens at addr (HOST:PORT) and passes calls on
// to the URL to would call itself, as far as that is certain before a connection.
func CallsItself(to, addr string) bool {
	u, err := url.Parse(to)
	if err != nil {
		return false
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddrPort(net.JoinHostPort(cmp.Or(numeric(host), "::"), port))
	if err != nil || at.Port() == 0 {
		return false
	}
	own := []netip.AddrPort{at}
	return listensAt(own, net.JoinHostPort(numeric(u.Hostname()), portOf(u))) ||
		u.Hostname() == "localhost" && listensAt(own, net.JoinHostPort("::1", portOf(u)))
}

// listensAt is reach.ListensAt for an address of a connection.
func listensAt(own []netip.AddrPort, address string) bool {
	to, err := netip.ParseAddrPort(address)
	return err == nil && reach.ListensAt(own, to)
}

// numeric is the IP that a name of this machine means.
func numeric(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// portOf is the port of a URL of http or https.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// connect opens a connection to the endpoint.
func (p *Proxy) connect(ctx context.Context) (net.Conn, error) {
	raw, err := p.cfg.Dial(ctx, "tcp", p.addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	p.mu.Lock()
	own := listensAt(p.own, raw.RemoteAddr().String()) // whatever name leads there
	p.mu.Unlock()
	if own {
		raw.Close()
		return nil, errOwn
	}
	if p.to.Scheme != "https" {
		return raw, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS10} // TLS-006 judges the version in use
	if p.cfg.TLS != nil {
		cfg = p.cfg.TLS.Clone()
	}
	cfg.ServerName = cmp.Or(cfg.ServerName, p.to.Hostname())
	cfg.NextProtos = []string{"http/1.1"}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	if p.cfg.Verify != nil {
		if err := p.cfg.Verify(conn.ConnectionState()); err != nil {
			conn.Close()
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
	}
	return conn, nil
}
