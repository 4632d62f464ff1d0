package violation

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"path"
	"sync"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/testdata/violation/exchange"
)

// trustViolations break the rules of CERT: certificates and tokens of destinations (spec 5.2).
func trustViolations() []violation {
	return []violation{
		{Violation{ID: "CERT-001", Changes: "a URL without TLS is accepted for any host"}, func(s *Service) seams {
			*s.AllowPlainHTTP = true
			return seams{}
		}},
		breaks("CERT-002", "no authority is known", seams{tls: func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }}),
		verifies("CERT-003", "a self-signed certificate is accepted", func(chain []*x509.Certificate, o x509.VerifyOptions) error {
			if chain[0].CheckSignature(chain[0].SignatureAlgorithm, chain[0].RawTBSCertificate, chain[0].Signature) == nil {
				return nil
			}
			return verified(chain, o)
		}),
		verifies("CERT-004", "the name of a certificate is not compared", func(chain []*x509.Certificate, o x509.VerifyOptions) error {
			o.DNSName = ""
			return verified(chain, o)
		}),
		{Violation{ID: "CERT-009", Changes: "runs have a client of their own, which does not verify certificates"}, func(*Service) seams {
			return seams{carry: unverifiedRuns()}
		}},
		carriesOut("CERT-010", "get_sync_speed is sent without the Auth Token",
			editsCalls(rpc.MethodGetSyncSpeed, func(o *exchange.Call) { o.HTTP.Header.Del("Authorization") }),
			Also{"CERT-011", "neither is the new token there"}),
		{Violation{ID: "CERT-011", Changes: "batches have the Auth Token of the first one, also when it has changed"}, func(*Service) seams {
			var known sync.Map
			return seams{carry: editsCalls(rpc.MethodSyncBatch, func(o *exchange.Call) {
				first, _ := known.LoadOrStore(o.HTTP.URL.String(), o.HTTP.Header.Get("Authorization"))
				if token := first.(string); token != "" {
					o.HTTP.Header.Set("Authorization", token)
				}
			})}
		}},
		carriesOut("CERT-012", "without an Auth Token Authorization is sent with an empty one", everyCall(func(o *exchange.Call) {
			if o.HTTP.Header.Get("Authorization") == "" {
				o.HTTP.Header.Set("Authorization", "Bearer")
			}
		})),
		carriesOut("CERT-013", "the query of the URL is sorted", everyCall(func(o *exchange.Call) { o.HTTP.URL.RawQuery = o.HTTP.URL.Query().Encode() })),
		carriesOut("CERT-013.2", "escapes in the path of the URL are decoded", everyCall(func(o *exchange.Call) { o.HTTP.URL.RawPath = "" })),
		carriesOut("CERT-013.3", "the path of the URL is cleaned", everyCall(func(o *exchange.Call) {
			o.HTTP.URL.Path, o.HTTP.URL.RawPath = path.Clean(o.HTTP.URL.Path), ""
		})),
	}
}

// everyCall changes the calls of all methods.
func everyCall(change func(*exchange.Call)) exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		change(o)
		return next(o)
	}
}

// verifies is a violation that looks at the chain of a destination in its own way.
func verifies(id, changes string, look func(chain []*x509.Certificate, o x509.VerifyOptions) error, also ...Also) violation {
	v := breaks(id, changes, seams{tls: func(c *tls.Config) { verifyBy(c, look) }})
	v.Also = also
	return v
}

// verifyBy puts a look at the chain in the place of the ordinary one, with the
// options that the latter has.
func verifyBy(c *tls.Config, look func(chain []*x509.Certificate, o x509.VerifyOptions) error) {
	o := x509.VerifyOptions{Roots: c.RootCAs, DNSName: c.ServerName}
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(state tls.ConnectionState) error { return look(state.PeerCertificates, o) }
}

// verified is what a handshake does with a chain.
func verified(chain []*x509.Certificate, o x509.VerifyOptions) error {
	o.Intermediates = x509.NewCertPool()
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(o)
	return err
}

// unverifiedRuns makes the calls of runs past the way of all others.
func unverifiedRuns() exchange.Carry {
	return func(o *exchange.Call, next exchange.Next) (*http.Response, error) {
		if o.HTTP.URL.Scheme != "https" || o.Method != rpc.MethodGetSyncSpeed && o.Method != rpc.MethodSyncBatch {
			return next(o)
		}
		r := o.HTTP.Clone(o.Context)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(o.Body)), int64(len(o.Body))
		own := &http.Transport{
			DialContext:     o.Dial, // which addresses may be called is no rule to break
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, DisableCompression: true,
		}
		return own.RoundTrip(r)
	}
}
