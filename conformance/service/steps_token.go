package service

import (
	"fmt"
	"net/http"

	"github.com/destkit/destkit/conformance"
)

// tokenSteps are about who may call (spec 5.1).
func tokenSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client calls "([A-Z]+) (/[^"]*)" with (the workspace API key|the personal access token|no token|an unknown token|a damaged key)$`,
			func(p *play) any { return p.callsWith }),
		step(`^the call is (answered|refused as unauthenticated|refused)$`, func(p *play) any { return p.callWas }),
	}
}

func (p *play) callsWith(method, path, who string) error {
	q := request{method: method, path: path}
	switch who {
	case "the personal access token":
		q.as = asOrganization
	case "no token":
		q.as = asNobody
	case "an unknown token":
		q.token = "secret-token:zz-conf-nobody-has-this-one"
	case "a damaged key":
		q.token = p.key[:len(p.key)-1]
	}
	_, err := p.api(q)
	return err
}

func (p *play) callWas(what string) error {
	a := p.last
	switch {
	case what == "answered" && a.OK() && a.Status < 300:
	case what == "refused as unauthenticated" && a.Status == http.StatusUnauthorized:
	case what == "refused" && (a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden):
	default:
		p.broken("the call is "+what, a.short(), a)
		return p.Held()
	}
	p.Proof("HTTP %d", a.Status)
	return p.Held()
}

// needsBoth says that a check lacks one of the two tokens.
func (p *play) needsBoth() error {
	if p.target.PersonalAccessToken == "" {
		return conformance.Outcome(conformance.NotRun, "DESTKIT_PERSONAL_ACCESS_TOKEN", "needs a personal access token: set DESTKIT_PERSONAL_ACCESS_TOKEN")
	}
	if p.key == "" {
		return fmt.Errorf("the run has no workspace key")
	}
	return nil
}
