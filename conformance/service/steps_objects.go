package service

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// objectsSteps are for DOB: destination objects and fields (spec 2.3 to 2.5).
func objectsSteps() []engine.Step {
	return []engine.Step{
		step(`^a connection to each emulated application$`, func(sc *scenario) any { return sc.emulatedOnes }),
		step(`^a client (lists the objects|looks at the objects in every way)$`, func(sc *scenario) any { return sc.looksAtObjects }),
		step(`^every object of the list is found under its full_name$`, func(sc *scenario) any { return sc.objectsAreFound }),
		step(`^an object is the same wherever it is shown$`, func(sc *scenario) any { return sc.objectsAgree }),
		step(`^every (default|dropdown|definition) of the advanced configuration agrees with its (?:type|values|map)$`, func(sc *scenario) any { return sc.advancedAgrees }),
	}
}

// looksAtObjects lists the objects and, in every way, fetches each of them and
// their destination.
func (sc *scenario) looksAtObjects(how string) {
	ids := sc.emulated
	if ids == nil {
		sc.here()
		ids = []int64{sc.dest.id}
	}
	for _, id := range ids {
		path := below("destinations", id, "")
		var names []string
		sc.pages(path+"/objects", func(a *answer, n *wire.Node) {
			sc.shows("destination object", "list", a, n)
			names = append(names, jsonvalue.Text(n.Get("full_name")))
		})
		if how == "lists the objects" {
			continue
		}
		for _, name := range names {
			a := sc.api(request{method: "GET", path: path + "/objects/" + url.PathEscape(name)})
			sc.shows("destination object", "fetch of "+name, a, a.at("data"))
		}
		a := sc.api(request{method: "GET", path: path})
		sc.shows("destination", "fetch", a, a.at("data"))
	}
}

// objectsAreFound looks at the fetches: 200 and the object that was asked for.
func (sc *scenario) objectsAreFound() error {
	found := 0
	for _, v := range sc.shown("destination object") {
		name, is := strings.CutPrefix(v.way, "fetch of ")
		if !is {
			continue
		}
		found++
		if v.answer.Status != 200 || jsonvalue.Text(v.node.Get("full_name")) != name || v.answer.text("status") != "success" {
			sc.broken(`200 {"status":"success","data":{"full_name":`+strconv.Quote(name)+`,…}}`, v.answer.short(), v.answer)
		}
	}
	if found == 0 {
		undecided("no object was fetched by its name")
	}
	return sc.heldBy(found, "object")
}

// objectsAgree compares what each look says about an object. What is shown after
// an update only (spec 2.3) does not count.
func (sc *scenario) objectsAgree() error {
	all := sc.looked("destination object")
	first, compared := map[string]*view{}, 0
	for _, v := range all {
		name := v.name()
		if first[name] == nil {
			first[name] = v
			continue
		}
		compared++
		was, is := everyAnswer(first[name].node), everyAnswer(v.node)
		for _, member := range slices.Sorted(maps.Keys(was)) {
			if !reflect.DeepEqual(was[member], is[member]) {
				sc.broken(fmt.Sprintf("%s of the object %s is the same in the %s and in the %s", member, name, first[name].way, v.way),
					jsonvalue.Brief(was[member])+" and "+jsonvalue.Brief(is[member]), first[name].answer, v.answer)
			}
		}
	}
	if compared == 0 {
		undecided("every object was seen once only")
	}
	return sc.heldBy(compared, "comparison")
}

// updateOnly stand in the answer to an update (spec 2.3).
var updateOnly = []string{"primary_identifier_mapping_attributes", "supported_custom_field_types", "is_audience_destination"}

// everyAnswer is what each look has to show; the order of lists does not count.
func everyAnswer(n *wire.Node) map[string]any {
	members, _ := jsonvalue.Decode(n).(map[string]any)
	maps.DeleteFunc(members, func(name string, value any) bool {
		if list, is := value.([]any); is {
			slices.SortFunc(list, func(a, b any) int { return bytes.Compare(jsonvalue.Encode(a), jsonvalue.Encode(b)) })
		}
		return slices.Contains(updateOnly, name)
	})
	return members
}
