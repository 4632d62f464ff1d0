package unreached

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	dial := func(cause error) error {
		return fmt.Errorf("send request: %w", &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: cause})
	}
	for name, test := range map[string]struct {
		err       error
		what, fix string
	}{
		"refused":      {dial(&os.SyscallError{Syscall: "connect", Err: syscall.ECONNREFUSED}), "nothing listens at 127.0.0.1:8080", "start the endpoint, or correct the host and port of the URL"},
		"no name":      {dial(&net.DNSError{Name: "no.such.invalid", Server: "10.0.0.1:53", IsNotFound: true}), "the host name no.such.invalid does not resolve", "correct the host name"},
		"no server":    {dial(&net.DNSError{Name: "a.example", IsTemporary: true}), "the host name a.example could not be resolved", "try again"},
		"dial timeout": {dial(os.ErrDeadlineExceeded), "127.0.0.1:8080 did not accept a connection in time", "firewall"},
		"no route":     {dial(syscall.EHOSTUNREACH), "no route leads to 127.0.0.1:8080", "network"},
		"timeout":      {context.DeadlineExceeded, "a.example gave no response in time", "hangs"},
		"plain http":   {tls.RecordHeaderError{RecordHeader: [5]byte([]byte("HTTP/"))}, "plain http is spoken", "http://"},
		"a page":       {tls.RecordHeaderError{RecordHeader: [5]byte([]byte("<!DOC"))}, "plain http is spoken on this port", "begin the URL with http://"},
		"no tls":       {tls.RecordHeaderError{RecordHeader: [5]byte([]byte("SSH-2"))}, "no TLS is spoken", "port"},
		"authority":    {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "certificate of a.example is signed by an unknown authority", "--tls-roots FILE"},
		"other name":   {x509.HostnameError{Host: "a.example", Certificate: &x509.Certificate{}}, "not made for a.example", "host name"},
		"expired":      {x509.CertificateInvalidError{Reason: x509.Expired}, "expired", "renew"},
		"common name":  {x509.HostnameError{Host: "a.example", Certificate: &x509.Certificate{Subject: pkix.Name{CommonName: "a.example"}}}, "in the common name alone", "subject alternative name"},
		"client's":     {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}}, "certificate of a.example is not made for servers", "serverAuth"},
		"no authority": {x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, "may not sign others", "CA:TRUE"},
		"long chain":   {x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}, "more certificates above it", "path length"},
		"constrained":  {x509.CertificateInvalidError{Reason: x509.CANotAuthorizedForThisName}, "may not sign this name", "constraints"},
		"odd":          {x509.CertificateInvalidError{Reason: x509.NameMismatch}, "is not valid: issuer name does not match", "those above it"},
		"weak":         {&tls.CertificateVerificationError{Err: x509.InsecureAlgorithmError(x509.SHA1WithRSA)}, "signed with SHA1-RSA, which is broken", "SHA-256"},
		"no roots":     {x509.SystemRootsError{}, "no certificates of authorities", "--tls-roots FILE"},
		"alert":        {&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, "the server refused the TLS handshake: handshake failure", "versions"},
		"tls version":  {fmt.Errorf("tls handshake: %w", errors.New("tls: server selected unsupported protocol version 301")), "the TLS handshake failed: server selected unsupported", "versions"},
		"closed":       {fmt.Errorf("read: %w", io.EOF), "closed the connection without responding", "log"},
		"reset":        {&net.OpError{Op: "read", Addr: at, Err: syscall.ECONNRESET}, "closed the connection without responding", "log"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(test.err, "endpoint", "a.example")
			require.Contains(t, got.What, test.what)
			require.Contains(t, got.Fix, test.fix)
			for _, raw := range []string{"dial", "tcp", "lookup", "connect:", "10.0.0.1"} {
				require.NotContains(t, got.What+got.Fix, raw)
			}
		})
	}
	require.Zero(t, Of(nil, "endpoint", "a.example"))
	require.Zero(t, Of(errors.New("something else"), "endpoint", "a.example"))
	require.Zero(t, Of(context.Canceled, "endpoint", "a.example"))
}
