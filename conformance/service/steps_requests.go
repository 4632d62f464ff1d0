package service

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// requestSteps look at what the service sends, as HTTP, as JSON-RPC and in sync_batch (spec 4.2, identifier rule).
var requestSteps = []step{
	{`^the calls of the service are POSTs of one JSON-RPC request each$`, func(sc *scenario) error {
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
	}},
	{`^the calls of the service have ids of their own$`, (*scenario).idsAreUnique},
	// Which members there are is the business of another check.
	{`^the calls of the service have their members in the order "([^"]*)"$`, func(sc *scenario, list string) error {
		return sc.eachCall(anyMethod, func(c *endpoint.Call) {
			names, wanted := jsonvalue.Names(c.JSON), jsonvalue.Words(list)
			want := lists.Where(wanted, func(name string) bool { return slices.Contains(names, name) })
			got := lists.Where(names, func(name string) bool { return slices.Contains(wanted, name) })
			sc.expectCall(slices.Equal(got, want), "the members "+strings.Join(want, ", "), strings.Join(got, ", "), c)
		})
	}},
	{`^the calls of the service go to the URL of the connection$`, (*scenario).callsGoToURL},
	{`^the calls of the service share connections of the network$`, (*scenario).connectionsAreKept},
	{`^every call of "([a-z_]+)" has exactly the members "([^"]*)" in "([^"]*)"$`, func(sc *scenario, method, list, path string) error {
		calls := sc.receivedOf(method)
		want, looked := jsonvalue.Words(list), 0
		for _, c := range calls {
			if !c.JSON.Is(wire.Object) {
				continue // another check judges a body that is no request
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
		mustSee(looked, "no call of %s has anything at %s", method, path)
		return sc.HeldBy("%s in %s", quantity.Count(looked, "place"), quantity.Count(len(calls), "call"))
	}},
	{`^every call of "([a-z_]+)" has (an integer|an array) in "([^"]*)"$`, func(sc *scenario, method, kind, path string) error {
		return sc.eachCall(method, func(c *endpoint.Call) {
			for _, at := range jsonvalue.ValuesAt(c.JSON, path) {
				is := map[string]bool{"an integer": at.Node.IsInteger(), "an array": at.Node.Is(wire.Array)}[kind]
				sc.expectCall(is, fmt.Sprintf("%s with %s at %s", c.Method, kind, at.Place), jsonvalue.Raw(at.Node), c)
			}
		})
	}},
	{`^the service calls no method but "([^"]*)"$`, func(sc *scenario, list string) error {
		return sc.eachCall(anyMethod, func(c *endpoint.Call) {
			known := !c.JSON.Is(wire.Object) || slices.Contains(jsonvalue.Words(list), c.Method)
			sc.expectCall(known, "a call of "+list, fmt.Sprintf("a call of %q", c.Method), c)
		})
	}},
	{`^(every|no) call of the service has the header "([^"]*)"(?: with "([^"]*)")?$`, func(sc *scenario, which, name, value string) error {
		return sc.eachCall(anyMethod, func(c *endpoint.Call) {
			got := c.HTTP.Header.Values(name)
			switch {
			case which == "no":
				sc.expectCall(len(got) == 0, "no header "+name, strings.Join(got, ", "), c)
			case len(got) == 0:
				sc.brokenCall("the header "+name, c.Method+" without it", c)
			case value != "":
				sc.expectCall(slices.Equal(got, []string{value}), name+": "+value, strings.Join(got, ", "), c)
			}
		})
	}},

	{`^every batch has the operation "([a-z]+)"$`, func(sc *scenario, operation string) error {
		return sc.eachBatch(func(c *endpoint.Call) {
			got := c.Param("sync_plan", "operation")
			sc.expectCall(jsonvalue.Text(got) == operation, fmt.Sprintf("sync_plan.operation %q", operation), jsonvalue.Raw(got), c)
		})
	}},
	{`^the batches of the sync have the one active identifier "([^"]*)"$`, func(sc *scenario, name string) error {
		return sc.eachBatch(func(c *endpoint.Call) {
			active := activeIdentifiers(c)
			sc.expectCall(slices.Equal(active, []string{name}), fmt.Sprintf("active_identifier true at %q alone, false at the others", name),
				fmt.Sprintf("true or no boolean at %q", active), c)
		})
	}},
	// The numbers are those that the API gives.
	{`^the batches of the sync name the sync and its run$`, func(sc *scenario) error {
		s := sc.latest()
		known := lists.Of(s.runs, func(run *answer) string { return fmt.Sprint(run.id("data", "id")) })
		return sc.eachBatch(func(c *endpoint.Call) {
			run := jsonvalue.Raw(c.Param("sync_plan", "sync_run_id"))
			sc.expectCall(syncOf(c) == fmt.Sprint(s.id), fmt.Sprintf("sync_id %d, the id of the sync", s.id), syncOf(c), c)
			sc.expectCall(slices.Contains(known, run), "a sync_run_id that is the id of a run of the sync", run, c)
		})
	}},
	{`^the batches of the sync describe fields as the destination does$`, func(sc *scenario) error {
		stated := map[string]*wire.Node{}
		for _, f := range thingFields() {
			n, err := wire.Parse(jsonvalue.Encode(f))
			stop(err)
			stated[f.APIName] = n
		}
		return sc.eachBatch(func(c *endpoint.Call) {
			expected, actual := describes(c, stated)
			sc.expectCall(expected == "", expected, actual, c)
		})
	}},
	// Within a run no record comes twice where nothing has failed.
	{`^the batches of the sync bring every "([a-z]+)" once$`, func(sc *scenario, field string) error {
		seen := map[string]bool{}
		return sc.eachBatch(func(c *endpoint.Call) {
			for _, r := range c.Records() {
				id := jsonvalue.Text(r.Get(field))
				sc.expectCall(id != "", "a record with "+field, jsonvalue.Raw(r), c)
				sc.expectCall(!seen[id], "every "+field+" once", id+" twice", c)
				seen[id] = id != ""
			}
		})
	}},
	{`^every record of every batch carries the one identifier of its plan$`, func(sc *scenario) error {
		return sc.eachBatch(func(c *endpoint.Call) {
			active := activeIdentifiers(c)
			sc.expectCall(len(active) == 1, "one active identifier in the schema of the plan", fmt.Sprintf("%q", active), c)
			expected, actual := identified(c)
			sc.expectCall(expected == "", expected, actual, c)
		})
	}},
}

// received are the calls that the destination has got since it listens; none at all decides nothing.
func (sc *scenario) received() []*endpoint.Call {
	calls := sc.dest.Seen("")
	calls = calls[min(sc.skippedCalls, len(calls)):]
	mustSee(len(calls), "the service has not called the destination")
	return calls
}

// anyMethod means all methods in a sentence.
const anyMethod = "any"

// receivedOf are the calls of one method, or of any.
func (sc *scenario) receivedOf(method string) []*endpoint.Call {
	calls := sc.received()
	if method != anyMethod {
		calls = sc.dest.Seen(method)
		mustSee(len(calls), "the service has not called %s", method)
	}
	return calls
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

// callsGoToURL compares the target of every request, byte by byte.
func (sc *scenario) callsGoToURL() error {
	want := strings.TrimPrefix(sc.dest.url, sc.dest.origin)
	return sc.eachCall(anyMethod, func(c *endpoint.Call) {
		sc.expectCall(c.HTTP.RequestURI == want, "POST "+want, c.HTTP.Method+" "+c.HTTP.RequestURI, c)
	})
}

// connectionsAreKept counts the connections that carried more than one call.
func (sc *scenario) connectionsAreKept() error {
	calls := sc.received()
	if len(calls) < 2 {
		undecided("only one call came")
	}
	peers := different(lists.Of(calls, func(c *endpoint.Call) string { return c.HTTP.RemoteAddr }))
	shared := fmt.Sprintf("%s on %s", quantity.Count(len(calls), "call"), quantity.Count(peers, "connection"))
	sc.expectCall(peers < len(calls), "some of the calls on the same connection", shared, calls...)
	return sc.HeldBy("%s", shared)
}

// eachBatch looks at every batch of the sync that was made last.
func (sc *scenario) eachBatch(look func(c *endpoint.Call)) error {
	own := fmt.Sprint(sc.latest().id)
	calls := lists.Where(sc.dest.Batches(), func(c *endpoint.Call) bool {
		// Whether the id is a number is the business of another check.
		id := c.Param("sync_plan", "sync_id")
		return id == nil || strings.Trim(jsonvalue.Raw(id), `"`) == own
	})
	mustSee(len(calls), "the sync has sent no batch")
	return each(sc, "batch", calls, look)
}

// describes compares the schema of a batch with what list_fields was answered.
func describes(c *endpoint.Call, stated map[string]*wire.Node) (expected, actual string) {
	for _, m := range jsonvalue.Members(c.Param("sync_plan", "schema")) {
		field := m.Value.Get("field")
		if want := stated[m.Name]; want != nil && !jsonvalue.SameValue(field, want) {
			return fmt.Sprintf("schema.%s.field as list_fields has it: %s", m.Name, jsonvalue.Raw(want)), jsonvalue.Raw(field)
		}
	}
	return "", ""
}

// activeIdentifiers are the fields of a plan that it marks, or does not deny, as such.
func activeIdentifiers(c *endpoint.Call) []string {
	var active []string
	for _, m := range jsonvalue.Members(c.Param("sync_plan", "schema")) {
		if is, ok := m.Value.Get("active_identifier").Bool(); is || !ok {
			active = append(active, m.Name)
		}
	}
	return active
}
