package destination

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/destkit/destkit/server/internal/descriptors"
)

// idleTime is how long a network connection without calls is kept.
const idleTime = 90 * time.Second

// pool gives the network connections to one destination, and whether others share
// them: id 0 gets its own. Closing them ends idle ones; calls under way end by
// themselves.
func (g *Gate) pool(id int64) (p *http.Transport, shared bool) {
	if id == 0 {
		return g.newPool(), false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pools[id] == nil {
		g.pools[id] = g.newPool()
	}
	return g.pools[id], true
}

// newPool makes a transport that takes no proxy from the environment and
// speaks HTTP/1.1, which is what the protocol is documented over.
func (g *Gate) newPool() *http.Transport {
	return &http.Transport{
		DialContext: g.DialContext,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return g.dialTLS(ctx, address)
		},
		DisableCompression:     true, // the client offers and decodes by itself
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    64, // more than the 50 parallel batches of a sync
		IdleConnTimeout:        g.idle,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// lookupError is a name without an address.
type lookupError struct {
	host string
	err  error
}

func (e *lookupError) Error() string { return "look up " + e.host + ": " + e.err.Error() }
func (e *lookupError) Unwrap() error { return e.err }

// lookup gives the addresses of a host. Addresses map to themselves, and
// localhost is this machine regardless of a resolver, so that plain http never
// leaves it (RFC 6761 section 6.3).
func (g *Gate) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if isLocalName(host) {
		return localAddresses(), nil
	}
	resolve := g.options.Resolve
	if resolve == nil {
		resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	list, err := resolve(ctx, host)
	if err == nil && len(list) == 0 {
		err = errors.New("no address")
	}
	if err != nil {
		return nil, &lookupError{host, err}
	}
	return list, nil
}

// DialContext connects to the first address that answers, within ConnectTimeout, as
// calls of destinations do.
func (g *Gate) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.options.ConnectTimeout)
	defer cancel()
	return g.connect(ctx, address)
}

// connect tries the addresses in the order of the resolver. The first error is
// the one to show: later addresses are fallbacks.
func (g *Gate) connect(ctx context.Context, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("split address: %w", err)
	}
	list, err := g.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	release, err := g.spare(ctx)
	if err != nil {
		return nil, err
	}
	var first error
	for i, addr := range list {
		conn, err := g.connectOne(ctx, host, net.JoinHostPort(addr.Unmap().String(), port), len(list)-i)
		if err == nil {
			return &wire{Conn: conn, release: release, sending: g.options.Sending}, nil
		}
		if first == nil {
			first = err
		}
	}
	release()
	return nil, first
}

// spare takes a descriptor for a connection, and waits for one within the time to
// connect.
func (g *Gate) spare(ctx context.Context) (release func(), err error) {
	b := g.options.Connections
	if b == nil {
		return func() {}, nil
	}
	if release, err = b.Take(ctx, 1, nil); errors.Is(err, context.DeadlineExceeded) {
		err = &descriptors.ExhaustedError{What: "connections to destinations", Wanted: 1, Most: b.Figures().Most, Waited: g.options.ConnectTimeout}
	}
	return release, err
}

// closeIdle closes the connections without calls, for those who wait for one.
func (g *Gate) closeIdle() {
	g.mu.Lock()
	pools := slices.Collect(maps.Values(g.pools))
	g.mu.Unlock()
	for _, p := range pools {
		p.CloseIdleConnections()
	}
}

// connectOne leaves time for the addresses that are still to be tried. Whether the
// service may go there at all is looked at for the address that is dialled: the
// resolver may have another answer each time.
func (g *Gate) connectOne(ctx context.Context, host, address string, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return g.options.Network.Dial(ctx, &net.Dialer{}, host, "tcp", address)
}

// unreachable returns why a host must not be called, where that is known
// without a resolver; "" otherwise.
func (g *Gate) unreachable(u *url.URL) string {
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	addr, err := netip.ParseAddr(host)
	list := []netip.Addr{addr}
	if err != nil {
		if !isLocalName(host) {
			return ""
		}
		list = localAddresses()
	}
	// One that may be called is enough: the others are passed over.
	for _, addr := range list {
		if err = g.options.Network.Check(host, "tcp", net.JoinHostPort(addr.Unmap().String(), port)); err == nil {
			return ""
		}
	}
	return "names a host that must not be called: " + err.Error()
}

// localAddresses are those of the name localhost.
func localAddresses() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// dialTLS connects and shakes hands against the roots of this moment
// (spec 5.2.1). Loopback gets no mercy.
func (g *Gate) dialTLS(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, g.options.ConnectTimeout)
	defer cancel()
	raw, err := g.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	host, _, _ := net.SplitHostPort(address)
	config := &tls.Config{
		RootCAs: g.roots.Load(), ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
	}
	if g.options.TLS != nil {
		g.options.TLS(config)
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, &handshakeError{err}
	}
	return conn, nil
}

// handshakeError is what went wrong after the connection stood.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "tls handshake: " + e.err.Error() }
func (e *handshakeError) Unwrap() error { return e.err }
