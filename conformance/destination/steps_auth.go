package destination

import (
	"net/http"

	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/destsim/rpc"
)

// authSteps judge how the endpoint knows its caller (spec 5.2).
func authSteps() []definition {
	return []definition{
		step(`^an auth token is configured$`, func(sc *scenario) any { return sc.tokenConfigured }),
		step(`^a URL secret is configured$`, func(sc *scenario) any { return sc.secretConfigured }),
		step(`^no reply refuses the caller$`, func(sc *scenario) any { return sc.callerAccepted }),
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

// callerAccepted: no reply is that which a stranger gets.
func (sc *scenario) callerAccepted() error {
	stranger, err := sc.strangerError()
	if err != nil {
		return err
	}
	look, err := rules.Every(sc.replies, func(r *reply) (string, string) {
		if refusesStranger(r, stranger) {
			return "an answer for the configured credentials, not the one that a stranger gets", r.Short()
		}
		return "", ""
	})
	err = sc.takes(look, err)
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
