package judge

import (
	"slices"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// planningSteps judge list_objects, list_fields and supported_operations.
func planningSteps() []definition {
	return []definition{
		step(`^the service calls "(list_fields|supported_operations)" for (every object|every object under another label|an object that does not exist)(?: (\d+) times in parallel)?$`,
			func(sc *Scenario) any { return sc.asksAboutObjects }),
	}
}

// unknownObject is a name that no endpoint lists.
var unknownObject = rpc.Object{APIName: "zz_no_such_object", Label: "No such object"}

func (sc *Scenario) asksAboutObjects(method, which, times string) error {
	if times != "" {
		return sc.callsInParallel(method, times)
	}
	switch which {
	case "every object":
		return sc.sendAll(sc.methodCalls(method))
	case "every object under another label":
		return sc.sendAll(sc.relabelled(sc.methodCalls(method)))
	}
	_, err := sc.Send(line.Request{Method: method, Params: line.ObjectParams(unknownObject), Object: unknownObject.APIName})
	return err
}

// relabelled are calls about objects with the label of another object, where one has
// another, else with a label that no object has.
func (sc *Scenario) relabelled(calls []line.Request) []line.Request {
	objects := sc.Catalog.Objects
	for i := range calls {
		o := rpc.Object{APIName: calls[i].Object, Label: unknownObject.Label}
		at := slices.IndexFunc(objects, func(other *write.Object) bool { return other.APIName == o.APIName })
		if next := objects[(at+1)%len(objects)]; next.Label != objects[at].Label {
			o.Label = next.Label
		}
		calls[i].Params = line.ObjectParams(o)
	}
	return calls
}

// of returns the replies of a method.
func (sc *Scenario) of(method string) []*exchange.Reply {
	return lists.Where(sc.Replies, func(r *exchange.Reply) bool { return r.Method == method })
}
