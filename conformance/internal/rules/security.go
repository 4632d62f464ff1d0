package rules

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// authGroup judges who may call, and what a reply must not hold (spec 5.2).
func authGroup(g ruleset) map[string]Claim {
	const refuses, properly = "every reply refuses the caller", "every reply refuses the caller by an error or a status of 401 or 403"
	g.onTraffic(func(t *Traffic, c *Call) bool {
		return c.auth == "" && t.authorized != "" && c.form == goodForm && c.known() && c.Ended() && !c.Passing()
	}, "AUTH-002", "AUTH-006")
	g["AUTH-002"].claims, g["AUTH-006"].claims = []string{refuses}, []string{properly}
	g["AUTH-007"] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			secret := t.secretOf(c)
			if secret == "" && t.Secret == "" || !c.OK() {
				return false
			}
			// Looking for a secret in every encoding of a large body takes long.
			return c.IsError() || c.Doc() == nil || len(c.Body) <= mostSearched || c.number <= 64 ||
				secret != "" && strings.Contains(string(c.Body), secret)
		},
		with: func(t *Traffic, c *Call, l *Look) { l.Token = t.secretOf(c) },
	}
	g.late(refusedMethods, "AUTH-001")
	g["AUTH-001"].claims = []string{} // the claim calls as a stranger too
	return map[string]Claim{
		refuses: each(expects("a refusal: an error, or status 401 or 403", refused)),
		// A result of {"success":false} is no refusal for a method whose result has no such key
		// (spec 7.2.1); test_connection has it.
		properly: each(expects("a JSON-RPC error, or status 401 or 403", func(r *reply) bool {
			return !refused(r) || r.IsError() || forbidden(r) || r.Method == rpc.MethodTestConnection && r.Result() != nil
		})),
		"no reply contains a secret": keepsSecrets,
	}
}

// refused reports whether the endpoint did not carry out a call; AUTH-006 judges the error's form.
func refused(r *reply) bool {
	success, is := r.Result().Get("success").Bool()
	return forbidden(r) || r.Result() == nil || is && !success
}

// keepsSecrets searches every reply for the token and the URL secret, in every encoding (spec 5.2.4).
func keepsSecrets(l *Look) error {
	if l.Token == "" && l.Secret == "" {
		return &Undecided{conformance.NotApplicable, "", "no Auth Token and no URL secret is configured"}
	}
	for name, secret := range map[string]string{"the token": l.Token, "the URL secret": l.Secret} {
		if len(secret) < 4 {
			continue
		}
		find := l.finder(secret)
		for _, r := range l.Replies {
			if n := holds(find, r); n != "" {
				l.broken("replies without credentials in them", fmt.Sprintf("%s: %s stands in the %s of the reply", r.What(), name, n), r)
			}
		}
	}
	return l.held()
}

// finder looks for a secret. Making one takes as long as using it.
func (t Terms) finder(secret string) *wire.Redactor {
	find := t.finders[secret]
	if find == nil {
		find = wire.NewRedactor()
		find.Add(secret, "\x00")
		if t.finders != nil && len(t.finders) < mostFinders {
			t.finders[secret] = find
		}
	}
	return find
}

const (
	mostFinders  = 8       // kept of the credentials of callers
	mostSearched = 4 << 10 // length of a body that is searched for secrets in every encoding
	leastSecret  = 6       // length below which a credential occurs in a reply by chance
)

// holds names the part of a reply that holds what the redactor knows.
func holds(find *wire.Redactor, r *reply) string {
	if len(find.Leaks(r.Body)) > 0 {
		return "body"
	}
	for _, h := range r.RawHeaders {
		if len(find.Leaks([]byte(h.Value))) > 0 {
			return "header " + h.Name
		}
	}
	return ""
}

// secretOf is the token that must not be in a reply: that of the call, or where the call
// was refused the last one that was not. A wrong token is no secret.
func (t *Traffic) secretOf(c *Call) string {
	if c.Result() != nil || t.answered(c.auth) {
		return bearerOf(c.auth)
	}
	return bearerOf(t.authorized)
}

// bearerOf is the secret in an Authorization header, "" where it holds none to look for.
func bearerOf(value string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	rest = strings.TrimSpace(cmp.Or(rest, scheme))
	if len(rest) < leastSecret || strings.EqualFold(rest, "Bearer") {
		return ""
	}
	return rest
}

// refusedMethods finds methods that refuse a caller whom others let in (AUTH-001).
func refusedMethods(t *Traffic, j *judge) (out []Verdict) {
	for _, auth := range slices.Sorted(maps.Keys(t.callers)) {
		a := t.callers[auth]
		if len(a.methods) == 0 || t.outdone(a) {
			continue
		}
		for _, method := range slices.Sorted(maps.Keys(a.refused)) {
			if first := a.refused[method]; !a.methods[method] && !a.heard[method] && first.Started.Before(a.latest) {
				l := &Look{Replies: []*reply{first.reply}}
				l.broken("an answer for the configured credentials, not the one that a stranger gets", first.What()+": "+first.Short(), first.reply)
				out = append(out, Verdict{Check: j.check, Call: first, Look: l, Looked: 1})
			}
		}
		v := Verdict{Check: j.check, Look: &Look{}, Looked: 1}
		if len(a.methods) == len(rpc.Methods()) && len(a.refused) == 0 {
			v.Answers = len(a.methods)
		} else if len(out) == 0 {
			v.Undecided = fmt.Sprintf("the caller has got results of %d of the %s", len(a.methods), quantity.Count(len(rpc.Methods()), "method"))
		}
		out = append(out, v)
	}
	return out
}

// outdone reports whether another caller got results of all methods that gave this one a result, and
// of more: then that one has the configured credentials, and this one some that are checked too little.
func (t *Traffic) outdone(a *caller) bool {
	for _, o := range t.callers {
		if len(o.methods) > len(a.methods) && !slices.ContainsFunc(slices.Collect(maps.Keys(a.methods)), func(m string) bool { return !o.methods[m] }) {
			return true
		}
	}
	return false
}

// tlsGroup judges the connection (spec 5.2.1).
func tlsGroup(g ruleset) map[string]Claim {
	g.late(judgeTLS, "TLS-001", "TLS-002", "TLS-003", "TLS-004", "TLS-005", "TLS-006", "TLS-009")
	return map[string]Claim{
		"the connection is https":                              connection(https),
		"the connection is TLS 1.2 or newer with a strong key": connection(strong),
		"the certificate chains to a trusted root":             connection(trusted),
		"the certificate names the host": connection(func(_ *Look, f *Handshake) (string, string) {
			if err := f.Chain[0].VerifyHostname(f.Name); err != nil {
				return "a certificate for " + f.Name, strings.TrimPrefix(err.Error(), "x509: ")
			}
			return "", ""
		}),
		"the certificate is within its validity":       connection(valid),
		"the certificate comes with its intermediates": connection(complemented),
		"the certificate is valid for 14 more days":    connection(validForLong),
	}
}

// connection is the claim about a handshake; it describes a fault as a replyClaim does.
func connection(claim func(l *Look, f *Handshake) (expected, actual string)) Claim {
	return func(l *Look) error {
		f := l.Handshake
		if f == nil {
			return &Undecided{conformance.HarnessError, "", "no connection was made"}
		}
		if l.URL.Scheme == "https" && f.Err == nil && len(f.Chain) == 0 {
			return l.heldBy(false, "the endpoint sent no certificate")
		}
		if expected, actual := claim(l, f); actual != "" {
			l.broken(expected, actual).Curl = `curl -sSv "$DESTKIT_URL" -d '{}'` // there is no HTTP exchange to show
		}
		return l.held()
	}
}

func https(l *Look, f *Handshake) (string, string) {
	switch {
	case l.URL.Scheme != "https":
		return "an https URL", "the URL begins with " + l.URL.Scheme + "://"
	case f.Err != nil:
		return "a TLS handshake", exchange.InWords(f.Err, l.URL.Host)
	}
	return "", ""
}

func strong(_ *Look, f *Handshake) (string, string) {
	if f.Version != 0 && f.Version < tls.VersionTLS12 {
		return "TLS 1.2 or newer", tls.VersionName(f.Version)
	}
	for _, c := range f.Chain {
		if k, ok := c.PublicKey.(*rsa.PublicKey); ok && k.N.BitLen() < 2048 {
			return "RSA keys of 2048 bits or more, or elliptic curves", fmt.Sprintf("%q has an RSA key of %s", c.Subject.CommonName, quantity.Count(k.N.BitLen(), "bit"))
		}
	}
	return "", ""
}

// trusted leaves a chain that is not whole to TLS-005.
func trusted(l *Look, f *Handshake) (string, string) {
	err := f.Verify("", f.inValidity())
	if err == nil || f.leafOnly() {
		return "", ""
	}
	root := "a public root"
	if l.Roots != nil {
		root = "a root of --tls-roots"
	}
	return "a chain that ends at " + root, exchange.InWords(err, l.URL.Host)
}

func valid(_ *Look, f *Handshake) (string, string) {
	for _, c := range f.Chain {
		if f.Now.Before(c.NotBefore) || f.Now.After(c.NotAfter) {
			return "a certificate that is valid now", fmt.Sprintf("%q is valid from %s to %s", c.Subject.CommonName,
				c.NotBefore.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	return "", ""
}

func complemented(_ *Look, f *Handshake) (string, string) {
	if !f.leafOnly() {
		return "", ""
	}
	return "the leaf and every certificate between it and the root",
		fmt.Sprintf("the leaf alone, signed by %q, which is no trusted root", f.Chain[0].Issuer.CommonName)
}

func validForLong(_ *Look, f *Handshake) (string, string) {
	for _, c := range f.Chain {
		if left := c.NotAfter.Sub(f.Now); left < 14*24*time.Hour {
			return "at least 14 days of validity left", fmt.Sprintf("%q ends in %s, on %s", c.Subject.CommonName, left.Round(time.Hour), c.NotAfter.UTC().Format(time.DateOnly))
		}
	}
	return "", ""
}

// Handshake is what one handshake showed.
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

// inValidity is when every certificate sent is valid: trust is judged apart from time.
func (f *Handshake) inValidity() time.Time {
	latest := slices.MaxFunc(f.Chain, func(a, b *x509.Certificate) int { return a.NotBefore.Compare(b.NotBefore) })
	return latest.NotBefore.Add(time.Second)
}

// leafOnly reports whether the intermediate is missing: one certificate came, which no root has signed.
func (f *Handshake) leafOnly() bool {
	leaf := f.Chain[0]
	selfSigned := bytes.Equal(leaf.RawIssuer, leaf.RawSubject) && leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) == nil
	return len(f.Chain) == 1 && !selfSigned && f.Verify("", f.inValidity()) != nil
}

// judgeTLS judges the latest handshake.
func judgeTLS(t *Traffic, j *judge) []Verdict {
	f := t.handshake.Load()
	if t.URL.Scheme != "https" && j.check.ID == "TLS-001" {
		f = &Handshake{}
	}
	if f == nil || !t.JudgeTLS {
		return nil
	}
	return []Verdict{j.puts(&Look{Terms: t.Terms, Handshake: f}, nil)}
}
