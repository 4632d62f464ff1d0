package endpoint

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// Authority signs certificates of destinations: a root, and an intermediate, as well-known authorities have.
type Authority struct{ root, middle *tls.Certificate }

// Properties are the special properties of a certificate; the zero value is good.
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
func sign(by *tls.Certificate, template *x509.Certificate) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	parent, signing := template, crypto.PrivateKey(key)
	if by != nil {
		parent, signing = by.Leaf, by.PrivateKey
	}
	text, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signing)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key, Leaf: leaf}, nil
}

// PEM is the root as the service receives it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.root.Leaf.Raw})
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
	if c.SelfSigned {
		return sign(nil, t)
	}
	out, err := sign(a.middle, t)
	if err == nil {
		out.Certificate = append(out.Certificate, a.middle.Certificate...)
	}
	return out, err
}

// Shown is the certificate that a listener shows at the moment.
type Shown struct {
	atomic.Pointer[tls.Certificate]
}

// TLSConfig shows the current certificate to every client, whatever server name it sends.
func (s *Shown) TLSConfig(first *tls.Certificate) *tls.Config {
	s.Store(first)
	return &tls.Config{
		Certificates: []tls.Certificate{*first}, MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{*s.Load()}, MinVersion: tls.VersionTLS12}, nil
		},
	}
}
