package destsim

import (
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

func TestUnknownBadCertificate(t *testing.T) {
	certificates, _ := newTestCertificates(t)
	_, err := certificates.TLSConfig("TLS-099")
	require.ErrorContains(t, err, `no bad certificate "TLS-099" (did you mean "TLS-009"?)`)
}
