package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// Kind is how an exchange ended.
type Kind string

// The ends of an exchange.
const (
	KindNone      Kind = ""          // a complete, well-formed response, whatever its status
	KindDNS       Kind = "dns"       // the name does not resolve
	KindRefused   Kind = "refused"   // no connection: refused, unreachable
	KindTLS       Kind = "tls"       // the handshake failed; Err holds the cause
	KindTimeout   Kind = "timeout"   // the call's own deadline passed
	KindReset     Kind = "reset"     // reset before any byte of the response
	KindClosed    Kind = "closed"    // closed before any byte of the response
	KindTruncated Kind = "truncated" // the connection ended inside the response
	KindMalformed Kind = "malformed" // not HTTP/1.x, or contradictory framing
	KindTooLarge  Kind = "toolarge"  // head, body or decoded body over its bound
	KindUnread    Kind = "unread"    // this side had no memory left for the body, or for its values
	KindEncoding  Kind = "encoding"  // Content-Encoding is false or was not offered
	KindCanceled  Kind = "canceled"  // the caller's context ended
	KindCut       Kind = "cut"       // this end cut the connection, as configured
	KindInvalid   Kind = "invalid"   // the call itself cannot be sent
)

// What a step of a scenario returns when the endpoint stopped accepting connections in the
// middle of it, whichever call met that, or accepts them and answers nothing any more.
var (
	ErrAway   = errors.New("the endpoint went away")
	ErrSilent = fmt.Errorf("%w: it answers nothing", ErrAway)
)

// Error is what ended an exchange.
type Error struct {
	Kind Kind
	Op   string // "read response head", "dial", …
	Err  error  // the cause; may be nil
}

// Error gives "op: cause", and no operation twice.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Op
	}
	if network, ok := e.Err.(*net.OpError); ok && network.Op == e.Op {
		return network.Error()
	}
	return e.Op + ": " + e.Err.Error()
}

// Unwrap gives the cause, so that x509 and network errors can be looked at.
func (e *Error) Unwrap() error { return e.Err }

// The errors of a reply by their texts.
var (
	malformed     = failing(KindMalformed, "parse response")
	tooLarge      = failing(KindTooLarge, "read response")
	unread        = failing(KindUnread, "read response")
	encodingError = failing(KindEncoding, "decode content encoding")
)

func failing(kind Kind, op string) func(format string, args ...any) error {
	return func(format string, args ...any) error {
		return &Error{Kind: kind, Op: op, Err: fmt.Errorf(format, args...)}
	}
}

// errCut marks an end that the call requested.
var errCut = &Error{Kind: KindCut, Op: "connection cut by the judge, as the check asks"}

// Classify gives the kind of an error of dialling, handshaking or reading when
// received bytes of the response had arrived. A nil error is KindNone.
func Classify(err error, received int64) Kind {
	var own *Error
	var dns *net.DNSError
	switch {
	case err == nil:
		return KindNone
	case errors.As(err, &own) && own.Kind != "":
		return own.Kind
	case errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	case errors.As(err, &dns):
		return KindDNS
	case isTimeout(err):
		return KindTimeout
	case isTLS(err):
		return KindTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return KindRefused
	case received > 0:
		return KindTruncated
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return KindClosed
	}
	return KindReset
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isTLS knows the errors of TLS, alerts after the handshake included.
func isTLS(err error) bool {
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, verify := errors.AsType[*tls.CertificateVerificationError](err)
	op, is := errors.AsType[*net.OpError](err)
	return record || verify || is && (op.Op == "remote error" || op.Op == "local error")
}

const candidates = "could be"

// EitherCause names two candidates, with the call that distinguishes them.
func EitherCause(one, other, call string) string {
	return fmt.Sprintf("%s %s, or %s; %s tells them apart.", candidates, one, other, call)
}

// OpenCause reports whether a cause names candidates.
func OpenCause(text string) bool { return strings.HasPrefix(text, candidates) }
