// Package unreached explains in plain words why a call got no response over the network:
// the problem, its address, and advice. It knows the errors of package net and
// crypto/tls; other errors are left to the caller.
package unreached

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// A Cause is why nothing came back: the event, its address, and advice. Late means that
// a connection was there and the time of the call ran out: a caller who knows that time
// can name it.
type Cause struct {
	What, Fix string
	Late      bool
}

// Of words err, which ended a call to a host ("127.0.0.1:8080", as in its URL); name is that
// of the target, such as "endpoint". It is the zero Cause for an error that it does not know.
func Of(err error, name, host string) Cause {
	var (
		dns      *net.DNSError
		op       *net.OpError
		record   tls.RecordHeaderError
		dialling = errors.As(err, &op) && op.Op == "dial"
	)
	if dialling && op.Addr != nil {
		host = op.Addr.String()
	}
	switch {
	case err == nil:
		return Cause{}
	case errors.Is(err, syscall.ECONNREFUSED):
		return Cause{What: "nothing listens at " + host, Fix: "start the " + name + ", or correct the host and port of the URL"}
	case errors.As(err, &dns) && dns.IsNotFound:
		return Cause{What: "the host name " + dns.Name + " does not resolve", Fix: "correct the host name in the URL"}
	case errors.As(err, &dns):
		return Cause{What: "the host name " + dns.Name + " could not be resolved: the name server gave no answer", Fix: "look at the network of this machine, then try again"}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Cause{What: "no route leads to " + host, Fix: "look at the network of this machine, and at the address in the URL"}
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return Cause{What: "no file descriptor is left on this machine", Fix: "raise 'ulimit -n', or use fewer connections"}
	case dialling && timedOut(err):
		return Cause{What: host + " did not accept a connection in time", Fix: "look whether a firewall is in between, and at the address in the URL"}
	case errors.As(err, &record) && plainHTTP(record.RecordHeader),
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"): // package net/http has no value for it
		return Cause{What: "plain http is spoken on this port, and the URL begins with https://", Fix: "begin the URL with http://"}
	case errors.As(err, &record):
		return Cause{What: "no TLS is spoken on this port, and the URL begins with https://", Fix: "look at the port"}
	}
	if cause := ofCertificate(err, host); cause != (Cause{}) {
		return cause
	}
	switch {
	case op != nil && op.Op == "remote error" && strings.HasPrefix(op.Err.Error(), tlsPrefix):
		return Cause{What: "the server refused the TLS handshake: " + strings.TrimPrefix(op.Err.Error(), tlsPrefix), Fix: "look which versions of TLS, ciphers and client certificates the server accepts"}
	case strings.HasPrefix(root(err).Error(), tlsPrefix):
		return Cause{What: "the TLS handshake failed: " + strings.TrimPrefix(root(err).Error(), tlsPrefix), Fix: "look which versions of TLS and which certificate the server has"}
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Cause{What: "the server closed the connection without responding", Fix: "look into its log; is this the port of an HTTP server, and http or https as it should be?"}
	case timedOut(err):
		return Cause{What: host + " gave no response in time", Fix: "look whether the " + name + " hangs or is busy", Late: true}
	}
	return Cause{}
}

// plainHTTP reports whether a server that was greeted by TLS responds as one of plain
// HTTP: with a status line, or with a page alone, as one of HTTP/0.9 does.
func plainHTTP(head [5]byte) bool { return string(head[:]) == "HTTP/" || head[0] == '<' }

// ofCertificate words why the certificate of a host is not trusted; the zero Cause for an
// error of another kind.
func ofCertificate(err error, host string) Cause {
	var (
		unknown  x509.UnknownAuthorityError
		names    x509.HostnameError
		invalid  x509.CertificateInvalidError
		insecure x509.InsecureAlgorithmError
		roots    x509.SystemRootsError
	)
	certificate := "the certificate of " + host
	switch {
	case errors.As(err, &unknown):
		return Cause{What: "the certificate of " + host + " is signed by an unknown authority", Fix: "trust your own authority with --tls-roots FILE"}
	case errors.As(err, &names) && names.Certificate != nil && len(names.Certificate.DNSNames)+len(names.Certificate.IPAddresses) == 0 && names.Certificate.Subject.CommonName != "":
		return Cause{What: certificate + " has its name in the common name alone, where no client looks any more", Fix: "make a certificate with the host name as a subject alternative name"}
	case errors.As(err, &names):
		return Cause{What: "the certificate is not made for " + names.Host, Fix: "use a host name of the certificate in the URL, or a certificate for this one"}
	case errors.As(err, &invalid):
		return ofInvalid(invalid, certificate)
	case errors.As(err, &insecure):
		return Cause{What: certificate + " is signed with " + x509.SignatureAlgorithm(insecure).String() + ", which is broken", Fix: "have it signed with SHA-256 or better"}
	case errors.As(err, &roots):
		return Cause{What: "this machine has no certificates of authorities", Fix: "install them (Debian: ca-certificates), or trust your own authority with --tls-roots FILE"}
	}
	return Cause{}
}

func ofInvalid(err x509.CertificateInvalidError, certificate string) Cause {
	switch err.Reason {
	case x509.Expired:
		return Cause{What: certificate + " has expired or is not yet valid", Fix: "renew it, and look at the clock of this machine"}
	case x509.IncompatibleUsage:
		return Cause{What: certificate + " is not made for servers", Fix: "make one whose extended key usage has serverAuth"}
	case x509.NotAuthorizedToSign:
		return Cause{What: certificate + " is signed by one that may not sign others", Fix: "sign it with the certificate of an authority (CA:TRUE)"}
	case x509.TooManyIntermediates:
		return Cause{What: certificate + " has more certificates above it than one of them permits", Fix: "look at the path length of the authorities above it"}
	case x509.CANotAuthorizedForThisName, x509.CANotAuthorizedForExtKeyUsage, x509.UnconstrainedName, x509.NameConstraintsWithoutSANs:
		return Cause{What: certificate + " is signed by an authority that may not sign this name or use", Fix: "look at the constraints of the authorities above it"}
	}
	return Cause{What: certificate + " is not valid: " + strings.TrimPrefix(err.Error(), "x509: "), Fix: "look at the certificate and at those above it"}
}

// tlsPrefix begins the errors of package crypto/tls that have no error value.
const tlsPrefix = "tls: "

// root is the innermost error.
func root(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

func timedOut(err error) bool {
	var timeout net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}
