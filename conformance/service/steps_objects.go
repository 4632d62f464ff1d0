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

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// objectsSteps are for DOB: destination objects and fields (spec 2.3 to 2.5).
func objectsSteps() []engine.Step {
	return []engine.Step{
		step(`^an endpoint with the objects:$`, func(sc *scenario) any { return sc.anEndpoint }),
		step(`^its object "([^"]+)" has the fields:$`, func(sc *scenario) any { return sc.itsFields }),
		step(`^a connection to that endpoint$`, func(sc *scenario) any { return sc.connectsPlan }),
		step(`^a connection to each emulated application$`, func(sc *scenario) any { return sc.emulatedOnes }),
		step(`^a client (lists the objects|looks at the objects in every way)$`, func(sc *scenario) any { return sc.looksAtObjects }),
		step(`^every destination object shown is one of list_objects, and none is missing$`, func(sc *scenario) any { return sc.objectsAreThose }),
		step(`^every object of the list is found under its full_name$`, func(sc *scenario) any { return sc.objectsAreFound }),
		step(`^every destination (object|field) shown agrees with (?:list_objects|list_fields) in:$`, func(sc *scenario) any { return sc.agrees }),
		step(`^every destination object shown has the (fields of list_fields|operations of supported_operations)$`, func(sc *scenario) any { return sc.namesAreThose }),
		step(`^(no field but an identifier|every identifier) can be a key of an operation of its object$`, func(sc *scenario) any { return sc.keysAreRight }),
		step(`^an object is the same wherever it is shown$`, func(sc *scenario) any { return sc.objectsAgree }),
		step(`^every (default|dropdown|definition) of the advanced configuration agrees with its (?:type|values|map)$`, func(sc *scenario) any { return sc.advancedAgrees }),
	}
}

// looksAtObjects lists the objects and, in every way, fetches each of them and
// their destination.
func (sc *scenario) looksAtObjects(how string) error {
	ids := sc.emulated
	if ids == nil {
		if _, err := sc.here(); err != nil {
			return err
		}
		ids = []int64{sc.dest.id}
	}
	for _, id := range ids {
		path := "/destinations/" + strconv.FormatInt(id, 10)
		var names []string
		if _, err := sc.pages(path+"/objects", func(a *answer, n *wire.Node) {
			sc.shows("destination object", "list", a, n)
			names = append(names, jsonvalue.Text(n.Get("full_name")))
		}); err != nil {
			return err
		}
		if how == "lists the objects" {
			continue
		}
		for _, name := range names {
			a, err := sc.api(request{method: "GET", path: path + "/objects/" + url.PathEscape(name)})
			if err != nil {
				return err
			}
			sc.shows("destination object", "fetch of "+name, a, a.at("data"))
		}
		a, err := sc.api(request{method: "GET", path: path})
		if err != nil {
			return err
		}
		sc.shows("destination", "fetch", a, a.at("data"))
	}
	return nil
}

// objectsAreThose compares the whole sets, by label too (spec 2.3, 4.2).
func (sc *scenario) objectsAreThose() error {
	pl, err := sc.plan()
	if err != nil {
		return err
	}
	var want []string
	for _, o := range pl.objects {
		want = append(want, o.APIName)
	}
	sets := map[string][]string{"list": nil} // by way of looking
	where := map[string]*view{}
	for _, v := range sc.shown("destination object") {
		way, _, _ := strings.Cut(v.way, ",")
		if strings.HasPrefix(way, "fetch of ") {
			continue
		}
		sets[way] = append(sets[way], jsonvalue.Text(v.node.Get("full_name")))
		where[way] = v
	}
	for way, names := range sets {
		if !jsonvalue.SameNames(names, want) {
			at := sc.last
			if where[way] != nil {
				at = where[way].answer
			}
			sc.broken("the objects "+strings.Join(want, ", ")+" ("+way+")", strings.Join(names, ", "), at)
		}
	}
	return sc.heldBy(len(want), "object")
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
		return engine.Outcome(conformance.Inconclusive, "", "no object was fetched by its name")
	}
	return sc.heldBy(found, "object")
}

// agrees compares members, | of the API | of the protocol |. Names of types were
// seen with a capital letter.
func (sc *scenario) agrees(what string, t *engine.Table) error {
	pl, err := sc.plan()
	if err != nil {
		return err
	}
	all, err := sc.looked("destination " + what)
	if err != nil {
		return err
	}
	compared := 0
	for _, v := range all {
		stated := pl.said(v)
		if !stated.Is(wire.Object) {
			continue // another check tells that it does not belong there
		}
		for _, row := range engine.Rows(t) {
			shown, want := v.member(row[0]), stated.Get(row[1])
			a, b := jsonvalue.Raw(shown), jsonvalue.Raw(want)
			if row[0] == "type" {
				a, b = strings.ToLower(a), strings.ToLower(b)
			}
			if !jsonvalue.SameJSON([]byte(a), []byte(b)) {
				sc.brokenView(v, row[0]+" of "+v.name(), "is "+b, a)
			}
			compared++
		}
	}
	if compared == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "nothing that the endpoint lists was shown")
	}
	return sc.heldBy(compared, "value")
}

// namesAreThose compares a list of names at every object.
func (sc *scenario) namesAreThose(what string) error {
	pl, err := sc.plan()
	if err != nil {
		return err
	}
	return sc.eachView("destination object", func(v *view) error {
		name, known := pl.planObject(v)
		if !known {
			return nil
		}
		member, want := "supported_operations", pl.operations[name]
		if what == "fields of list_fields" {
			member, want = "fields", nil
			for _, f := range pl.fields[name] {
				want = append(want, f.APIName)
			}
		}
		if have := namesIn(v.node.Get(member)); !jsonvalue.SameNames(want, have) {
			sc.brokenView(v, member+" of "+name, "are "+strings.Join(want, ", "), strings.Join(have, ", "))
		}
		return nil
	})
}

// namesIn are texts, or the full_name of objects.
func namesIn(list *wire.Node) []string {
	var names []string
	if list.Is(wire.Array) {
		for _, n := range list.Items {
			if n.Is(wire.Object) {
				n = n.Get("full_name")
			}
			names = append(names, jsonvalue.Text(n))
		}
	}
	return names
}

// keysAreRight: which fields identify records comes from list_fields (spec 4.2).
func (sc *scenario) keysAreRight(which string) error {
	pl, err := sc.plan()
	if err != nil {
		return err
	}
	return sc.eachView("destination field", func(v *view) error {
		stated := pl.said(v)
		identifier, known := stated.Get("identifier").Bool()
		if !known || identifier != (which == "every identifier") {
			return nil
		}
		for _, operation := range []string{rpc.OperationUpsert, rpc.OperationUpdate, rpc.OperationInsert} {
			if identifier && !slices.Contains(pl.operations[jsonvalue.Text(v.of.node.Get("full_name"))], operation) {
				continue // what it is for an operation that the object does not have is open
			}
			member := "can_be_" + operation + "_key"
			if can, _ := v.node.Get(member).Bool(); can != identifier {
				sc.brokenView(v, member+" of "+v.name(), fmt.Sprintf("is %t", identifier), jsonvalue.Raw(v.node.Get(member)))
			}
		}
		return nil
	})
}

// objectsAgree compares what each look says about an object. What is shown after
// an update only (spec 2.3) does not count.
func (sc *scenario) objectsAgree() error {
	all, err := sc.looked("destination object")
	if err != nil {
		return err
	}
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
		return engine.Outcome(conformance.Inconclusive, "", "every object was seen once only")
	}
	return sc.heldBy(compared, "comparison")
}

// updateOnly stand in the answer to an update (spec 2.3).
var updateOnly = []string{"primary_identifier_mapping_attributes", "supported_custom_field_types", "is_audience_destination"}

// everyAnswer is what each look has to show; the order of lists does not count.
func everyAnswer(n *wire.Node) map[string]any {
	members, _ := jsonvalue.Decode(n).(map[string]any)
	for name, value := range members {
		if list, is := value.([]any); is {
			slices.SortFunc(list, func(a, b any) int { return bytes.Compare(jsonvalue.Encode(a), jsonvalue.Encode(b)) })
		}
		if slices.Contains(updateOnly, name) {
			delete(members, name)
		}
	}
	return members
}
