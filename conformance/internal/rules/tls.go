package rules

import (
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/internal/quantity"
)

// tlsGroup judges the connection (spec 5.2.1).
func tlsGroup() group {
	g := group{claims: map[string]Claim{
		"the connection is https":                              connection((*Look).https),
		"the connection is TLS 1.2 or newer with a strong key": connection((*Look).strong),
	}, rules: map[string]*rule{}}
	for _, claim := range []string{"chains to a trusted root", "names the host", "is within its validity", "comes with its intermediates", "is valid for 14 more days"} {
		g.claims["the certificate "+claim] = connection(func(l *Look, f *Handshake) error { return l.certificate(claim, f) })
	}
	g.late(judgeTLS, "TLS-001", "TLS-002", "TLS-003", "TLS-004", "TLS-005", "TLS-006", "TLS-009")
	return g
}

// connection is the claim about a handshake.
func connection(claim func(l *Look, f *Handshake) error) Claim {
	return func(l *Look) error {
		f, err := l.facts()
		if err != nil {
			return err
		}
		return claim(l, f)
	}
}

// leastValidity is how long a certificate should stay valid.
const leastValidity = 14 * 24 * time.Hour

func (l *Look) facts() (*Handshake, error) {
	f := l.Handshake
	if f == nil {
		return nil, &Undecided{conformance.HarnessError, "", "no connection was made"}
	}
	if l.URL.Scheme == "https" && f.Err == nil && len(f.Chain) == 0 {
		return nil, inconclusive("", "the endpoint sent no certificate")
	}
	return f, nil
}

// seen adds a breach of the handshake; there is no HTTP exchange to show.
func (l *Look) seen(expected, actual string) error {
	l.Breaches = append(l.Breaches, Breach{Expected: expected, Actual: actual, Curl: `curl -sSv "$DESTKIT_URL" -d '{}'`})
	return ErrBroken
}

func (l *Look) https(f *Handshake) error {
	switch {
	case l.URL.Scheme != "https":
		return l.seen("an https URL", "the URL begins with "+l.URL.Scheme+"://")
	case f.Err != nil:
		return l.seen("a TLS handshake", exchange.InWords(f.Err, l.URL.Host))
	}
	return nil
}

func (l *Look) strong(f *Handshake) error {
	if f.Version != 0 && f.Version < tls.VersionTLS12 {
		return l.seen("TLS 1.2 or newer", tls.VersionName(f.Version))
	}
	if weak := f.weakKey(); weak != "" {
		return l.seen("RSA keys of 2048 bits or more, or elliptic curves", weak)
	}
	return nil
}

func (l *Look) certificate(claim string, f *Handshake) error {
	leaf := f.Chain[0]
	switch claim {
	case "chains to a trusted root":
		if f.leafOnly() {
			return nil // TLS-005 says that the chain is not whole
		}
		if err := f.Verify("", f.inValidity()); err != nil {
			return l.seen("a chain that ends at "+l.rootsWords(), exchange.InWords(err, l.URL.Host))
		}
	case "names the host":
		if err := leaf.VerifyHostname(f.Name); err != nil {
			return l.seen("a certificate for "+f.Name, strings.TrimPrefix(err.Error(), "x509: "))
		}
	case "is within its validity":
		for _, c := range f.Chain {
			if f.Now.Before(c.NotBefore) || f.Now.After(c.NotAfter) {
				return l.seen("a certificate that is valid now", fmt.Sprintf("%q is valid from %s to %s", c.Subject.CommonName,
					c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339)))
			}
		}
	case "comes with its intermediates":
		if f.leafOnly() {
			return l.seen("the leaf and every certificate between it and the root",
				fmt.Sprintf("the leaf alone, signed by %q, which is no trusted root", leaf.Issuer.CommonName))
		}
	case "is valid for 14 more days":
		for _, c := range f.Chain {
			if c.NotAfter.Sub(f.Now) < leastValidity {
				return l.seen("at least 14 days of validity left", fmt.Sprintf("%q ends in %s, on %s", c.Subject.CommonName,
					c.NotAfter.Sub(f.Now).Round(time.Hour), c.NotAfter.UTC().Format(time.DateOnly)))
			}
		}
	}
	return nil
}

func (l *Look) rootsWords() string {
	if l.Roots != nil {
		return "a root of --tls-roots"
	}
	return "a public root"
}

// Handshake is what one handshake showed, each claim judged apart, so that an
// expired certificate is not also reported as an untrusted one.
type Handshake struct {
	Err     error // no handshake at all
	Version uint16
	Chain   []*x509.Certificate
	Name    string
	Roots   *x509.CertPool
	Now     time.Time
}

// Verify checks the chain for a name ("" for any) at a time.
func (f *Handshake) Verify(name string, at time.Time) error {
	if len(f.Chain) == 0 {
		return fmt.Errorf("no certificate was sent")
	}
	o := x509.VerifyOptions{Roots: f.Roots, DNSName: name, CurrentTime: at, Intermediates: x509.NewCertPool()}
	for _, c := range f.Chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := f.Chain[0].Verify(o)
	return err
}

// inValidity is a moment at which every certificate sent is valid, so that
// trust can be judged apart from time.
func (f *Handshake) inValidity() time.Time {
	at := f.Chain[0].NotBefore
	for _, c := range f.Chain {
		if c.NotBefore.After(at) {
			at = c.NotBefore
		}
	}
	return at.Add(time.Second)
}

// selfSigned tells a leaf that signed itself.
func (f *Handshake) selfSigned() bool {
	leaf := f.Chain[0]
	return bytes.Equal(leaf.RawIssuer, leaf.RawSubject) && leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) == nil
}

// leafOnly reports whether one certificate came, whose issuer is neither itself nor
// a trusted root: the intermediate is missing.
func (f *Handshake) leafOnly() bool {
	return len(f.Chain) == 1 && !f.selfSigned() && f.Verify("", f.inValidity()) != nil
}

// weakKey describes an RSA key below 2048 bits anywhere in the chain.
func (f *Handshake) weakKey() string {
	for _, c := range f.Chain {
		if k, ok := c.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() < 2048 {
			return fmt.Sprintf("%q has an RSA key of %s", c.Subject.CommonName, quantity.Count(k.N.BitLen(), "bit"))
		}
	}
	return ""
}

// judgeTLS judges the latest handshake.
func judgeTLS(t *Traffic, j *judge) []Verdict {
	f := t.handshake.Load()
	switch {
	case !t.JudgeTLS:
		return nil
	case t.URL.Scheme != "https" && j.check.ID == "TLS-001":
		f = &Handshake{}
	case f == nil:
		return nil
	}
	return []Verdict{j.puts(&Look{Terms: t.Terms, Handshake: f}, nil)}
}
