package destsim

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// serveTLS serves a handler as a program would and gives HOST:PORT.
func serveTLS(t *testing.T, handler http.Handler, config *tls.Config, plainToo bool) string {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(TLSListener(inner, config, plainToo)) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return inner.Addr().String()
}

// TestTLSViolationsShow connects a client that trusts the authority, speaks
// TLS 1.2 and newer, and looks at no certificate by itself.
func TestTLSViolationsShow(t *testing.T) {
	certificates, roots := newTestCertificates(t)
	const ok = "200 " + `{"jsonrpc":"2.0","id":"a1",` + connected + "}"
	type seen struct{ https, http string }
	clean := seen{ok, "400 [Content-Type: ] Client sent an HTTP request to an HTTPS server.\n"}
	table := map[string]seen{
		"":          clean,
		"TLS-002":   {"certificate signed by unknown authority", clean.http},
		"TLS-003":   {"certificate is valid for wrong", clean.http},
		"TLS-003.2": {"certificate is valid for default", clean.http},
		"TLS-004":   {"certificate has expired or is not yet valid: current time", clean.http},
		"TLS-004.2": {"is before", clean.http},
		"TLS-005":   {"certificate signed by unknown authority", clean.http},
		"TLS-006":   {"protocol version", clean.http},
		"TLS-006.2": clean, // what a client must look for is in the tests of the certificates
		"TLS-007":   {ok, ok},
		"TLS-009":   clean, // likewise
	}
	var ids []tamper
	for id, want := range table {
		t.Run("violation "+id, func(t *testing.T) {
			config := Config{}
			if id != "" {
				config.Violate = []string{id}
			}
			s := newSim(t, config)
			require.Equal(t, id, s.TLSViolation())
			// TLS-007 is no matter of the certificate.
			server, err := certificates.TLSConfig(strings.TrimSuffix(s.TLSViolation(), "TLS-007"))
			require.NoError(t, err)
			at := serveTLS(t, s, server, id == "TLS-007")
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}
			defer transport.CloseIdleConnections()
			for scheme, want := range map[string]string{"https": want.https, "http": want.http} {
				n := &naive{t: t, sim: s, url: scheme + "://" + at, http: &http.Client{Transport: transport}}
				require.Contains(t, n.call("test_connection", `{}`), want, scheme)
			}
		})
		if id != "" {
			ids = append(ids, tamper{id: id})
		}
	}
	plain := newSim(t, Config{Violate: []string{"TLS-001"}})
	require.Equal(t, "TLS-001", plain.TLSViolation(), "the program then leaves TLS out")
	testAllTampered(t, tlsViolations(), ids, []tamper{{id: "TLS-001"}})
}

// TestOtherViolationsAskNothingOfTheListener.
func TestOtherViolationsAskNothingOfTheListener(t *testing.T) {
	require.Empty(t, newSim(t, Config{Violate: []string{"RPC-001", "AUTH-002"}}).TLSViolation())
}

// TestAPlainPortLetsNoOneWait: a client that says nothing keeps no one from
// being served, and holds nothing once the listener is closed.
func TestAPlainPortLetsNoOneWait(t *testing.T) {
	certificates, _ := newTestCertificates(t)
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	s := newSim(t, Config{})
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := TLSListener(inner, config, true)
	server := &http.Server{Handler: s}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	silent, err := net.Dial("tcp", inner.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	n := &naive{t: t, sim: s, url: "http://" + inner.Addr().String(), http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	require.Contains(t, n.call("test_connection", `{}`), connected)
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-done, http.ErrServerClosed)
	_, err = silent.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}
