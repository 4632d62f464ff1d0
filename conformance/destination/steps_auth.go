package destination

import (
	"fmt"
	"net/http"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/destsim/rpc"
)

// authSteps judge how the endpoint knows its caller (spec 5.2).
func authSteps() []definition {
	return []definition{
		step(`^an auth token is configured$`, func(sc *scenario) any { return sc.tokenConfigured }),
		step(`^a URL secret is configured$`, func(sc *scenario) any { return sc.secretConfigured }),
		step(`^(every|no) reply refuses the (caller|rate)( by an error or a status of 401 or 403)?$`, func(sc *scenario) any { return sc.refusesCaller }),
		step(`^no reply contains a secret$`, func(sc *scenario) any { return sc.keepsSecrets }),
	}
}

func (sc *scenario) tokenConfigured() error {
	if sc.target.Token == "" {
		return notApplicable("no Auth Token is configured: name its variable with --token-env")
	}
	return nil
}

func (sc *scenario) secretConfigured() error {
	if sc.secret == "" {
		return notApplicable("no URL secret is declared: name it with --url-secret")
	}
	return nil
}

// refused tells a reply that did not do what was asked: any error will do,
// AUTH-006 judges its form.
func refused(r *reply) bool {
	if r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden || r.IsError() {
		return true
	}
	if ok := r.Result().Get("success"); ok != nil && ok.Kind == wire.Bool {
		return string(ok.Raw) == "false"
	}
	return !r.OK() || r.Result() == nil
}

func (sc *scenario) refusesCaller(which, what, form string) error {
	if what == "rate" {
		return sc.rateAccepted()
	}
	if form != "" {
		return sc.everyReply(properRefusal)
	}
	if which == "every" {
		return sc.everyReply(func(r *reply) (string, string) {
			if !refused(r) {
				return "a refusal: an error, or status 401 or 403", r.Short()
			}
			return "", ""
		})
	}
	stranger, err := sc.strangerError()
	if err != nil {
		return err
	}
	err = sc.everyReply(func(r *reply) (string, string) {
		if refusesStranger(r, stranger) {
			return "an answer for the configured credentials, not the one that a stranger gets", r.Short()
		}
		return "", ""
	})
	if r := sc.unansweredReply(); err == nil && r != nil {
		return inconclusive("", "%s has neither a result nor an error: %s", r.What(), r.Short())
	}
	return err
}

// unansweredReply is a reply that says nothing about its caller, nil without one.
func (sc *scenario) unansweredReply() *reply {
	for _, r := range sc.replies {
		refused := r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden
		if !refused && r.Member("result") == nil && r.Member("error") == nil {
			return r
		}
	}
	return nil
}

// refusesStranger tells a reply that takes the caller for a stranger; an error
// about something else is none.
func refusesStranger(r *reply, stranger string) bool {
	return r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden ||
		stranger != "" && r.IsError() && string(r.Member("error").Raw) == stranger
}

// strangerError is the error that a caller without credentials gets, "" when
// the endpoint lets strangers in or needs no credentials.
func (sc *scenario) strangerError() (string, error) {
	if sc.target.Token == "" && sc.secret == "" {
		return "", nil
	}
	c := request{method: rpc.MethodListObjects, header: http.Header{"Authorization": nil}}
	if sc.secret != "" {
		changed, err := sc.withSecret([]string{wrongSecret})
		if err != nil {
			return "", err
		}
		c.url = changed
	}
	r, err := sc.session.send(sc.ctx, sc.Check().ID, c)
	if err != nil {
		return "", err
	}
	if r.IsError() {
		return string(r.Member("error").Raw), nil
	}
	return "", nil
}

// properRefusal: `result:{success:false}` is no refusal for a method whose
// result has no such key (spec 7.2.1); test_connection has it.
func properRefusal(r *reply) (string, string) {
	switch {
	case !refused(r), r.IsError(), r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden:
		return "", ""
	case r.Method == rpc.MethodTestConnection && r.Result() != nil:
		return "", ""
	}
	return "a JSON-RPC error, or status 401 or 403", r.Short()
}

// keepsSecrets searches head and body of every reply for the token and the URL
// secret, in every encoding (spec 5.2.4).
func (sc *scenario) keepsSecrets() error {
	if sc.target.Token == "" && sc.secret == "" {
		return notApplicable("no Auth Token and no URL secret is configured")
	}
	secrets := map[string]string{"the token": sc.target.Token, "the URL secret": sc.secret}
	for name, secret := range secrets {
		if len(secret) < 4 {
			continue
		}
		find := wire.NewRedactor()
		find.Add(secret, "\x00")
		for _, r := range sc.replies {
			if n := holds(find, r); n != "" {
				sc.broken("replies without credentials in them", fmt.Sprintf("%s: %s stands in the %s of the reply", r.What(), name, n), r)
			}
		}
	}
	return sc.held()
}

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
