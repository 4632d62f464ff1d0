package rules

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// authGroup judges who may call, and what a reply must not hold (spec 5.2).
func authGroup() group {
	const refuses, properly = "every reply refuses the caller", "every reply refuses the caller by an error or a status of 401 or 403"
	g := group{claims: map[string]Claim{
		refuses:                      each(refusesCaller),
		properly:                     each(properRefusal),
		"no reply contains a secret": keepsSecrets,
	}, rules: map[string]*rule{}}
	g.onTraffic(func(t *Traffic, c *Call) bool {
		return c.auth == "" && t.callers.authorized != "" && c.form == goodForm && c.known() && c.Ended() && !c.Passing()
	}, "AUTH-002", "AUTH-006")
	g.rules["AUTH-002"].claims, g.rules["AUTH-006"].claims = []string{refuses}, []string{properly}
	g.rules["AUTH-007"] = &rule{
		takes: func(t *Traffic, c *Call) bool {
			secret := t.secretOf(c)
			if secret == "" && t.Secret == "" || !c.OK() {
				return false
			}
			// Looking for a secret in every encoding takes long: in a large body that is no
			// error it is looked for as it is.
			return c.IsError() || c.Doc() == nil || len(c.Body) <= mostSearched || c.number <= 64 || secret != "" && strings.Contains(string(c.Body), secret)
		},
		with: func(t *Traffic, c *Call, l *Look) { l.Token = t.secretOf(c) },
	}
	g.late(refusedMethods, "AUTH-001")
	g.rules["AUTH-001"].claims = []string{} // the claim asks a stranger too
	return g
}

func refusesCaller(r *reply) (string, string) {
	if !Refused(r) {
		return "a refusal: an error, or status 401 or 403", r.Short()
	}
	return "", ""
}

// Refused tells a reply that did not do what was asked: any error will do,
// AUTH-006 judges its form.
func Refused(r *reply) bool {
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden || r.IsError() {
		return true
	}
	if ok := r.Result().Get("success"); ok != nil && ok.Kind == wire.Bool {
		return string(ok.Raw) == "false"
	}
	return !r.OK() || r.Result() == nil
}

// properRefusal: `result:{success:false}` is no refusal for a method whose
// result has no such key (spec 7.2.1); test_connection has it.
func properRefusal(r *reply) (string, string) {
	switch {
	case !Refused(r), r.IsError(), r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		return "", ""
	case r.Method == rpc.MethodTestConnection && r.Result() != nil:
		return "", ""
	}
	return "a JSON-RPC error, or status 401 or 403", r.Short()
}

// keepsSecrets searches head and body of every reply for the token and the URL
// secret, in every encoding (spec 5.2.4).
func keepsSecrets(l *Look) error {
	if l.Token == "" && l.Secret == "" {
		return notApplicable("no Auth Token and no URL secret is configured")
	}
	secrets := map[string]string{"the token": l.Token, "the URL secret": l.Secret}
	for name, secret := range secrets {
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

// mostFinders bounds what is kept of the credentials of callers.
const mostFinders = 8

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

// mostSearched is the length of a body that is searched for secrets in every encoding.
const mostSearched = 4 << 10

// secretOf is the token that must not be in a reply: that of the call, or where the call
// was refused the last one that was not. A wrong token is no secret.
func (t *Traffic) secretOf(c *Call) string {
	if c.Result() != nil || t.callers.accepted[c.auth] != nil && len(t.callers.accepted[c.auth].methods) > 0 {
		return bearerOf(c.auth)
	}
	return bearerOf(t.callers.authorized)
}

// leastSecret is the length below which the text of a credential stands in a reply by
// chance.
const leastSecret = 6

// bearerOf is the secret in an Authorization header, "" where it holds none to look for.
func bearerOf(value string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	if rest == "" && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "Basic")) {
		return ""
	}
	rest = cmp.Or(rest, scheme)
	if rest = strings.TrimSpace(rest); len(rest) < leastSecret {
		return ""
	}
	return rest
}

// refusedMethods finds methods that refuse a caller whom others let in, before and
// after (AUTH-001).
func refusedMethods(t *Traffic, j *judge) (out []Verdict) {
	for _, auth := range slices.Sorted(maps.Keys(t.callers.accepted)) {
		a := t.callers.accepted[auth]
		if len(a.methods) == 0 {
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
