package destination

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/reach"
)

// CallError holds why a call failed, in words for the user and without secrets.
type CallError struct {
	Method  string // of the protocol
	Object  string // object_api_name of a planning call, "" otherwise
	Outcome string // one of the Outcome constants
	Status  int    // HTTP status; 0: no reply
	Code    int64  // of the error object (spec 7.2.2)
	Message string
	// RetryAfter is the value of the header of that name, "" without one.
	RetryAfter string
	// RateLimit is that of Reply: any reply may carry it, also a failure.
	RateLimit int64
	// Call is the id of the call, by which a journal has it; "" where none was made.
	Call string
}

// Error names the call and the cause.
func (e *CallError) Error() string {
	if e.Object != "" {
		return fmt.Sprintf("call %s of object %q: %s", e.Method, foreign.Clip(e.Object, 64), e.Message)
	}
	return fmt.Sprintf("call %s: %s", e.Method, e.Message)
}

// unknownError is what a reply without the right keys counts as (spec 7.2.1).
const unknownError = "unknown error: "

// explain turns the error of a call into words. ctx is that of the caller,
// without the timeout of the call.
func (c *caller) explain(ctx context.Context, x *Exchange, err error) *CallError {
	e := &CallError{Method: x.Method, Status: x.Status, RetryAfter: x.Header.Get("Retry-After"), RateLimit: rateLimit(x), Call: x.RequestID}
	var rpcErr *rpc.Error
	var status *rpc.StatusError
	var syntax *rawjson.SyntaxError
	switch {
	case errors.As(err, &rpcErr):
		e.Outcome, e.Code = OutcomeRPCError, rpcErr.Code
		e.Message = fmt.Sprintf("rpc error %d: %s", rpcErr.Code, c.clean.Foreign(rpcErr.Message))
		if refuses(x.Status) {
			e.Outcome = OutcomeRefused
		}
	case errors.As(err, &status):
		e.Outcome, e.Message = OutcomeStatus, c.statusText(status)
		if refuses(status.Status) {
			e.Outcome = OutcomeRefused
		}
	case errors.Is(err, rpc.ErrReplyTooLarge):
		e.Outcome, e.Message = OutcomeTooLarge, fmt.Sprintf("the reply is larger than %d bytes", c.gate.options.MaxReply)
	case errors.Is(err, rpc.ErrEnvelope):
		e.Outcome, e.Message = OutcomeMalformed, unknownError+c.clean.Foreign(envelope(err))
	case errors.As(err, &syntax):
		e.Outcome, e.Message = OutcomeMalformed, unknownError+"the reply is not JSON: "+syntax.Error()
	default:
		e.Outcome, e.Message = c.gate.network(ctx, c.host, c.gate.timeout(x.Method), err)
		if e.Outcome == OutcomeNetwork && x.Status != 0 { // the reply began
			e.Message = "the reply could not be read: " + e.Message
		}
		e.Message = c.clean.String(e.Message)
	}
	return e
}

// refuses reports the two statuses that mean the token, regardless of the body.
func refuses(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// envelope is the last part of an envelope error: what is wrong with it.
func envelope(err error) string {
	_, what, found := strings.Cut(err.Error(), rpc.ErrEnvelope.Error()+": ")
	if !found {
		return "the reply has not the right keys"
	}
	return what
}

// statusText shows the status and the cleaned beginning of the body. The target
// of a redirect is left out: it may repeat the secrets of the URL.
func (c *caller) statusText(e *rpc.StatusError) string {
	message := fmt.Sprintf("http status %d", e.Status)
	if name := http.StatusText(e.Status); name != "" {
		message += " " + name
	}
	if e.Status >= 300 && e.Status < 400 {
		return message + "; redirects are not followed, set the URL that finally answers"
	}
	if body := c.clean.Foreign(e.Body); body != "" {
		message += ": " + body
	}
	return message
}

// network explains an error below the protocol; host is host or host:port, bound the
// timeout of the call.
func (g *Gate) network(ctx context.Context, host string, bound time.Duration, err error) (outcome, message string) {
	var refused *reach.Error
	var lookup *lookupError
	var handshake *handshakeError
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return OutcomeCanceled, "the call was cancelled"
	case errors.As(err, &refused):
		return OutcomeConnect, refused.Error()
	case errors.As(err, &lookup):
		return OutcomeDNS, lookupText(lookup)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return OutcomeTimeout, host + " did not answer in time"
	case errors.As(err, &handshake) && !isTimeout(err):
		return OutcomeTLS, tlsText(host, handshake.err)
	case dialing && isTimeout(err):
		return OutcomeConnect, fmt.Sprintf("%s does not accept a connection within %s", host, seconds(g.options.ConnectTimeout))
	case isTimeout(err):
		return OutcomeTimeout, fmt.Sprintf("%s did not answer within %s to connect and %s in all",
			host, seconds(g.options.ConnectTimeout), seconds(bound))
	case errors.Is(err, syscall.ECONNREFUSED):
		return OutcomeConnect, host + " refuses the connection; is it listening on that port?"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), dialing:
		return OutcomeConnect, host + " cannot be reached"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return OutcomeNetwork, host + " closed the connection without a whole reply"
	}
	return OutcomeNetwork, err.Error()
}

// isTimeout reports a timeout of any layer; net and context have one each.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

// seconds prints a timeout without the noise of nanoseconds.
func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }

// lookupText names the host and quotes the resolver, without the
// resolver's own address, which net.DNSError would add.
func lookupText(e *lookupError) string {
	var dns *net.DNSError
	reason := e.err.Error()
	switch {
	case errors.As(e.err, &dns) && dns.IsNotFound:
		reason = "no such host"
	case isTimeout(e.err):
		reason = "the name servers did not answer in time"
	case errors.As(e.err, &dns):
		reason = dns.Err
	}
	return fmt.Sprintf("the host name %s cannot be resolved: %s", e.host, reason)
}

// tlsText explains a failed handshake (spec 5.2.1). The order matters: an
// expired certificate is that first, whoever signed it.
func tlsText(host string, err error) string {
	if name, _, splitErr := net.SplitHostPort(host); splitErr == nil {
		host = name
	}
	var invalid x509.CertificateInvalidError
	var wrong x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		if now := time.Now(); invalid.Cert != nil && now.Before(invalid.Cert.NotBefore) {
			return fmt.Sprintf("the certificate of %s is not valid before %s", host, day(invalid.Cert.NotBefore))
		} else if invalid.Cert != nil {
			return fmt.Sprintf("the certificate of %s expired on %s", host, day(invalid.Cert.NotAfter))
		}
	case errors.As(err, &wrong):
		return fmt.Sprintf("the certificate is not for %s, it is for %s", host, certificateNames(wrong.Certificate))
	case errors.As(err, &unknown):
		leaf := unknown.Cert
		if errors.As(err, &verify) && len(verify.UnverifiedCertificates) > 0 {
			leaf = verify.UnverifiedCertificates[0]
		}
		if selfSigned(leaf) {
			return fmt.Sprintf("the certificate of %s is self-signed; use one that a well-known authority signed", host)
		}
		return fmt.Sprintf("the certificate of %s is signed by an unknown authority; use a well-known one and send its intermediates", host)
	case errors.As(err, &record):
		return host + " does not speak TLS on that port"
	}
	return fmt.Sprintf("the TLS handshake with %s failed: %s", host, err)
}

// day prints a moment of a certificate to the minute.
func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

// selfSigned reports whether a certificate vouches for itself. The signature is
// checked too: an authority may well share its name.
func selfSigned(c *x509.Certificate) bool {
	return c != nil && bytes.Equal(c.RawIssuer, c.RawSubject) &&
		c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

// certificateNames lists up to five names of a certificate.
func certificateNames(c *x509.Certificate) string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return "no name at all"
	case len(names) > 5:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:5], ", "), len(names)-5)
	}
	return strings.Join(names, ", ")
}
