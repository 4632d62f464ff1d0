package destination

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// authority makes the certificates of one talk: a trusted root, and an
// intermediate that is not sent unless the talk says so.
type authority struct {
	t            *testing.T
	roots        *x509.CertPool
	intermediate *x509.Certificate
	key          crypto.Signer
	serial       int64
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, roots: x509.NewCertPool()}
	rootKey := ecKey(t)
	root := a.sign(caTemplate("a trusted root"), nil, rootKey, rootKey)
	a.roots.AddCert(root)
	a.key = ecKey(t)
	a.intermediate = a.sign(caTemplate("an intermediate"), root, a.key, rootKey)
	return a
}

func ecKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return key
}

func caTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: time.Now().AddDate(5, 0, 0),
	}
}

// sign makes a certificate; without an issuer it signs itself.
func (a *authority) sign(template, issuer *x509.Certificate, key, signer crypto.Signer) *x509.Certificate {
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	if issuer == nil {
		issuer = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	require.NoError(a.t, err)
	c, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return c
}

// leaf is valid for 60 days and names the host, but for what a talk changes.
func leafTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: "destination.example"}, DNSNames: []string{"destination.example"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore:   time.Now().AddDate(0, 0, -1), NotAfter: time.Now().AddDate(0, 0, 60),
	}
}

// chain is a leaf, changed by the talk, with its intermediate over TLS 1.3.
func chain(change func(leaf *x509.Certificate)) func(*authority) ([]*x509.Certificate, uint16) {
	return func(a *authority) ([]*x509.Certificate, uint16) {
		leaf := leafTemplate()
		if change != nil {
			change(leaf)
		}
		return []*x509.Certificate{a.sign(leaf, a.intermediate, ecKey(a.t), a.key), a.intermediate}, tls.VersionTLS13
	}
}

func selfSigned(a *authority) ([]*x509.Certificate, uint16) {
	key := ecKey(a.t)
	return []*x509.Certificate{a.sign(leafTemplate(), nil, key, key)}, tls.VersionTLS13
}

// otherRoot is a whole chain below a root that is not trusted.
func otherRoot(a *authority) ([]*x509.Certificate, uint16) {
	key := ecKey(a.t)
	root := a.sign(caTemplate("a private root"), nil, key, key)
	return []*x509.Certificate{a.sign(leafTemplate(), root, ecKey(a.t), key), root}, tls.VersionTLS13
}

func leafAlone(a *authority) ([]*x509.Certificate, uint16) {
	sound, version := chain(nil)(a)
	return sound[:1], version
}

func oldVersion(a *authority) ([]*x509.Certificate, uint16) {
	sound, _ := chain(nil)(a)
	return sound, tls.VersionTLS10
}

// shortKey is a leaf with an RSA key of 1024 bits.
func shortKey(a *authority) ([]*x509.Certificate, uint16) {
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(a.t, err)
	return []*x509.Certificate{a.sign(leafTemplate(), a.intermediate, key, a.key), a.intermediate}, tls.VersionTLS12
}

const secureURL = "https://destination.example/rpc?key=" + scriptSecret

// sound is a conversation over a certificate that is in order.
var sound = []talk{{url: secureURL, shows: chain(nil)}}

// tlsExchanges: the handshake, each claim apart from the others.
var tlsExchanges = map[string]exchange{
	"TLS-001": {good: sound, bad: []talk{{url: scriptURL, finds: "the URL begins with http://"}}},
	"TLS-002": {
		good: []talk{sound[0], {url: secureURL, shows: leafAlone}, {url: secureURL, shows: chain(func(c *x509.Certificate) {
			c.DNSNames, c.NotAfter = []string{"other.invalid"}, time.Now().AddDate(0, 0, -1).Add(time.Hour)
			c.NotBefore = c.NotAfter.AddDate(0, 0, -30)
		})}},
		bad: []talk{
			{url: secureURL, shows: selfSigned, finds: "a chain that ends at a root"},
			{url: secureURL, shows: otherRoot, finds: "a chain that ends at a root"},
		},
	},
	"TLS-003": {
		good: []talk{sound[0], {url: secureURL, shows: chain(func(c *x509.Certificate) { c.DNSNames = []string{"*.example"} })}},
		bad: []talk{{
			url: secureURL, finds: "a certificate for destination.example",
			shows: chain(func(c *x509.Certificate) { c.DNSNames = []string{"other.invalid"} }),
		}},
	},
	"TLS-004": {good: sound, bad: []talk{
		{
			url: secureURL, finds: `"destination.example" is valid from`,
			shows: chain(func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Now().AddDate(0, 0, -30), time.Now().AddDate(0, 0, -1)
			}),
		},
		{
			url: secureURL, finds: `"destination.example" is valid from`,
			shows: chain(func(c *x509.Certificate) { c.NotBefore = time.Now().AddDate(0, 0, 1) }),
		},
	}},
	"TLS-005": {
		good: []talk{sound[0], {url: secureURL, shows: selfSigned}}, // TLS-002 judges that
		bad:  []talk{{url: secureURL, shows: leafAlone, finds: `the leaf alone, signed by "an intermediate"`}},
	},
	"TLS-006": {good: sound, bad: []talk{
		{url: secureURL, shows: oldVersion, finds: "TLS 1.0"},
		{url: secureURL, shows: shortKey, finds: "an RSA key of 1024 bits"},
	}},
	"TLS-007": {
		good: []talk{{}, {says: says{"plain": page(301, "").header("Location", secureURL)}}},
		bad: []talk{
			{says: says{"plain": gives(`{"success":true}`)}, finds: "no result"},
			{says: says{"plain": failure(-32001, "Unauthorized")}, finds: "no protocol over plain http"},
			{says: says{"plain": broken(wire.KindNone).with(func(r *wire.Reply) {
				r.Status, r.Err, r.Body = 200, nil, []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}`)
			})}, finds: "no protocol over plain http"},
		},
	},
	"TLS-009": {good: sound, bad: []talk{{
		url: secureURL, finds: `"destination.example" ends in 72h0m0s`,
		shows: chain(func(c *x509.Certificate) { c.NotAfter = time.Now().AddDate(0, 0, 3) }),
	}}},
}
