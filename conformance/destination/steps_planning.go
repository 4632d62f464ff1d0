package destination

import (
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// planningSteps judge list_objects, list_fields and supported_operations.
func planningSteps() []definition {
	return []definition{
		step(`^the service calls "(list_fields|supported_operations)" for (every object|every object under another label|an object that does not exist)(?: (\d+) times in parallel)?$`,
			func(sc *scenario) any { return sc.asksAboutObjects }),
	}
}

// unknownObject is a name that no endpoint lists.
var unknownObject = rpc.Object{APIName: "zz_no_such_object", Label: "No such object"}

func (sc *scenario) asksAboutObjects(method, which, times string) error {
	if times != "" {
		return sc.callsInParallel(method, times)
	}
	switch which {
	case "every object":
		return sc.sendAll(sc.methodCalls(method))
	case "every object under another label":
		return sc.sendAll(sc.relabelled(sc.methodCalls(method)))
	}
	_, err := sc.send(request{method: method, params: objectParams(unknownObject), object: unknownObject.APIName})
	return err
}

// relabelled are calls about objects with the label of another object, where one has
// another, else with a label that no object has.
func (sc *scenario) relabelled(calls []request) []request {
	objects := sc.catalog.objects
	for i := range calls {
		o := rpc.Object{APIName: calls[i].object, Label: unknownObject.Label}
		at := slices.IndexFunc(objects, func(other *object) bool { return other.APIName == o.APIName })
		if next := objects[(at+1)%len(objects)]; next.Label != objects[at].Label {
			o.Label = next.Label
		}
		calls[i].params = objectParams(o)
	}
	return calls
}

// of returns the replies of a method.
func (sc *scenario) of(method string) []*reply {
	return lists.Where(sc.replies, func(r *reply) bool { return r.Method == method })
}
