package service

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// planningSteps are for PLAN: planning and caching (spec 4.2).
func planningSteps() []conformance.Step {
	return []conformance.Step{
		step(`^the connection test has (passed|failed)$`, func(p *play) any { return p.testsHave }),
		step(`^every connection test has (passed|failed)$`, func(p *play) any { return p.testsHave }),
		step(`^the service shows the object "([^"]*)"$`, func(p *play) any { return p.showsObject }),
	}
}

// testsHave looks at the tests of all connections that a client has tried. Where
// the destination was not called it did not show anything.
func (p *play) testsHave(what string) error {
	calls := 0
	for _, t := range p.tests {
		seen := len(t.d.seen(rpc.MethodTestConnection))
		if calls += seen; seen == 0 {
			return conformance.Outcome(conformance.Inconclusive, "", "the service has not called test_connection")
		}
		if t.passed() != (what == "passed") {
			exchanges := []conformance.Exchange{t.a.Exchange}
			for _, c := range t.d.seen(rpc.MethodTestConnection) {
				exchanges = append(exchanges, p.exchangeOf(c))
			}
			p.Broken("the connection test has "+what, t.a.short(), exchanges...)
		}
	}
	if calls == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no connection was tested")
	}
	p.Proof("%d connection tests", len(p.tests))
	return p.Held()
}

// objectPath is the API's path of an object.
func (d *destination) objectPath(object string) string {
	return "/destinations/" + strconv.FormatInt(d.id, 10) + "/objects/" + url.PathEscape(object)
}

// shownObject reads an object from the API; nil when the service has none.
func (p *play) shownObject(object string) (*answer, error) {
	a, err := p.api(request{method: "GET", path: p.dest.objectPath(object)})
	if err != nil {
		return nil, err
	}
	if a.Status != 200 || a.text("data", "full_name") != object {
		p.broken(fmt.Sprintf("the object %q", object), a.short(), a)
		return nil, p.Held()
	}
	return a, nil
}

func (p *play) showsObject(object string) error {
	a, err := p.shownObject(object)
	if err != nil {
		return err
	}
	if n := a.at("data", "fields"); n == nil || len(n.Items) == 0 {
		p.broken("an object with fields", a.short(), a)
	}
	p.Proof("GET %s", a.request.path)
	return p.Held()
}
