package service

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// tokenSteps are about who may call (spec 5.1).
func tokenSteps() []conformance.Step {
	return []conformance.Step{
		step(`^no answer repeats the token$`, func(p *play) any { return p.tokensStayHidden }),
		step(`^each refusal names the scheme to sign in with$`, func(p *play) any { return p.refusalsNameScheme }),
		step(`^no workspace has come into being$`, func(p *play) any { return p.noNewWorkspace }),
		step(`^the workspace is deleted$`, func(p *play) any {
			return func() error {
				_, err := p.must(request{method: "DELETE", path: below("workspaces", p.named.workspace.value, ""), as: asOrganization})
				return err
			}
		}),
		step(`^no answer shows things of another workspace$`, func(p *play) any { return p.elsewhereUnseen }),
	}
}

// tokensStayHidden looks for what calls were signed with in their answers.
func (p *play) tokensStayHidden() error {
	for _, a := range p.batch {
		token := p.signed(a.request).token
		if token != "" && bytes.Contains(a.Body, []byte(token)) {
			p.broken("an answer without the token of its call", fmt.Sprintf("%s %s repeats it", a.request.method, a.request.path), a)
		}
	}
	p.Proof("%d answers", len(p.batch))
	return p.Held()
}

// refusalsNameScheme looks for the header that a 401 must have (RFC 9110, 11.6.1).
func (p *play) refusalsNameScheme() error {
	for _, a := range p.batch {
		if a.Status == 401 && strings.TrimSpace(a.Header.Get("WWW-Authenticate")) == "" {
			p.broken("a header WWW-Authenticate beside 401", a.short()+" without it", a)
		}
	}
	p.Proof("%d refusals", len(p.batch))
	return p.Held()
}

// noNewWorkspace looks for workspaces with a name of the check.
func (p *play) noNewWorkspace() error {
	if err := p.needsOrganization(); err != nil {
		return err
	}
	a, err := p.must(request{method: "GET", path: "/workspaces?per_page=100", as: asOrganization})
	if err != nil {
		return err
	}
	for _, w := range a.at("data").Items {
		if name := stringOf(w.Get("name")); strings.HasPrefix(name, p.prefix(p.Check().ID)) {
			id, _ := w.Get("id").Int()
			p.made(thing{kind: "workspaces", id: id, name: name, as: asOrganization})
			p.broken("a refused call makes nothing", "the workspace "+name+" is there", append(p.batch, a)...)
		}
	}
	p.Proof("%d workspaces looked at", len(a.at("data").Items))
	return p.Held()
}

// elsewhereUnseen looks for the scenario's destination and sync in answers that
// another workspace's key was given.
func (p *play) elsewhereUnseen() error {
	good := 0
	for _, a := range p.batch {
		if a.OK() && a.Status < 300 {
			good++
		}
		for _, name := range []string{p.dest.name, fmt.Sprint(p.latest().body["label"])} {
			if bytes.Contains(a.Body, []byte(name)) {
				p.broken("a key shows its own workspace only", fmt.Sprintf("%s %s shows %s", a.request.method, a.request.path, name), a)
			}
		}
	}
	if good == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no call of the other workspace was answered")
	}
	p.Proof("%d answers", good)
	return p.Held()
}
