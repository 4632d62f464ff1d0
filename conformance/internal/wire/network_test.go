package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResets(t *testing.T) {
	tests := []struct {
		name, reply string
		unread      bool
		kind        Kind
	}{
		{"inside the request", "", true, KindReset},
		{"before the status line", "", false, KindReset},
		{"after the status line", "HTTP/1.1 200 OK\r\n", false, KindTruncated},
		{"inside the body", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", false, KindTruncated},
		{"inside a body without length", "HTTP/1.1 200 OK\r\n\r\nab", false, KindTruncated},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			read := make(chan struct{})
			url := rawServer(t, func(_ int, conn *net.TCPConn, br *bufio.Reader) {
				if test.unread {
					_, _ = br.Peek(1)
				} else {
					_, _, _ = readRequest(br)
				}
				_, _ = io.WriteString(conn, test.reply)
				if test.reply != "" {
					<-read // a reset overtakes what was not read
				}
				_ = conn.SetLinger(0)
			})
			c := newClient(t, Options{URL: url, Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return &notifyConn{Conn: conn, want: len(test.reply), read: read}, err
			}})
			r := c.Do(t.Context(), Call{Body: []byte("{}"), Timeout: time.Minute})
			require.Equal(t, test.kind, r.Kind, "%v", r.Err)
			require.False(t, r.OK())
			require.True(t, r.ConnClosed)
		})
	}
}

// notifyConn signals when a number of bytes was read.
type notifyConn struct {
	net.Conn
	want int
	read chan struct{}
}

func (c *notifyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.want > 0 {
		if c.want -= n; c.want <= 0 {
			close(c.read)
		}
	}
	return n, err
}

func TestOverTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte(r.Proto+" "+r.TLS.ServerName+" "), body...))
	}))
	srv.EnableHTTP2 = true // is not negotiated: the judge speaks 1.1
	srv.Config.ErrorLog = newQuietLog()
	srv.StartTLS()
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	require.NoError(t, err)

	t.Run("trusted", func(t *testing.T) {
		c := newClient(t, Options{URL: srv.URL, TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}})
		for i := range 3 {
			r := c.Do(t.Context(), Call{Body: []byte("x")})
			require.NoError(t, r.Err)
			require.Equal(t, "HTTP/1.1 example.com x", string(r.Body))
			require.Equal(t, i > 0, r.Reused)
		}
		conn, err := c.Open(t.Context())
		require.NoError(t, err)
		defer conn.Close()
		require.Equal(t, "example.com", conn.nc.(*tls.Conn).ConnectionState().ServerName)
	})
	t.Run("not trusted", func(t *testing.T) {
		c := newClient(t, Options{URL: srv.URL, TLS: &tls.Config{RootCAs: x509.NewCertPool()}})
		r := c.Do(t.Context(), Call{})
		require.Equal(t, KindTLS, r.Kind)
		var unknown x509.UnknownAuthorityError
		require.ErrorAs(t, r.Err, &unknown)
		_, err := c.Open(t.Context())
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, KindTLS, Classify(err, 0))
		_, err = c.Handshake(t.Context(), c.opts.TLS)
		require.ErrorAs(t, err, &unknown)
	})
	t.Run("handshake", func(t *testing.T) {
		c := newClient(t, Options{URL: "https://nowhere.invalid/", Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
		}})
		state, err := c.Handshake(t.Context(), &tls.Config{RootCAs: roots, ServerName: "example.com"})
		require.NoError(t, err)
		require.NotEmpty(t, state.VerifiedChains)
		_, err = c.Handshake(t.Context(), &tls.Config{RootCAs: roots})
		var name x509.HostnameError
		require.ErrorAs(t, err, &name)
		require.Equal(t, "nowhere.invalid", name.Host)
		_, err = c.Handshake(t.Context(), &tls.Config{RootCAs: roots, ServerName: "example.com", MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
		require.Equal(t, KindTLS, Classify(err, 0))
	})
	t.Run("plain probe", func(t *testing.T) {
		url := rawServer(t, answer(ok("plain"), false))
		addr := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/rpc")
		c := newClient(t, Options{URL: "https://localhost:" + port + "/a", TLS: &tls.Config{RootCAs: roots}})
		r := c.Do(t.Context(), Call{Detour: Detour{Plain: true, Address: addr}})
		require.NoError(t, r.Err)
		require.Equal(t, "plain", string(r.Body))
		require.Contains(t, r.Exchange().Request.Header, Header{"Host", "localhost:" + port})
		require.Equal(t, 400, c.Do(t.Context(), Call{Detour: Detour{Plain: true}}).Status, "the endpoint speaks TLS only")
		url = rawServer(t, func(_ int, conn *net.TCPConn, br *bufio.Reader) {
			_, _ = br.ReadByte()
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		})
		r = newClient(t, Options{URL: strings.Replace(url, "http", "https", 1)}).Do(t.Context(), Call{})
		require.Equal(t, KindTLS, r.Kind)
	})
}

func TestTargets(t *testing.T) {
	tests := []struct{ url, addr, host, path, user string }{
		{"http://h", "h:80", "h", "/", ""},
		{"https://h", "h:443", "h", "/", ""},
		{"https://H:8443/a/../b//%2e?x=1&x=%31;#f", "H:8443", "H:8443", "/a/../b//%2e?x=1&x=%31;", ""},
		{"http://h?q=a b", "h:80", "h", "/?q=a%20b", ""},
		{"http://h/é", "h:80", "h", "/%C3%A9", ""},
		{"http://us%40er:p%3Aw@h/", "h:80", "h", "/", "us@er:p:w"},
		{"http://[::1]:80/", "[::1]:80", "[::1]:80", "/", ""},
		{"http://[fe80::1%25eth0]:81/", "[fe80::1%eth0]:81", "[fe80::1]:81", "/", ""},
	}
	for _, test := range tests {
		got, err := parseTarget(test.url)
		require.NoError(t, err, test.url)
		require.Equal(t, test, struct{ url, addr, host, path, user string }{test.url, got.addr, got.host, got.path, got.user})
	}
}
