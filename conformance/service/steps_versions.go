package service

import (
	"net/http"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// versionsSteps are for DEP: versions and what is deprecated (spec 9).
func versionsSteps() []engine.Step {
	return []engine.Step{
		step(`^a client calls these addresses of the same host with its token:$`, func(sc *scenario) any { return sc.callsHost }),
		step(`^none of them answers as the API$`, func(sc *scenario) any { return sc.noneIsAPI }),
	}
}

// callsHost calls paths outside of the base address, and the base address
// beside them: a host that answers nothing at all shows nothing.
func (sc *scenario) callsHost(paths *engine.Table) error {
	if _, err := sc.must(request{method: http.MethodGet, path: "/syncs"}); err != nil {
		return err
	}
	var all []*answer
	for _, line := range engine.Rows(paths) {
		a, err := sc.api(request{method: http.MethodGet, path: line[0], outside: true})
		if err != nil {
			return err
		}
		all = append(all, a)
	}
	sc.batch = all
	return nil
}

// noneIsAPI: a page of the same host may well stand at such an address.
func (sc *scenario) noneIsAPI() error {
	return sc.eachAnswer("address", func(a *answer) {
		if a.OK() && a.Status < http.StatusMultipleChoices && a.at("pagination").Is(wire.Object) {
			sc.broken("no list of syncs at "+a.request.path, a.short(), a)
		}
	})
}
