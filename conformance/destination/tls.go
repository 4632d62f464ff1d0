package destination

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"time"

	"github.com/destkit/destkit/internal/quantity"
)

// tlsJudged reports whether the TLS checks run (spec 5.2.1). In development they
// are NOT_RUN, and calls do not verify the chain.
func (s *session) tlsJudged() bool { return !s.dev }

// tlsFacts is what one handshake showed, each claim judged apart, so that an
// expired certificate is not also reported as an untrusted one.
type tlsFacts struct {
	err     error // no handshake at all
	version uint16
	chain   []*x509.Certificate
	name    string
	roots   *x509.CertPool
	now     time.Time
}

// handshake looks at the certificate once per attempt of a run.
func (s *session) handshake(ctx context.Context) *tlsFacts {
	f := &tlsFacts{name: s.url.Hostname(), roots: s.opts.Roots, now: time.Now()}
	cfg := &tls.Config{MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}
	if net.ParseIP(f.name) == nil {
		cfg.ServerName = f.name
	}
	state, err := s.client.Handshake(ctx, cfg, "", "")
	if err != nil {
		f.err = err
		return f
	}
	f.version, f.chain = state.Version, state.PeerCertificates
	return f
}

// trusted reports whether a token may travel over this line.
func (s *session) trusted(ctx context.Context) bool {
	f := s.handshake(ctx)
	if f.err != nil {
		// Nothing answers: discovery reports that.
		return true
	}
	return f.verify(f.name, f.now) == nil
}

// verify checks the chain for a name ("" for any) at a time.
func (f *tlsFacts) verify(name string, at time.Time) error {
	if len(f.chain) == 0 {
		return fmt.Errorf("no certificate was sent")
	}
	o := x509.VerifyOptions{Roots: f.roots, DNSName: name, CurrentTime: at, Intermediates: x509.NewCertPool()}
	for _, c := range f.chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := f.chain[0].Verify(o)
	return err
}

// inValidity is a moment at which every certificate sent is valid, so that
// trust can be judged apart from time.
func (f *tlsFacts) inValidity() time.Time {
	at := f.chain[0].NotBefore
	for _, c := range f.chain {
		if c.NotBefore.After(at) {
			at = c.NotBefore
		}
	}
	return at.Add(time.Second)
}

// selfSigned tells a leaf that signed itself.
func (f *tlsFacts) selfSigned() bool {
	leaf := f.chain[0]
	return bytes.Equal(leaf.RawIssuer, leaf.RawSubject) && leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) == nil
}

// leafOnly reports whether one certificate came, whose issuer is neither itself nor
// a trusted root: the intermediate is missing.
func (f *tlsFacts) leafOnly() bool {
	return len(f.chain) == 1 && !f.selfSigned() && f.verify("", f.inValidity()) != nil
}

// weakKey describes an RSA key below 2048 bits anywhere in the chain.
func (f *tlsFacts) weakKey() string {
	for _, c := range f.chain {
		if k, ok := c.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() < 2048 {
			return fmt.Sprintf("%q has an RSA key of %s", c.Subject.CommonName, quantity.Count(k.N.BitLen(), "bit"))
		}
	}
	return ""
}
