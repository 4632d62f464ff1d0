package loadgen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/destkit/destkit/internal/unreached"
)

// The kinds of errors, as they stand in reports. The first group fails a whole
// request, the second single records of a batch.
const (
	KindDescriptors = "descriptors"     // no file descriptor is left
	KindPorts       = "ports"           // no local port is left
	KindDNS         = "dns"             // the name does not resolve
	KindRefused     = "connect_refused" // nobody listens
	KindConnect     = "connect"         // any other failure to connect
	KindTLS         = "tls"             // no handshake, or the chain does not verify
	KindTimeout     = "timeout"         // no whole reply in time
	KindReset       = "reset"           // the connection was reset
	KindClosed      = "closed"          // … or closed before a reply began
	KindTruncated   = "truncated"       // the reply is shorter than announced
	KindTooLarge    = "reply_too_large" // … or longer than the bound
	KindHTTP        = "http"            // not HTTP, or against its rules
	KindStatus      = "http_status"     // a status other than 200 without an error object
	KindThrottled   = "throttled"       // 429
	KindJSON        = "json"            // the body is not JSON
	KindEnvelope    = "envelope"        // no response to this request (spec 7.2.1)
	KindRPC         = "rpc_error"       // an error object (spec 7.2.2)
	KindResults     = "results"         // record_results has the wrong shape
	KindInterrupted = "interrupted"     // the run ended before the reply

	KindRecordRefused = "record_refused" // success is not true
	KindMissing       = "result_missing" // a record without a result
	KindUnknown       = "result_unknown" // a result for an identifier that was not sent
	KindRepeated      = "result_repeated"
)

// Failure is why a request failed as a whole.
type Failure struct{ Kind, Message string }

func (f *Failure) Error() string { return f.Kind + ": " + f.Message }

func failf(kind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// errTimeout is what a call ends with whose time is over.
var errTimeout = errors.New("no whole reply in time")

// dialFailure sorts an error of connecting. Exhaustion is said as such: it is
// the generator's own limit and not the target's.
func dialFailure(err error) *Failure {
	var dns *net.DNSError
	cause := unreached.Of(err, "target", "the address")
	words := cause.What + ": " + cause.Fix
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return failf(KindDescriptors, "no file descriptor is left on this machine: raise 'ulimit -n' or use fewer connections")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return failf(KindPorts, "no local port is left on this machine: keep connections, or widen net.ipv4.ip_local_port_range")
	case errors.As(err, &dns):
		return failf(KindDNS, "%s", words)
	case errors.Is(err, syscall.ECONNREFUSED):
		return failf(KindRefused, "%s", words)
	case timedOut(err):
		return failf(KindTimeout, "connecting took too long")
	case cause.What != "":
		return failf(KindConnect, "%s", words)
	}
	return failf(KindConnect, "connect: %v", bare(err))
}

// What a URL with the wrong scheme meets.
const (
	plainPort = "plain http is spoken on this port, and the URL begins with https://: begin it with http://"
	tlsPort   = "TLS is spoken on this port, and the URL begins with http://: begin it with https://"
)

// tlsFailure sorts an error of the handshake.
func tlsFailure(err error) *Failure {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return failf(KindTLS, "the certificate is signed by an unknown authority; --tls-roots FILE trusts your own")
	case errors.As(err, &certificate):
		return failf(KindTLS, "the certificate does not verify: %v", certificate.Err)
	case errors.As(err, &record):
		if string(record.RecordHeader[:]) != "HTTP/" {
			return failf(KindTLS, "no TLS is spoken on this port, and the URL begins with https://: look at the port")
		}
		return failf(KindTLS, plainPort)
	case timedOut(err):
		return failf(KindTimeout, "the TLS handshake took too long")
	}
	return failf(KindTLS, "TLS handshake: %v", bare(err))
}

// callFailure sorts an error of writing or reading; begun says that a part of
// the reply was there.
func callFailure(err error, begun bool) *Failure {
	switch {
	case timedOut(err):
		return failf(KindTimeout, "no whole reply in time")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failf(KindReset, "the target reset the connection")
	case errors.Is(err, io.EOF) && begun, errors.Is(err, io.ErrUnexpectedEOF):
		return failf(KindTruncated, "the connection closed in the middle of a reply")
	case errors.Is(err, io.EOF):
		return failf(KindClosed, "the server closed the connection without responding")
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return failf(KindInterrupted, "the run ended before the reply")
	}
	return failf(KindReset, "%v", bare(err))
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, errTimeout) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// bare takes the addresses out of an error of package net: local ports would
// make every message another one.
func bare(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err
	}
	return err
}
