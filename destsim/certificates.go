package destsim

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"time"
)

const day = 24 * time.Hour

// Certificates is a separate certificate authority, made in memory: a root, an
// intermediate that signs the server, and from it a good certificate or one of
// the bad ones of the TLS checks (spec 5.2.1). The intermediate is there so
// that a server can forget to send it.
type Certificates struct {
	clock        func() time.Time
	hosts        []string
	root         authority
	intermediate authority
}

// authority is a certificate that signs others.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// flaw is the fault of one certificate; the zero value is a good one.
type flaw struct {
	selfSigned bool
	leafOnly   bool
	hosts      []string // instead of the right ones
	from, to   time.Duration
	rsaBits    int
	maxVersion uint16
}

// vhost is the only name that the server of TLS-003.2 knows.
const vhost = "default-vhost.invalid"

// flaws maps a violation to what differs from the good certificate.
var flaws = map[string]flaw{
	"":          {},
	"TLS-002":   {selfSigned: true},
	"TLS-003":   {hosts: []string{"wrong-host.invalid"}},
	"TLS-003.2": {hosts: []string{vhost}},
	"TLS-004":   {from: -90 * day, to: -day},
	"TLS-004.2": {from: day, to: 90 * day},
	"TLS-005":   {leafOnly: true},
	"TLS-006":   {maxVersion: tls.VersionTLS10},
	"TLS-006.2": {rsaBits: 1024},
	"TLS-009":   {to: 3 * day},
}

// NewCertificates makes the authority and remembers for which hosts, names or
// addresses, the server's certificate is good; localhost, 127.0.0.1 and ::1
// are always among them. clock may be nil for the system clock.
func NewCertificates(clock func() time.Time, hosts ...string) (*Certificates, error) {
	if clock == nil {
		clock = time.Now
	}
	c := &Certificates{clock: clock, hosts: []string{"localhost", "127.0.0.1", "::1"}}
	for _, host := range hosts {
		if host != "" && !slices.Contains(c.hosts, host) {
			c.hosts = append(c.hosts, host)
		}
	}
	signing := func(name string, days time.Duration) *x509.Certificate {
		return &x509.Certificate{
			Subject:   pkix.Name{CommonName: name},
			NotBefore: clock().Add(-120 * day), NotAfter: clock().Add(days * day),
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		}
	}
	root, intermediate := signing("destsim test root", 3650), signing("destsim test intermediate", 1825)
	intermediate.MaxPathLenZero = true
	var err error
	if c.root, err = newAuthority(root, nil); err != nil {
		return nil, fmt.Errorf("make test root: %w", err)
	}
	if c.intermediate, err = newAuthority(intermediate, &c.root); err != nil {
		return nil, fmt.Errorf("make test intermediate: %w", err)
	}
	return c, nil
}

// CAPEM is the root in PEM, which a client must trust.
func (c *Certificates) CAPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.root.certificate.Raw})
}

// TLSConfig is the server side of https. violation is "" for a good server,
// or TLS-002 (not signed by the authority), TLS-003 (another name), TLS-003.2
// (the certificate of a default virtual host, whatever name the client
// requests), TLS-004 (expired), TLS-004.2 (not yet valid), TLS-005 (without
// the intermediate), TLS-006 (TLS 1.0 only), TLS-006.2 (RSA key of 1024 bits)
// or TLS-009 (three days left); anything else is an error. Only HTTP/1.1 is
// offered, which is what the protocol is served over.
func (c *Certificates) TLSConfig(violation string) (*tls.Config, error) {
	if violation == "TLS-001" || violation == "TLS-007" {
		violation = "" // nothing is wrong with the certificate
	}
	f, known := flaws[violation]
	if !known {
		ids := slices.Sorted(maps.Keys(flaws))[1:] // without the good one
		return nil, fmt.Errorf("make test certificate: no bad certificate %q%s", violation, didYouMean(violation, ids))
	}
	chain, err := c.issue(f)
	if err != nil {
		return nil, fmt.Errorf("make test certificate: %w", err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{chain}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
	}
	if f.maxVersion != 0 {
		// An explicit minimum is not subject to GODEBUG tls10server.
		config.MinVersion, config.MaxVersion = f.maxVersion, f.maxVersion
	}
	return config, nil
}

// issue makes the server's key and certificate and the chain that it sends.
func (c *Certificates) issue(f flaw) (tls.Certificate, error) {
	key, err := newKey(f.rsaBits)
	if err != nil {
		return tls.Certificate{}, err
	}
	from, to, hosts := cmp.Or(f.from, -time.Hour), cmp.Or(f.to, 90*day), f.hosts
	if hosts == nil {
		hosts = c.hosts
	}
	now := c.clock()
	leaf := &x509.Certificate{
		Subject:   pkix.Name{CommonName: hosts[0]},
		NotBefore: now.Add(from), NotAfter: now.Add(to), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, ip)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	signer := c.intermediate
	if f.selfSigned {
		signer = authority{leaf, key}
	}
	der, err := sign(leaf, key, signer)
	if err != nil {
		return tls.Certificate{}, err
	}
	chain := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	if !f.selfSigned && !f.leafOnly {
		chain.Certificate = append(chain.Certificate, c.intermediate.certificate.Raw)
	}
	return chain, nil
}

// newAuthority signs template by parent, or by itself when that is nil.
func newAuthority(template *x509.Certificate, parent *authority) (authority, error) {
	key, err := newKey(0)
	if err != nil {
		return authority{}, err
	}
	if parent == nil {
		parent = &authority{template, key}
	}
	der, err := sign(template, key, *parent)
	if err != nil {
		return authority{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	return authority{certificate, key}, err
}

func sign(template *x509.Certificate, key crypto.Signer, parent authority) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	return x509.CreateCertificate(rand.Reader, template, parent.certificate, key.Public(), parent.key)
}

// newKey makes an ECDSA key, which is fast, or an RSA key of so many bits.
func newKey(rsaBits int) (crypto.Signer, error) {
	if rsaBits > 0 {
		return rsa.GenerateKey(rand.Reader, rsaBits)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
