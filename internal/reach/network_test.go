package reach

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// hosts reads entries that are right.
func hosts(t *testing.T, texts ...string) (list []Host) {
	for _, text := range texts {
		h, err := ParseHost(text)
		require.NoError(t, err, text)
		list = append(list, h)
	}
	return list
}

func TestParseHost(t *testing.T) {
	for _, text := range []string{"", ":", "a:0", "a:65536", "a:x", "-:", "a b", "http://a", "a/b", "10.0.0.0/33", "user@a", "*.", "a..b", "2130706433", "127.1", "[::1", "a,b", "ä.example"} {
		_, err := ParseHost(text)
		require.ErrorContains(t, err, text, "%q", text)
	}
}

func TestAURLIsNoHost(t *testing.T) {
	_, err := ParseHost("http://x/")
	require.EqualError(t, err, `"http://x/" is a URL: give its host alone: x`)
}

// TestHosts: an entry admits by the address that is dialled, a name by the
// requested name.
func TestHosts(t *testing.T) {
	for _, tc := range []struct {
		entry, host, address string
		want                 bool
	}{
		{"10.0.0.0/8", "a.example", "10.2.3.4:443", true},
		{"10.0.0.0/8", "10.0.0.1", "127.0.0.1:443", false}, // the name of a host is no address
		{"10.0.0.0/8", "a.example", "11.0.0.1:443", false},
		{"10.0.0.0/8:443", "a.example", "10.2.3.4:443", true},
		{"10.0.0.0/8:443", "a.example", "10.2.3.4:80", false},
		{"::ffff:10.0.0.0/104", "a.example", "10.2.3.4:443", true},
		{"10.1.1.1", "a.example", "[::ffff:10.1.1.1]:443", true},
		{"fd00::/8", "a.example", "[fd12::1]:443", true},
		{"[fd00::/8]:443", "a.example", "[fd12::1]:80", false},
		{"[::1]:80", "a.example", "[::1]:80", true},
		{"a.example", "A.Example.", "192.0.2.1:443", true},
		{"a.example", "b.a.example", "192.0.2.1:443", false},
		{"*.a.example", "b.a.example", "192.0.2.1:443", true},
		{"*.a.example", "a.example", "192.0.2.1:443", false},
		{"*.a.example", "xa.example", "192.0.2.1:443", false},
		{"a.example:443", "a.example", "192.0.2.1:80", false},
		{"localhost", "127.0.0.1", "127.0.0.1:80", true},
		{"localhost", "a.example", "192.0.2.1:80", false},
		{"*:443", "a.example", "192.0.2.1:443", true},
		{":443", "a.example", "192.0.2.1:80", false},
		{"*", "a.example", "192.0.2.1:80", true},
	} {
		n := &Network{Hosts: hosts(t, tc.entry)}
		require.Equal(t, tc.want, n.Check(tc.host, "tcp", tc.address) == nil, "%+v", tc)
	}
}

// TestDenyLoopback: every way to write this machine, and no other.
func TestDenyLoopback(t *testing.T) {
	n := &Network{DenyLoopback: true, Hosts: hosts(t, "*")}
	for _, address := range []string{"127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "[::]:80", "[::ffff:0.0.0.0]:80"} {
		require.ErrorContains(t, n.Check("a.example", "tcp", address), "--deny-loopback", address)
		require.NoError(t, (&Network{}).Check("a.example", "tcp", address), address)
	}
	require.ErrorContains(t, n.Check("/run/s", "unix", "/run/s/.s.PGSQL.5432"), "--deny-loopback")
	for _, address := range []string{"192.0.2.1:80", "[2001:db8::1]:80", "[::ffff:192.0.2.1]:80"} {
		require.NoError(t, n.Check("a.example", "tcp", address))
	}
}

// TestSocketsNeedAnEntry: a socket in the file system is no host.
func TestSocketsNeedAnEntry(t *testing.T) {
	require.ErrorContains(t, (&Network{Hosts: hosts(t, "10.0.0.0/8")}).Check("/run/s", "unix", "/run/s/x"), "--allow-hosts")
	require.NoError(t, (&Network{}).Check("/run/s", "unix", "/run/s/x"))
}

// TestOwnListener: the service does not call itself, by whatever address.
func TestOwnListener(t *testing.T) {
	own := func(at string) *Network { return &Network{Own: []netip.AddrPort{netip.MustParseAddrPort(at)}} }
	mine := func() string {
		all, err := net.InterfaceAddrs()
		require.NoError(t, err)
		for _, a := range all {
			if p := netip.MustParsePrefix(a.String()); !p.Addr().IsLoopback() && p.Addr().Is4() {
				return netip.AddrPortFrom(p.Addr(), 8080).String()
			}
		}
		return "127.0.0.2:8080" // a machine without a network
	}()
	for _, tc := range []struct {
		listens, address string
		refused          bool
	}{
		{"127.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", true},
		{"127.0.0.1:8080", "0.0.0.0:8080", true},
		{"127.0.0.1:8080", "127.0.0.1:8081", false},
		{"127.0.0.1:8080", "192.0.2.1:8080", false},
		{"[::1]:8080", "[::1]:8080", true},
		{"[::1]:8080", "[::]:8080", true},
		{"[::]:8080", "127.0.0.1:8080", true},
		{"0.0.0.0:8080", "[::1]:8080", true},
		{"[::]:8080", mine, true},
		{"[::]:8080", "192.0.2.1:8080", false},
	} {
		err := own(tc.listens).Check("h", "tcp", tc.address)
		require.Equal(t, tc.refused, err != nil, "%+v: %v", tc, err)
	}
}

// TestDialChecksTheAddress: a name leads somewhere else each time, so the address
// that is really dialled counts; the dialer's own hook still runs.
func TestDialChecksTheAddress(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	asked := 0
	with := &net.Dialer{Control: func(string, string, syscall.RawConn) error { asked++; return nil }}
	conn, err := (&Network{Hosts: hosts(t, "127.0.0.0/8", "::1")}).Dial(t.Context(), with, "localhost", "tcp", net.JoinHostPort("localhost", port))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Positive(t, asked)
	for flag, n := range map[string]*Network{"--deny-loopback": {DenyLoopback: true}, "--allow-hosts": {Hosts: hosts(t, "192.0.2.0/24")}} {
		_, err = n.Dial(context.Background(), &net.Dialer{}, "localhost", "tcp", net.JoinHostPort("localhost", port))
		require.ErrorContains(t, err, flag)
		require.True(t, Refused(err))
	}
	socket := filepath.Join(t.TempDir(), "s")
	un, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer un.Close()
	_, err = (&Network{DenyLoopback: true}).Dial(t.Context(), &net.Dialer{}, socket, "unix", socket)
	require.ErrorContains(t, err, "--deny-loopback")
}

func TestAdmit(t *testing.T) {
	for name, c := range map[string]struct {
		remote, host, header, value string
		says                        string // "" admits
	}{
		"IPv4":                         {remote: "127.0.0.1:1", host: "127.0.0.1:8080"},
		"another address of loopback":  {remote: "127.8.9.1:1", host: "127.0.0.1"},
		"IPv6":                         {remote: "[::1]:1", host: "[::1]:8080"},
		"IPv6 without a port":          {remote: "::1", host: "[::1]"},
		"IPv4 inside IPv6":             {remote: "[::ffff:127.0.0.1]:1", host: "localhost"},
		"a zone":                       {remote: "[fe80::1%eth0]:1", host: "localhost", says: "does not come from this machine"},
		"localhost":                    {remote: "127.0.0.1:1", host: "LocalHost.:9"},
		"a name below localhost":       {remote: "127.0.0.1:1", host: "sim.localhost"},
		"Unix socket":                  {remote: "@", host: "whatever"},
		"in memory":                    {remote: "pipe", host: "example.com"},
		"no peer":                      {remote: "", host: "example.com"},
		"Unix socket behind a proxy":   {remote: "@", host: "localhost", header: "X-Forwarded-For", value: "127.0.0.1", says: "does not come from this machine"},
		"another machine":              {remote: "192.0.2.1:1", host: "localhost", says: "does not come from this machine"},
		"another machine, no port":     {remote: "192.0.2.1", host: "localhost", says: "does not come from this machine"},
		"a tunnel":                     {remote: "127.0.0.1:1", host: "localhost", header: "X-Forwarded-For", value: "192.0.2.7", says: "does not come from this machine"},
		"a proxy after RFC 7239":       {remote: "127.0.0.1:1", host: "localhost", header: "Forwarded", value: "for=192.0.2.7", says: "does not come from this machine"},
		"a proxy that keeps the host":  {remote: "127.0.0.1:1", host: "localhost", header: "X-Forwarded-Host", value: "h", says: "does not come from this machine"},
		"a proxy with an address":      {remote: "127.0.0.1:1", host: "localhost", header: "X-Real-IP", value: "192.0.2.7", says: "does not come from this machine"},
		"a name that was rebound":      {remote: "127.0.0.1:1", host: "evil.example:8080", says: `the host "evil.example:8080"`},
		"a name that looks like ours":  {remote: "127.0.0.1:1", host: "localhost.evil.example", says: "no name of loopback"},
		"the address of a network":     {remote: "127.0.0.1:1", host: "192.0.2.1", says: "no name of loopback"},
		"no host":                      {remote: "127.0.0.1:1", host: "", says: "no name of loopback"},
		"a long host":                  {remote: "127.0.0.1:1", host: strings.Repeat("h", 500), says: strings.Repeat("h", shown) + `…"`},
		"a call of a service":          {remote: "127.0.0.1:1", host: "localhost", header: Outbound, value: "service", says: "call of a service"},
		"the same on a Unix socket":    {remote: "@", host: "localhost", header: Outbound, value: "0", says: "call of a service"},
		"a page of its own":            {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "http://localhost:1"},
		"a page of its own over TLS":   {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "https://localhost:1"},
		"a page of another port":       {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "http://localhost:2", says: "may not call here"},
		"a page without an origin":     {remote: "127.0.0.1:1", host: "localhost:1", header: "Origin", value: "null", says: "may not call here"},
		"typed into a browser":         {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "none"},
		"fetched by a page of its own": {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "same-origin"},
		"fetched by another site":      {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "cross-site", says: "another site"},
		"fetched by another port":      {remote: "127.0.0.1:1", host: "localhost:1", header: "Sec-Fetch-Site", value: "same-site", says: "another site"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/_control", nil)
			r.RemoteAddr, r.Host = c.remote, c.host
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			err := AdmitLoopback(r)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
			require.Equal(t, strings.Contains(ErrPeer.Error(), c.says), errors.Is(err, ErrPeer))
		})
	}
}
