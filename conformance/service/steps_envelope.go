package service

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// envelopeSteps look at the requests that the service sends, as HTTP and as JSON-RPC
// (spec 4.2).
func envelopeSteps() []engine.Step {
	return []engine.Step{
		step(`^the calls of the service are POSTs of one JSON-RPC request each$`, (*scenario).requestsAreWhole),
		step(`^the calls of the service have ids of their own$`, (*scenario).idsAreUnique),
		step(`^the calls of the service have their members in the order "([^"]*)"$`, (*scenario).membersInOrder),
		step(`^the calls of the service go to the URL of the connection$`, (*scenario).callsGoToURL),
		step(`^the calls of the service share connections of the network$`, (*scenario).connectionsAreKept),
		step(`^every call of "([a-z_]+)" has exactly the members "([^"]*)" in "([^"]*)"$`, (*scenario).hasMembers),
		step(`^every call of "([a-z_]+)" has (an integer|an array) in "([^"]*)"$`, (*scenario).hasType),
		step(`^the service calls no method but "([^"]*)"$`, (*scenario).onlyMethods),

		step(`^(every|no) call of the service has the header "([^"]*)"(?: with "([^"]*)")?$`, (*scenario).callsHaveHeader),
		step(`^a client connects a destination that answers in the encoding "gzip"$`, (*scenario).connectsPacked),
		step(`^a client connects a destination that answers with a redirect of status "(\d{3})"$`, (*scenario).connectsRedirect),
	}
}

// received are the calls that the destination of the scenario has got since it
// listens; none at all decides nothing.
func (sc *scenario) received() []*endpoint.Call {
	calls := sc.dest.Seen("")
	if calls = calls[min(sc.skippedCalls, len(calls)):]; len(calls) == 0 {
		undecided("the service has not called the destination")
	}
	return calls
}

func (sc *scenario) requestsAreWhole() error {
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		switch {
		case c.HTTP.Method != "POST":
			sc.brokenCall("POST", c.HTTP.Method, c)
		case !c.JSON.Is(wire.Object):
			sc.brokenCall("one JSON object", "the body is none", c)
		case jsonvalue.Text(c.JSON.Get("jsonrpc")) != "2.0":
			sc.brokenCall(`"jsonrpc":"2.0"`, jsonvalue.Raw(c.JSON.Get("jsonrpc")), c)
		case c.Method == "":
			sc.brokenCall("a method", jsonvalue.Raw(c.JSON.Get("method")), c)
		case !c.JSON.Get("params").Is(wire.Object):
			sc.brokenCall("params as an object", jsonvalue.Raw(c.JSON.Get("params")), c)
		case c.ID == "":
			sc.brokenCall("an id that is a string", jsonvalue.Raw(c.JSON.Get("id")), c)
		}
	})
}

// anyMethod stands for all methods in a sentence.
const anyMethod = "any"

// receivedOf are the calls of one method, or of any.
func (sc *scenario) receivedOf(method string) []*endpoint.Call {
	calls := sc.received()
	if method == anyMethod {
		return calls
	}
	if calls = sc.dest.Seen(method); len(calls) == 0 {
		undecided("the service has not called %s", method)
	}
	return calls
}

// hasMembers compares the names of an object's members, in any order.
func (sc *scenario) hasMembers(method, list, path string) error {
	calls := sc.receivedOf(method)
	want, looked := jsonvalue.Words(list), 0
	for _, c := range calls {
		if !c.JSON.Is(wire.Object) {
			continue // what is no request at all is the business of another check
		}
		for _, at := range jsonvalue.ValuesAt(c.JSON, path) {
			looked++
			if !at.Node.Is(wire.Object) {
				sc.brokenCall(fmt.Sprintf("%s with an object at %s", c.Method, cmp.Or(at.Place, path)), jsonvalue.Raw(at.Node), c)
			} else if got := jsonvalue.Names(at.Node); !jsonvalue.SameNames(got, want) {
				sc.brokenCall(fmt.Sprintf("%s with the members [%s] at %s", c.Method, list, cmp.Or(at.Place, path)), fmt.Sprintf("%q", got), c)
			}
		}
	}
	if looked == 0 {
		undecided("no call of %s has anything at %s", method, path)
	}
	return sc.HeldBy("%s in %s", quantity.Count(looked, "place"), quantity.Count(len(calls), "call"))
}

// hasType looks at the JSON type of a value.
func (sc *scenario) hasType(method, kind, path string) error {
	return sc.eachCall(method, func(c *endpoint.Call) {
		for _, at := range jsonvalue.ValuesAt(c.JSON, path) {
			if is := map[string]bool{"an integer": at.Node.IsInteger(), "an array": at.Node.Is(wire.Array)}; !is[kind] {
				sc.brokenCall(fmt.Sprintf("%s with %s at %s", c.Method, kind, at.Place), jsonvalue.Raw(at.Node), c)
			}
		}
	})
}

func (sc *scenario) membersInOrder(list string) error {
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		got := jsonvalue.Names(c.JSON)
		// Which members there are is the business of another check.
		want := slices.DeleteFunc(jsonvalue.Words(list), func(name string) bool { return !slices.Contains(got, name) })
		got = slices.DeleteFunc(got, func(name string) bool { return !slices.Contains(want, name) })
		if !slices.Equal(got, want) {
			sc.brokenCall("the members "+strings.Join(want, ", "), strings.Join(got, ", "), c)
		}
	})
}

func (sc *scenario) onlyMethods(list string) error {
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		if c.JSON.Is(wire.Object) && !slices.Contains(jsonvalue.Words(list), c.Method) {
			sc.brokenCall("a call of "+list, fmt.Sprintf("a call of %q", c.Method), c)
		}
	})
}

func (sc *scenario) idsAreUnique() error {
	seen := map[string]*endpoint.Call{}
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		if first := seen[c.ID]; first != nil {
			sc.brokenCall("an id of its own for each call", "the id "+c.ID+" came twice", first, c)
		}
		seen[c.ID] = c
	})
}

// callsHaveHeader looks for a header, and for one of its values where one is
// given.
func (sc *scenario) callsHaveHeader(which, name, value string) error {
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		got := c.HTTP.Header.Values(name)
		switch {
		case which == "no" && len(got) > 0:
			sc.brokenCall("no header "+name, strings.Join(got, ", "), c)
		case which == "no":
		case len(got) == 0:
			sc.brokenCall("the header "+name, c.Method+" without it", c)
		case value != "" && !slices.Equal(got, []string{value}):
			sc.brokenCall(name+": "+value, strings.Join(got, ", "), c)
		}
	})
}

// callsGoToURL compares the target of every request, byte by byte.
func (sc *scenario) callsGoToURL() error {
	want := strings.TrimPrefix(sc.dest.url, sc.dest.origin)
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		if c.HTTP.RequestURI != want {
			sc.brokenCall("POST "+want, c.HTTP.Method+" "+c.HTTP.RequestURI, c)
		}
	})
}

// connectionsAreKept counts the connections that carried more than one call.
func (sc *scenario) connectionsAreKept() error {
	calls := sc.received()
	if len(calls) < 2 {
		undecided("only one call came")
	}
	peers := map[string]int{}
	for _, c := range calls {
		peers[c.HTTP.RemoteAddr]++
	}
	if len(peers) == len(calls) {
		sc.brokenCall("some of the calls on the same connection", fmt.Sprintf("%s on %s", quantity.Count(len(calls), "call"), quantity.Count(len(peers), "connection")), calls...)
	}
	return sc.HeldBy("%s on %s", quantity.Count(len(calls), "call"), quantity.Count(len(peers), "connection"))
}

// connectsPacked makes a connection to a destination every answer of which is compressed.
func (sc *scenario) connectsPacked() {
	sc.triesConnecting(connecting{script: func(*endpoint.Call) *endpoint.Reply {
		return &endpoint.Reply{Edit: func(body []byte, header http.Header) []byte {
			header.Set("Content-Encoding", "gzip")
			var out bytes.Buffer
			w := gzip.NewWriter(&out)
			_, _ = w.Write(body) // a buffer takes everything
			_ = w.Close()
			return out.Bytes()
		}}
	}})
}

// connectsRedirect makes a connection to a destination that leads to another one of the
// same origin.
func (sc *scenario) connectsRedirect(status int) {
	other := sc.place(connecting{})
	sc.redirected = other.Endpoint
	sc.triesConnecting(connecting{script: func(*endpoint.Call) *endpoint.Reply {
		return &endpoint.Reply{Status: status, Header: http.Header{"Location": {other.url}}}
	}})
}
