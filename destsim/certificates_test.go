package destsim

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// handshake connects a client over loopback and gives what it saw.
func handshake(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_ = tls.Server(conn, server).HandshakeContext(t.Context())
	}()
	near, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	conn := tls.Client(near, client)
	err = conn.HandshakeContext(t.Context())
	state := conn.ConnectionState()
	near.Close()
	listener.Close()
	<-done
	return state, err
}

func newTestCertificates(t *testing.T, hosts ...string) (*Certificates, *x509.CertPool) {
	t.Helper()
	certificates, err := NewCertificates(nil, hosts...)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificates.CAPEM()))
	return certificates, roots
}

func TestAGoodCertificateServesEveryHost(t *testing.T) {
	certificates, roots := newTestCertificates(t, "dest.example", "10.1.2.3", "", "localhost")
	config, err := certificates.TLSConfig("")
	require.NoError(t, err)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "dest.example", "10.1.2.3"} {
		state, err := handshake(t, config, &tls.Config{RootCAs: roots, ServerName: host})
		require.NoError(t, err, host)
		require.Len(t, state.PeerCertificates, 2, "leaf and intermediate")
		require.Equal(t, uint16(tls.VersionTLS13), state.Version)
		require.Greater(t, time.Until(state.PeerCertificates[0].NotAfter), 60*day)
	}
	_, err = handshake(t, config, &tls.Config{RootCAs: roots, ServerName: "other.example"})
	require.ErrorAs(t, err, new(x509.HostnameError))
	_, err = handshake(t, config, &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"})
	require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
}

func TestBadCertificatesFailInTheirOwnWay(t *testing.T) {
	certificates, roots := newTestCertificates(t)
	trusting := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	cases := map[string]func(t *testing.T, server *tls.Config){
		"TLS-002": func(t *testing.T, server *tls.Config) {
			state, err := handshake(t, server, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
			require.NoError(t, err)
			require.Len(t, state.PeerCertificates, 1)
			leaf := state.PeerCertificates[0]
			require.NoError(t, leaf.VerifyHostname("localhost"))
			require.NoError(t, leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature))
			_, err = handshake(t, server, trusting)
			require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
		},
		"TLS-003": func(t *testing.T, server *tls.Config) {
			_, err := handshake(t, server, trusting)
			require.ErrorAs(t, err, new(x509.HostnameError))
		},
		"TLS-003.2": func(t *testing.T, server *tls.Config) {
			for _, host := range []string{"localhost", "127.0.0.1"} {
				_, err := handshake(t, server, &tls.Config{RootCAs: roots, ServerName: host})
				require.ErrorAs(t, err, new(x509.HostnameError))
			}
			_, err := handshake(t, server, &tls.Config{RootCAs: roots, ServerName: vhost})
			require.NoError(t, err)
		},
		"TLS-004": func(t *testing.T, server *tls.Config) {
			_, err := handshake(t, server, trusting)
			var invalid x509.CertificateInvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, x509.Expired, invalid.Reason)
			require.True(t, invalid.Cert.NotAfter.Before(time.Now()))
		},
		"TLS-004.2": func(t *testing.T, server *tls.Config) {
			_, err := handshake(t, server, trusting)
			var invalid x509.CertificateInvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, x509.Expired, invalid.Reason)
			require.True(t, invalid.Cert.NotBefore.After(time.Now()))
		},
		"TLS-005": func(t *testing.T, server *tls.Config) {
			_, err := handshake(t, server, trusting)
			require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
			// With the intermediate at hand the same leaf is good.
			state, err := handshake(t, server, &tls.Config{InsecureSkipVerify: true, ServerName: "localhost"})
			require.NoError(t, err)
			require.Len(t, state.PeerCertificates, 1)
			between := x509.NewCertPool()
			between.AddCert(certificates.intermediate.certificate)
			_, err = state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: "localhost"})
			require.NoError(t, err)
		},
		"TLS-006": func(t *testing.T, server *tls.Config) {
			_, err := handshake(t, server, trusting)
			require.ErrorContains(t, err, "protocol version")
			state, err := handshake(t, server, &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS10})
			require.NoError(t, err)
			require.Equal(t, uint16(tls.VersionTLS10), state.Version)
		},
		"TLS-006.2": func(t *testing.T, server *tls.Config) {
			state, err := handshake(t, server, trusting)
			require.NoError(t, err)
			key, ok := state.PeerCertificates[0].PublicKey.(*rsa.PublicKey)
			require.True(t, ok)
			require.Equal(t, 1024, key.N.BitLen())
		},
		"TLS-009": func(t *testing.T, server *tls.Config) {
			state, err := handshake(t, server, trusting)
			require.NoError(t, err)
			left := time.Until(state.PeerCertificates[0].NotAfter)
			require.Greater(t, left, 2*day)
			require.LessOrEqual(t, left, 3*day)
		},
	}
	require.Len(t, cases, len(flaws)-1)
	for id, check := range cases {
		t.Run(id, func(t *testing.T) {
			server, err := certificates.TLSConfig(id)
			require.NoError(t, err)
			check(t, server)
		})
	}
	_, err := certificates.TLSConfig("TLS-099")
	require.ErrorContains(t, err, `no bad certificate "TLS-099" (did you mean "TLS-009"?)`)
}

func TestCertificatesFollowTheGivenClock(t *testing.T) {
	now := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	certificates, err := NewCertificates(func() time.Time { return now })
	require.NoError(t, err)
	config, err := certificates.TLSConfig("TLS-009")
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	require.NoError(t, err)
	require.Equal(t, now.Add(3*day), leaf.NotAfter)
}
