package destination

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
)

// leastValidity is how long a certificate should stay valid.
const leastValidity = 14 * 24 * time.Hour

// tlsSteps judge the connection (spec 5.2.1).
func tlsSteps() []definition {
	return []definition{
		step(`^the service connects$`, func(sc *scenario) any { return sc.connects }),
		step(`^the connection is (https|TLS 1.2 or newer with a strong key)$`, func(sc *scenario) any { return sc.connectionIs }),
		step(`^the certificate (chains to a trusted root|names the host|is within its validity|comes with its intermediates|is valid for 14 more days)$`,
			func(sc *scenario) any { return sc.certificate }),
	}
}

func (sc *scenario) connects() error {
	if sc.url.Scheme != "https" {
		sc.handshaken = &tlsFacts{}
		return nil
	}
	sc.handshaken = sc.handshake(sc.ctx)
	return nil
}

func (sc *scenario) facts() (*tlsFacts, error) {
	f := sc.handshaken
	if f == nil {
		return nil, harness("no connection was made")
	}
	if sc.url.Scheme == "https" && f.err == nil && len(f.chain) == 0 {
		return nil, inconclusive("", "the endpoint sent no certificate")
	}
	return f, nil
}

// seen reports a finding of the handshake; there is no HTTP exchange to show.
func (sc *scenario) seen(expected, actual string) error {
	sc.broken(expected, actual)
	if found := sc.All(); len(found) > 0 {
		found[len(found)-1].Curl = `curl -sSv "$DESTKIT_URL" -d '{}'`
	}
	return sc.held()
}

func (sc *scenario) connectionIs(what string) error {
	f, err := sc.facts()
	if err != nil {
		return err
	}
	if what == "https" {
		switch {
		case sc.url.Scheme != "https":
			return sc.seen("an https URL", "the URL begins with "+sc.url.Scheme+"://")
		case f.err != nil:
			return sc.seen("a TLS handshake", exchange.InWords(f.err, sc.url.Host))
		}
		return nil
	}
	if f.version != 0 && f.version < tls.VersionTLS12 {
		return sc.seen("TLS 1.2 or newer", tls.VersionName(f.version))
	}
	if weak := f.weakKey(); weak != "" {
		return sc.seen("RSA keys of 2048 bits or more, or elliptic curves", weak)
	}
	return nil
}

func (sc *scenario) certificate(claim string) error {
	f, err := sc.facts()
	if err != nil {
		return err
	}
	leaf := f.chain[0]
	switch claim {
	case "chains to a trusted root":
		if f.leafOnly() {
			return nil // TLS-005 says that the chain is not whole
		}
		if err := f.verify("", f.inValidity()); err != nil {
			return sc.seen("a chain that ends at "+sc.rootsWords(), exchange.InWords(err, sc.url.Host))
		}
	case "names the host":
		if err := leaf.VerifyHostname(f.name); err != nil {
			return sc.seen("a certificate for "+f.name, strings.TrimPrefix(err.Error(), "x509: "))
		}
	case "is within its validity":
		for _, c := range f.chain {
			if f.now.Before(c.NotBefore) || f.now.After(c.NotAfter) {
				return sc.seen("a certificate that is valid now", fmt.Sprintf("%q is valid from %s to %s", c.Subject.CommonName,
					c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339)))
			}
		}
	case "comes with its intermediates":
		if f.leafOnly() {
			return sc.seen("the leaf and every certificate between it and the root",
				fmt.Sprintf("the leaf alone, signed by %q, which is no trusted root", leaf.Issuer.CommonName))
		}
	case "is valid for 14 more days":
		for _, c := range f.chain {
			if c.NotAfter.Sub(f.now) < leastValidity {
				return sc.seen("at least 14 days of validity left", fmt.Sprintf("%q ends in %s, on %s", c.Subject.CommonName,
					c.NotAfter.Sub(f.now).Round(time.Hour), c.NotAfter.UTC().Format(time.DateOnly)))
			}
		}
	}
	return nil
}

func (sc *scenario) rootsWords() string {
	if sc.private {
		return "a root of --tls-roots"
	}
	return "a public root"
}
