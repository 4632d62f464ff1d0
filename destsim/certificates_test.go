package destsim

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
	chain := config.Certificates[0].Certificate
	require.Len(t, chain, 2, "leaf and intermediate")
	leaf, err := x509.ParseCertificate(chain[0])
	require.NoError(t, err)
	intermediate, err := x509.ParseCertificate(chain[1])
	require.NoError(t, err)
	verify := func(host string, roots *x509.CertPool) error {
		between := x509.NewCertPool()
		between.AddCert(intermediate)
		_, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between})
		return err
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "dest.example", "10.1.2.3"} {
		require.NoError(t, verify(host, roots), host)
	}
	require.ErrorAs(t, verify("other.example", roots), new(x509.HostnameError))
	require.ErrorAs(t, verify("localhost", x509.NewCertPool()), new(x509.UnknownAuthorityError))
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
