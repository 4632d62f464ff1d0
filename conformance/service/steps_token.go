package service

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// tokenSteps are about who may call (spec 5.1).
func tokenSteps() []conformance.Step {
	return []conformance.Step{
		step(`^no answer repeats the token$`, func(sc *scenario) any { return sc.tokensStayHidden }),
		step(`^each refusal names the scheme to sign in with$`, func(sc *scenario) any { return sc.refusalsNameScheme }),
		step(`^no workspace has come into being$`, func(sc *scenario) any { return sc.noNewWorkspace }),
		step(`^the workspace is deleted$`, func(sc *scenario) any {
			return func() error {
				_, err := sc.must(request{method: "DELETE", path: below("workspaces", sc.named.workspace.value, ""), as: asOrganization})
				return err
			}
		}),
		step(`^no answer shows things of another workspace$`, func(sc *scenario) any { return sc.elsewhereUnseen }),
	}
}

// tokensStayHidden looks for what calls were signed with in their answers.
func (sc *scenario) tokensStayHidden() error {
	for _, a := range sc.batch {
		token := sc.signed(a.request).token
		if token != "" && bytes.Contains(a.Body, []byte(token)) {
			sc.broken("an answer without the token of its call", fmt.Sprintf("%s %s repeats it", a.request.method, a.request.path), a)
		}
	}
	return sc.heldBy(len(sc.batch), "answer")
}

// refusalsNameScheme looks for the header that a 401 must have (RFC 9110, 11.6.1).
func (sc *scenario) refusalsNameScheme() error {
	for _, a := range sc.batch {
		if a.Status == 401 && strings.TrimSpace(a.Header.Get("WWW-Authenticate")) == "" {
			sc.broken("a header WWW-Authenticate beside 401", a.short()+" without it", a)
		}
	}
	return sc.heldBy(len(sc.batch), "refusal")
}

// noNewWorkspace looks for workspaces with a name of the check.
func (sc *scenario) noNewWorkspace() error {
	if err := sc.needsOrganization(); err != nil {
		return err
	}
	a, err := sc.must(request{method: "GET", path: "/workspaces?per_page=100", as: asOrganization})
	if err != nil {
		return err
	}
	for _, w := range a.at("data").Items {
		if name := jsonvalue.Text(w.Get("name")); strings.HasPrefix(name, sc.prefix(sc.Check().ID)) {
			id, _ := w.Get("id").Int()
			sc.made(thing{kind: "workspaces", id: id, name: name, as: asOrganization})
			sc.broken("a refused call makes nothing", "the workspace "+name+" is there", append(sc.batch, a)...)
		}
	}
	return sc.HeldBy("%s looked at", quantity.Count(len(a.at("data").Items), "workspace"))
}

// elsewhereUnseen looks for the scenario's destination and sync in answers that
// another workspace's key was given.
func (sc *scenario) elsewhereUnseen() error {
	good := 0
	for _, a := range sc.batch {
		if a.OK() && a.Status < 300 {
			good++
		}
		for _, name := range []string{sc.dest.name, fmt.Sprint(sc.latest().body["label"])} {
			if bytes.Contains(a.Body, []byte(name)) {
				sc.broken("a key shows its own workspace only", fmt.Sprintf("%s %s shows %s", a.request.method, a.request.path, name), a)
			}
		}
	}
	if good == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no call of the other workspace was answered")
	}
	return sc.heldBy(good, "answer")
}
