package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/unreached"
)

// Failure is why a request failed as a whole.
type Failure struct{ Kind, Message string }

func (f *Failure) Error() string { return f.Kind + ": " + f.Message }

// Newf makes one.
func Newf(kind, format string, args ...any) *Failure {
	return &Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Dial sorts an error of connecting. Exhaustion is said as such: it is
// the generator's own limit and not the target's.
func Dial(err error) *Failure {
	var dns *net.DNSError
	cause := unreached.Of(err, "target", "the address")
	words := cause.What + ": " + cause.Fix
	switch {
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return Newf(KindDescriptors, "no file descriptor is left on this machine: raise 'ulimit -n' or use fewer connections")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return Newf(KindPorts, "no local port is left on this machine: keep connections, or widen net.ipv4.ip_local_port_range")
	case errors.As(err, &dns):
		return Newf(KindDNS, "%s", words)
	case errors.Is(err, syscall.ECONNREFUSED):
		return Newf(KindRefused, "%s", words)
	case TimedOut(err):
		return Newf(KindTimeout, "connecting took too long")
	case cause.What != "":
		return Newf(KindConnect, "%s", words)
	}
	return Newf(KindConnect, "connect: %v", bare(err))
}

// Errors of a URL with the wrong scheme.
const (
	PlainPort = "plain http is spoken on this port, and the URL begins with https://: begin it with http://"
	TLSPort   = "TLS is spoken on this port, and the URL begins with http://: begin it with https://"
)

// TLS sorts an error of the handshake.
func TLS(err error) *Failure {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return Newf(KindTLS, "the certificate is signed by an unknown authority; --tls-roots FILE trusts your own")
	case errors.As(err, &certificate):
		return Newf(KindTLS, "the certificate does not verify: %v", certificate.Err)
	case errors.As(err, &record):
		if head := record.RecordHeader; string(head[:]) != "HTTP/" && head[0] != '<' { // a page without a head, as of HTTP/0.9, is plain http, too
			return Newf(KindTLS, "no TLS is spoken on this port, and the URL begins with https://: look at the port")
		}
		return Newf(KindTLS, PlainPort)
	case TimedOut(err):
		return Newf(KindTimeout, "the TLS handshake took too long")
	}
	return Newf(KindTLS, "TLS handshake: %v", bare(err))
}

// Call sorts an error of writing or reading; begun means that a part
// of the reply was there.
func Call(err error, begun bool) *Failure {
	switch {
	case TimedOut(err):
		return Newf(KindTimeout, "no whole reply in time")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Newf(KindReset, "the target reset the connection")
	case errors.Is(err, io.EOF) && begun, errors.Is(err, io.ErrUnexpectedEOF):
		return Newf(KindTruncated, "the connection closed in the middle of a reply")
	case errors.Is(err, io.EOF):
		return Newf(KindClosed, "the server closed the connection without responding")
	case errors.Is(err, context.Canceled), errors.Is(err, net.ErrClosed):
		return Newf(KindInterrupted, "the run ended before the reply")
	}
	return Newf(KindReset, "%v", bare(err))
}

func TimedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
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

// UsageError is a mistake of the caller: nothing was sent.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// Usagef makes one; text from outside is made safe to show.
func Usagef(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, foreign.Args(args)...)}
}

// LongestMessage bounds a message in reports, and LongestQuote quoted text from outside
// in a message, in characters.
const (
	LongestMessage = 300
	LongestQuote   = 80
)

// StatusText describes an answer without an envelope. The target of a redirect
// is not shown: it may hold a secret, and no batch is sent there.
func StatusText(status int, body []byte) string {
	text := fmt.Sprintf("HTTP status %d", status)
	if status/100 == 3 {
		return text + ", a redirect, which is not followed: give the URL that it leads to"
	}
	if said := foreign.Clip(bytes.TrimSpace(body), LongestQuote); said != "" {
		text += ": " + said
	}
	return text
}

// MessageOf is an error without the word for its kind.
func MessageOf(err error) string {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Message
	}
	return err.Error()
}

// FirstPart is as much of a foreign text as is looked at.
func FirstPart(text []byte) []byte {
	const most = 2 << 10
	if len(text) <= most {
		return text
	}
	return bytes.ToValidUTF8(text[:most], nil)
}

// The kinds of errors, as reports have them. The first group fails a whole
// request, the second single records of a batch.
const (
	KindDescriptors = "descriptors"     // no file descriptor is left
	KindPorts       = "ports"           // no local port is left
	KindDNS         = "dns"             // the name does not resolve
	KindRefused     = "connect_refused" // nothing listens there
	KindConnect     = "connect"         // any other failure to connect
	KindTLS         = "tls"             // no handshake, or the chain does not verify
	KindTimeout     = "timeout"         // no whole reply in time
	KindReset       = "reset"           // the connection was reset
	KindClosed      = "closed"          // … or closed before a reply began
	KindTruncated   = "truncated"       // the reply is shorter than announced
	KindTooLarge    = "reply_too_large" // … or longer than the bound
	KindHTTP        = "http"            // not HTTP, or against its rules
	KindStatus      = "http_status"     // a status other than 200 without an error object
	KindThrottled   = "throttled"       // 429, or 503 with an error object or Retry-After
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

// The kinds of errors that only a load on the API of a service has; those of connections,
// status and JSON are the same. KindEnvelope is a reply without the status success or
// without data (spec 2.1).
const (
	KindPagination    = "pagination"     // page, per_page, next_page, last_page or total_records are wrong
	KindItem          = "item"           // not what was requested, or without an id
	KindItemRepeated  = "item_repeated"  // an item occurs in a list twice
	KindItemMissing   = "item_missing"   // a list ends with fewer items than it counts
	KindRunState      = "run_state"      // a run has a state that cannot be
	KindRunUnfinished = "run_unfinished" // a run has not ended in time
)

// The kinds of errors that a verification finds.
const (
	KindLost      = "record_lost"      // acknowledged, and not there
	KindWrong     = "record_wrong"     // there, with another value than any that was acknowledged last
	KindDoubled   = "record_doubled"   // there more than once
	KindUndeleted = "record_undeleted" // its deletion was acknowledged, and it is there
)
