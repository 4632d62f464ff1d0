package endpoint

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// Authority signs certificates of destinations: a root, and an intermediate that
// signs for it, as well-known authorities have.
type Authority struct {
	root, middle *signer
}

// signer is a certificate with its key.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Properties are what is special about a certificate; the zero value is good.
type Properties struct {
	SelfSigned bool // by no other authority
	Expired    bool
}

// NewAuthority makes an authority with new keys.
func NewAuthority() (*Authority, error) {
	root, err := sign(nil, authorityTemplate("zz-conf root"))
	if err != nil {
		return nil, err
	}
	middle, err := sign(root, authorityTemplate("zz-conf intermediate"))
	if err != nil {
		return nil, err
	}
	return &Authority{root, middle}, nil
}

func authorityTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-30 * day), NotAfter: time.Now().Add(30 * day),
	}
}

const day = 24 * time.Hour

// sign makes a certificate; by nil it signs itself.
func sign(by *signer, template *x509.Certificate) (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	parent, signing := template, key
	if by != nil {
		parent, signing = by.cert, by.key
	}
	text, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signing)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &signer{cert, key}, nil
}

// PEM is the root as the service receives it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.cert.Raw})
}

// Issue signs a certificate for a host, a name or an address.
func (a *Authority) Issue(host string, c Properties) (*tls.Certificate, error) {
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "zz-conf destination"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore:   time.Now().Add(-day), NotAfter: time.Now().Add(day),
	}
	if c.Expired {
		t.NotBefore, t.NotAfter = time.Now().Add(-2*day), time.Now().Add(-time.Hour)
	}
	if ip := net.ParseIP(host); ip != nil {
		t.IPAddresses = []net.IP{ip}
	} else {
		t.DNSNames = []string{host}
	}
	by := a.middle
	if c.SelfSigned {
		by = nil
	}
	leaf, err := sign(by, t)
	if err != nil {
		return nil, err
	}
	out := &tls.Certificate{Certificate: [][]byte{leaf.cert.Raw}, PrivateKey: leaf.key}
	if by != nil {
		out.Certificate = append(out.Certificate, by.cert.Raw)
	}
	return out, nil
}

// Shown is the certificate that a listener shows at the moment.
type Shown struct {
	mu      sync.Mutex
	current *tls.Certificate
}

// Show changes the certificate.
func (w *Shown) Show(c *tls.Certificate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current = c
}

// TLSConfig shows the current certificate when a client comes, whoever it asks for.
func (w *Shown) TLSConfig(first *tls.Certificate) *tls.Config {
	w.Show(first)
	return &tls.Config{
		Certificates: []tls.Certificate{*first}, MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return &tls.Config{Certificates: []tls.Certificate{*w.current}, MinVersion: tls.VersionTLS12}, nil
		},
	}
}
