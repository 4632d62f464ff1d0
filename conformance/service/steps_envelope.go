package service

import (
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/wire"
)

// envelopeSteps look at the requests that the service sends (spec 4.2).
func envelopeSteps() []conformance.Step {
	return []conformance.Step{
		step(`^every call of the service is a POST of one JSON-RPC request$`, func(p *play) any { return p.requestsAreWhole }),
		step(`^no two calls of the service have the same id$`, func(p *play) any { return p.idsAreUnique }),
	}
}

// heard are the calls that the destination of the scenario has got; none at all
// decides nothing.
func (p *play) heard() ([]*call, error) {
	calls := p.dest.seen("")
	if len(calls) == 0 {
		return nil, conformance.Outcome(conformance.Inconclusive, "", "the service has not called the destination")
	}
	return calls, nil
}

func (p *play) requestsAreWhole() error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	for _, c := range calls {
		switch {
		case c.http.Method != "POST":
			p.brokenCall("POST", c.http.Method, c)
		case !c.json.Is(wire.Object):
			p.brokenCall("one JSON object", "the body is none", c)
		case stringOf(c.json.Get("jsonrpc")) != "2.0":
			p.brokenCall(`"jsonrpc":"2.0"`, fmt.Sprintf("%s", rawOf(c.json.Get("jsonrpc"))), c)
		case c.method == "":
			p.brokenCall("a method", fmt.Sprintf("%s", rawOf(c.json.Get("method"))), c)
		case !c.json.Get("params").Is(wire.Object):
			p.brokenCall("params as an object", fmt.Sprintf("%s", rawOf(c.json.Get("params"))), c)
		case c.id == "":
			p.brokenCall("an id that is a string", fmt.Sprintf("%s", rawOf(c.json.Get("id"))), c)
		}
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

// rawOf is the text of a value, "nothing" of an absent one.
func rawOf(n *wire.Node) string {
	if n == nil {
		return "nothing"
	}
	return string(n.Raw)
}

func (p *play) idsAreUnique() error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	seen := map[string]*call{}
	for _, c := range calls {
		if first := seen[c.id]; first != nil {
			p.brokenCall("an id of its own for each call", "the id "+c.id+" came twice", first, c)
		}
		seen[c.id] = c
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}
