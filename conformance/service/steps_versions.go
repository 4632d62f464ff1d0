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
		step(`^a client calls these addresses of the same host with its token:$`, func(sc *scenario) any { return sc.callsHost }),
		step(`^none of them answers as the API$`, func(sc *scenario) any { return sc.noneIsAPI }),
		step(`^(each answer|each request|no answer) says that something is deprecated$`, func(sc *scenario) any { return sc.deprecationIsAnnounced }),
	}
}

// callsHost calls paths outside of the base address, and the base address
// beside them: a host that answers nothing at all shows nothing.
func (sc *scenario) callsHost(paths *wire.DataTable) error {
	if _, err := sc.must(request{method: http.MethodGet, path: "/syncs"}); err != nil {
		return err
	}
	sc.batch = nil
	for _, line := range paths.Rows() {
		a, err := sc.api(request{method: http.MethodGet, path: line[0], outside: true})
		if err != nil {
			return err
		}
		sc.batch = append(sc.batch, a)
	}
	return nil
}

// noneIsAPI: a page of the same host may well stand at such an address.
func (sc *scenario) noneIsAPI() error {
	for _, a := range sc.batch {
		if a.OK() && a.Status < http.StatusMultipleChoices && a.at("pagination").Is(wire.Object) {
			sc.broken("no list of syncs at "+a.request.path, a.short(), a)
		}
	}
	return sc.heldBy(len(sc.batch), "address")
}

// deprecationIsAnnounced looks for the header Deprecation (RFC 9745).
func (sc *scenario) deprecationIsAnnounced(which string) error {
	answers := sc.batch
	if which == "each request" {
		answers = nil
		for _, t := range sc.trials {
			answers = append(answers, t.answer)
		}
	}
	seen := 0
	for _, a := range answers {
		if !accepted(a) {
			continue
		}
		seen++
		if stated := strings.TrimSpace(a.Header.Get("Deprecation")) != ""; stated != (which != "no answer") {
			sc.broken(which+" has a header Deprecation", a.short()+` with Deprecation "`+a.Header.Get("Deprecation")+`"`, a)
		}
	}
	if seen == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no call was answered well")
	}
	return sc.heldBy(seen, "answer")
}
