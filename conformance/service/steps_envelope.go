package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// envelopeSteps look at the requests that the service sends (spec 4.2).
func envelopeSteps() []conformance.Step {
	return []conformance.Step{
		step(`^the calls of the service (are POSTs of one JSON-RPC request each|have ids of their own|have their members in the order "([^"]*)"|go to the URL of the connection|share connections of the network)$`,
			func(p *play) any { return p.callsAre }),
		step(`^every call of "([a-z_]+)" has exactly the members "([^"]*)" in "([^"]*)"$`, func(p *play) any { return p.hasMembers }),
		step(`^every call of "([a-z_]+)" has (a string|an integer|an object|an array) in "([^"]*)"$`, func(p *play) any { return p.hasType }),
		step(`^the service calls no method but "([^"]*)"$`, func(p *play) any { return p.onlyMethods }),
	}
}

// callsAre is one claim or another about all calls.
func (p *play) callsAre(what, list string) error {
	switch {
	case list != "":
		return p.membersInOrder(list)
	case what == "have ids of their own":
		return p.idsAreUnique()
	case what == "go to the URL of the connection":
		return p.callsGoToURL()
	case what == "share connections of the network":
		return p.connectionsAreKept()
	}
	return p.requestsAreWhole()
}

// heard are the calls that the destination of the scenario has got since it
// listens; none at all decides nothing.
func (p *play) heard() ([]*call, error) {
	calls := p.dest.seen("")
	if calls = calls[min(p.deaf, len(calls)):]; len(calls) == 0 {
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
			p.brokenCall(`"jsonrpc":"2.0"`, rawOf(c.json.Get("jsonrpc")), c)
		case c.method == "":
			p.brokenCall("a method", rawOf(c.json.Get("method")), c)
		case !c.json.Get("params").Is(wire.Object):
			p.brokenCall("params as an object", rawOf(c.json.Get("params")), c)
		case c.id == "":
			p.brokenCall("an id that is a string", rawOf(c.json.Get("id")), c)
		}
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

// anyMethod stands for all methods in a sentence.
const anyMethod = "any"

// heardOf are the calls of one method, or of any.
func (p *play) heardOf(method string) ([]*call, error) {
	calls, err := p.heard()
	if err != nil || method == anyMethod {
		return calls, err
	}
	if calls = p.dest.seen(method); len(calls) == 0 {
		return nil, conformance.Outcome(conformance.Inconclusive, "", "the service has not called %s", method)
	}
	return calls, nil
}

// hasMembers compares the names of an object's members, in any order.
func (p *play) hasMembers(method, list, path string) error {
	calls, err := p.heardOf(method)
	if err != nil {
		return err
	}
	want, looked := words(list), 0
	for _, c := range calls {
		if !c.json.Is(wire.Object) {
			continue // what is no request at all is the business of another check
		}
		for _, at := range valuesAt(c.json, path) {
			looked++
			if !at.node.Is(wire.Object) {
				p.brokenCall(fmt.Sprintf("%s with an object at %s", c.method, cmp.Or(at.place, path)), rawOf(at.node), c)
			} else if got := names(at.node); !sameNames(got, want) {
				p.brokenCall(fmt.Sprintf("%s with the members [%s] at %s", c.method, list, cmp.Or(at.place, path)), fmt.Sprintf("%q", got), c)
			}
		}
	}
	if looked == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "no call of %s has anything at %s", method, path)
	}
	p.Proof("%d places in %d calls", looked, len(calls))
	return p.Held()
}

// hasType looks at the JSON type of a value.
func (p *play) hasType(method, kind, path string) error {
	calls, err := p.heardOf(method)
	if err != nil {
		return err
	}
	for _, c := range calls {
		for _, at := range valuesAt(c.json, path) {
			is := at.node.IsInteger
			switch kind {
			case "a string":
				is = func() bool { return at.node.Is(wire.String) && at.node.Text != "" }
			case "an object":
				is = func() bool { return at.node.Is(wire.Object) }
			case "an array":
				is = func() bool { return at.node.Is(wire.Array) }
			}
			if at.node == nil || !is() {
				p.brokenCall(fmt.Sprintf("%s with %s at %s", c.method, kind, at.place), rawOf(at.node), c)
			}
		}
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

func (p *play) membersInOrder(list string) error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	for _, c := range calls {
		got := names(c.json)
		// Which members there are is the business of another check.
		want := slices.DeleteFunc(words(list), func(name string) bool { return !slices.Contains(got, name) })
		got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(want, name) })
		if !slices.Equal(got, want) {
			p.brokenCall("the members "+strings.Join(want, ", "), strings.Join(got, ", "), c)
		}
	}
	p.Proof("%d calls", len(calls))
	return p.Held()
}

func (p *play) onlyMethods(list string) error {
	calls, err := p.heard()
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.json.Is(wire.Object) && !slices.Contains(words(list), c.method) {
			p.brokenCall("a call of "+list, fmt.Sprintf("a call of %q", c.method), c)
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
