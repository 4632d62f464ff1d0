package destination

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/stretchr/testify/require"
)

var discardLog = log.New(io.Discard, "", 0)

const healthy = `"result":{"success":true}`

// Each certificate fault fails the step TLS, unlike a good certificate of
// the same authority, on loopback too (spec 5.2.1).
func TestTLSFaults(t *testing.T) {
	certificates, err := destsim.NewCertificates(nil)
	require.NoError(t, err)
	cases := []struct {
		name, violation string
		trusted         bool
		want            string // of the message, "" for a good one
	}{
		{"good", "", true, ""},
		{"unknown authority", "", false, "is signed by an unknown authority"},
		{"self-signed", "TLS-002", true, "is self-signed"},
		{"self-signed, authority unknown", "TLS-002", false, "is self-signed"},
		{"wrong host", "TLS-003", true, "is not for 127.0.0.1, it is for wrong-host.invalid"},
		{"expired", "TLS-004", true, "expired on"},
		{"not yet valid", "TLS-004.2", true, "is not valid before"},
		{"no intermediate", "TLS-005", true, "send its intermediates"},
		{"TLS 1.0 only", "TLS-006", true, "protocol version"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config, err := certificates.TLSConfig(c.violation)
			require.NoError(t, err)
			port := secureServer(t, config, endpoint(t, map[string]string{"test_connection": healthy}))
			g := newGate(t, Options{})
			conn := openURL(t, g, "https://127.0.0.1:"+port+"/rpc")
			if c.trusted {
				require.False(t, Succeeded(conn.Test(t.Context())))
				n, err := g.Trust(certificates.CAPEM()) // for a connection that is already open
				require.NoError(t, err)
				require.Equal(t, 1, n)
			}
			results := conn.Test(t.Context())
			require.Equal(t, c.want == "", Succeeded(results), failure(results))
			if c.want == "" {
				require.Equal(t, []string{"URL passed", "DNS passed", "TLS passed", "authentication passed", "test_connection passed"}, steps(results))
				return
			}
			require.Equal(t, []string{"URL passed", "DNS passed", "TLS failed", "authentication skipped", "test_connection skipped"}, steps(results))
			require.Contains(t, failure(results), c.want)
			_, err = conn.Objects(t.Context())
			require.Equal(t, OutcomeTLS, failedCall(t, err).Outcome)
		})
	}
}

func TestTrustRefuses(t *testing.T) {
	g := newGate(t, Options{})
	for name, text := range map[string]string{
		"empty":   "",
		"no PEM":  "hello",
		"a key":   "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"damaged": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		n, err := g.Trust([]byte(text))
		require.Error(t, err, name)
		require.Zero(t, n, name)
	}
}

func TestNames(t *testing.T) {
	cases := []struct {
		name string
		err  error
		list []netip.Addr
		want string
	}{
		{"not found", &net.DNSError{Err: "no such host", IsNotFound: true}, nil, "no such host"},
		{"timeout", &net.DNSError{Err: "i/o timeout", IsTimeout: true}, nil, "did not answer in time"},
		{"server failure", &net.DNSError{Err: "server misbehaving"}, nil, "server misbehaving"},
		{"another", errors.New("the cable is cut"), nil, "the cable is cut"},
		{"no address", nil, nil, "no address"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := newGate(t, Options{Resolve: func(context.Context, string) ([]netip.Addr, error) { return c.list, c.err }})
			conn := openURL(t, g, "https://destination.example/very-secret-path")
			results := conn.Test(t.Context())
			require.Equal(t, []string{"URL passed", "DNS failed", "TLS skipped", "authentication skipped", "test_connection skipped"}, steps(results))
			require.Contains(t, failure(results), "destination.example")
			require.Contains(t, failure(results), c.want)
			_, err := conn.Objects(t.Context())
			require.Equal(t, OutcomeDNS, failedCall(t, err).Outcome)
			require.NotContains(t, err.Error(), "very-secret")
		})
	}
}

// A name is resolved by the injected resolver, and a second address is tried
// when the first refuses.
func TestSecondAddress(t *testing.T) {
	url := server(t, endpoint(t, map[string]string{"test_connection": healthy}))
	_, port, err := net.SplitHostPort(url[len("http://"):])
	require.NoError(t, err)
	asked := ""
	g := newGate(t, Options{AllowPlainHTTP: true, Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
		asked = host
		return []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")}, nil
	}})
	results := openURL(t, g, "http://destination.example:"+port).Test(t.Context())
	require.True(t, Succeeded(results), failure(results))
	require.Equal(t, "destination.example", asked)
	require.Equal(t, []string{"URL passed", "DNS passed", "TLS skipped", "authentication passed", "test_connection passed"}, steps(results))
}

// localhost never leaves the machine, regardless of a resolver.
func TestLocalhostIsNotLookedUp(t *testing.T) {
	url := server(t, endpoint(t, map[string]string{"test_connection": healthy}))
	_, port, err := net.SplitHostPort(url[len("http://"):])
	require.NoError(t, err)
	g := newGate(t, Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return nil, errors.New("must not be asked")
	}})
	for _, host := range []string{"localhost", "LOCALHOST", "a.localhost"} {
		results := openURL(t, g, "http://"+host+":"+port).Test(t.Context())
		require.True(t, Succeeded(results), failure(results))
	}
}

// Plain http beyond loopback is refused when the permission is gone.
func TestPlainHTTPAfterwards(t *testing.T) {
	lenient := newGate(t, Options{AllowPlainHTTP: true})
	stored := customCreds(t, lenient, `{"webhook_url":"http://destination.example/secret-path"}`)
	strict := newGate(t, Options{})
	c, err := strict.Open(1, api.TypeCustomAPI, stored)
	require.NoError(t, err)
	results := c.Test(t.Context())
	require.Equal(t, []string{"URL failed", "DNS skipped", "TLS skipped", "authentication skipped", "test_connection skipped"}, steps(results))
	require.Contains(t, failure(results), "must start with https://")
	require.NotContains(t, failure(results), "secret-path")
	_, err = c.Objects(t.Context())
	require.ErrorContains(t, err, "must start with https://")
}

// Nothing listens: the step that connects reports it.
func TestNothingListens(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	g := newGate(t, Options{})
	results := openURL(t, g, "https://"+address).Test(t.Context())
	require.Equal(t, "TLS failed", steps(results)[2])
	require.Contains(t, failure(results), "refuses the connection")
	_, failed := call(t.Context(), openURL(t, g, "http://"+address), rpc.MethodListObjects, nil)
	require.Equal(t, OutcomeConnect, failed.Outcome)
	results = openURL(t, g, "http://"+address).Test(t.Context())
	require.Equal(t, []string{"URL passed", "DNS passed", "TLS skipped", "authentication skipped", "test_connection failed"}, steps(results))
	require.Contains(t, failure(results), "refuses the connection")
}

// The endpoint speaks plain http where https was requested.
func TestNotTLS(t *testing.T) {
	url := server(t, endpoint(t, nil))
	results := openURL(t, newGate(t, Options{}), "https"+url[len("http"):]).Test(t.Context())
	require.Equal(t, "TLS failed", steps(results)[2])
	require.Contains(t, failure(results), "does not speak TLS")
}

func TestAuthentication(t *testing.T) {
	sim := simulator(t, destsim.Config{Token: "right-token-1234"})
	url := server(t, sim.ServeHTTP)
	g := newGate(t, Options{})
	cases := []struct {
		name, token, status, message string
	}{
		{"right", "right-token-1234", "authentication passed", ""},
		{"wrong", "wrong-token-1234", "authentication failed", "the endpoint refuses the token"},
		{"none", "", "authentication failed", "no auth_token is set"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := `{"webhook_url":` + quote(url) + `}`
			if c.token != "" {
				body = `{"webhook_url":` + quote(url) + `,"auth_token":` + quote(c.token) + `}`
			}
			conn, err := g.Open(0, api.TypeCustomAPI, customCreds(t, g, body))
			require.NoError(t, err)
			defer conn.Close()
			results := conn.Test(t.Context())
			require.Equal(t, c.status, steps(results)[3])
			require.Contains(t, failure(results), c.message)
			require.Equal(t, c.message == "", Succeeded(results))
		})
	}
}

func TestTestConnectionStep(t *testing.T) {
	cases := []struct{ name, answer, want string }{
		{"healthy", healthy, ""},
		{"message", `"result":{"success":false,"error_message":"The API Key is invalid"}`, "The API Key is invalid"},
		{"no message", `"result":{"success":false}`, "gives no error_message"},
		{"an object as message", `"result":{"success":false,"error_message":{"why":"down"}}`, `{"why":"down"}`},
		{"no key", `"result":{}`, "unknown error: result.success is missing"},
		{"not a boolean", `"result":{"success":"true"}`, "unknown error: result.success is missing or not a boolean"},
		{"null", `"result":{"success":null}`, "unknown error"},
		{"error object", `"error":{"code":-32000,"message":"no database"}`, "rpc error -32000: no database"},
		{"both", healthy + `,"error":{"code":1,"message":"x"}`, "unknown error: result and error are both present"},
		{"neither", `"method":"test_connection"`, "unknown error: neither result nor error is present"},
		{"result is a list", `"result":[]`, "unknown error: result is not an object"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			url := server(t, endpoint(t, map[string]string{"test_connection": c.answer}))
			results := openURL(t, newGate(t, Options{}), url).Test(t.Context())
			require.Equal(t, "authentication passed", steps(results)[3])
			require.Equal(t, c.want == "", Succeeded(results))
			require.Contains(t, failure(results), c.want)
		})
	}
}

// The service's requests, and their invariants.
func TestRequest(t *testing.T) {
	var got *http.Request
	answer := endpoint(t, map[string]string{"test_connection": healthy})
	url := server(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		answer(w, r)
	})
	g := newGate(t, Options{UserAgent: "destkit/test"})
	c, err := g.Open(0, api.TypeCustomAPI, customCreds(t, g, `{"webhook_url":`+quote(url+"/a%2Fb/c?key=%41&x")+
		`,"auth_token":"token-1234","custom_headers":{"X-Client":{"value":"seven","is_secret":true}}}`))
	require.NoError(t, err)
	defer c.Close()
	require.True(t, Succeeded(c.Test(t.Context())))
	require.Equal(t, http.MethodPost, got.Method)
	require.Equal(t, "/a%2Fb/c?key=%41&x", got.RequestURI)
	require.Equal(t, "destkit/test", got.Header.Get("User-Agent"))
	require.Equal(t, "Bearer token-1234", got.Header.Get("Authorization"))
	require.Equal(t, "seven", got.Header.Get("X-Client"))
	require.Equal(t, "application/json", got.Header.Get("Content-Type"))
	require.Equal(t, "gzip;q=1.0,deflate;q=0.6,identity;q=0.3", got.Header.Get("Accept-Encoding"))
}
