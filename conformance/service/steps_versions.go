package service

import (
	"net/http"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// versionsSteps are for DEP: versions and what is deprecated (spec 9).
func versionsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a client calls these addresses of the same host with its token:$`, func(p *play) any { return p.callsHost }),
		step(`^none of them answers as the API$`, func(p *play) any { return p.noneIsAPI }),
		step(`^(each answer|each request|no answer) says that something is deprecated$`, func(p *play) any { return p.deprecationIsTold }),
	}
}

// callsHost calls paths outside of the base address, and the base address
// beside them: nothing is told by a host that answers nothing at all.
func (p *play) callsHost(paths *conformance.Table) error {
	if _, err := p.must(request{method: http.MethodGet, path: "/syncs"}); err != nil {
		return err
	}
	p.batch = nil
	for _, line := range paths.Rows() {
		a, err := p.api(request{method: http.MethodGet, path: line[0], outside: true})
		if err != nil {
			return err
		}
		p.batch = append(p.batch, a)
	}
	return nil
}

// noneIsAPI: a page of the same host may well stand at such an address.
func (p *play) noneIsAPI() error {
	for _, a := range p.batch {
		if a.OK() && a.Status < http.StatusMultipleChoices && a.at("pagination").Is(wire.Object) {
			p.broken("no list of syncs at "+a.request.path, a.short(), a)
		}
	}
	p.Proof("%d addresses", len(p.batch))
	return p.Held()
}

// deprecationIsTold looks for the header Deprecation (RFC 9745).
func (p *play) deprecationIsTold(which string) error {
	answers := p.batch
	if which == "each request" {
		answers = nil
		for _, t := range p.trials {
			answers = append(answers, t.answer)
		}
	}
	seen := 0
	for _, a := range answers {
		if !accepted(a) {
			continue
		}
		seen++
		if told := strings.TrimSpace(a.Header.Get("Deprecation")) != ""; told != (which != "no answer") {
			p.broken(which+" has a header Deprecation", a.short()+` with Deprecation "`+a.Header.Get("Deprecation")+`"`, a)
		}
	}
	if seen == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no call was answered well")
	}
	p.Proof("%d answers", seen)
	return p.Held()
}
