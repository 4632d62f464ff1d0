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
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/lists"
)

// objectsSteps are for DOB: destination objects and fields (spec 2.3 to 2.5).
func objectsSteps() []engine.Step {
	return []engine.Step{
		step(`^a connection to each emulated application$`, (*scenario).emulatedOnes),
		step(`^a client (lists the objects|looks at the objects in every way)$`, (*scenario).looksAtObjects),
		step(`^every object of the list is found under its full_name$`, (*scenario).objectsAreFound),
		step(`^an object is the same wherever it is shown$`, (*scenario).objectsAgree),
		step(`^every (default|dropdown|definition) of the advanced configuration agrees with its (?:type|values|map)$`, (*scenario).advancedAgrees),
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

// emulatedOnes connects applications that the service emulates itself: they have
// what no custom destination has. Their credentials are made from what the
// service says about them.
func (sc *scenario) emulatedOnes() {
	var types []*wire.Node
	sc.pages("/connectors", func(_ *answer, n *wire.Node) {
		if emulated, _ := n.Get("emulated").Bool(); emulated {
			types = append(types, n)
		}
	})
	var ids []int64
	for _, n := range types {
		a := sc.api(request{method: "POST", path: "/destinations", body: map[string]any{"service_connection": map[string]any{
			"name": sc.called("application"), "type": jsonvalue.Text(n.Get("service_name")), "credentials": invented(n.Get("configuration_fields", "fields")),
		}}})
		if sc.madeBy(a); a.id("data", "id") != 0 {
			sc.shows("destination", "creation", a, a.at("data"))
			ids = append(ids, a.id("data", "id"))
		}
	}
	if len(ids) == 0 {
		stop(engine.NotRun("", "the service emulates no application"))
	}
	sc.emulated = ids
}

// invented are credentials that fit the fields of a connector.
func invented(fields *wire.Node) map[string]any {
	credentials := map[string]any{}
	for _, f := range jsonvalue.Items(fields) {
		if rules := f.Get("rules"); rules == nil || !bytes.Contains(rules.Raw, []byte("required")) {
			continue
		}
		value := jsonvalue.Text(f.Get("placholder"))
		if first := f.Get("possible_values", "0"); first != nil {
			value = jsonvalue.Text(first)
		}
		if value == "" {
			value = "zz-conf"
		}
		credentials[jsonvalue.Text(f.Get("id"))] = value
	}
	return credentials
}

// advancedAgrees looks at what the definitions say about themselves (spec 2.4).
func (sc *scenario) advancedAgrees(what string) error {
	all := sc.looked("advanced configuration field")
	seen := 0
	for _, v := range all {
		kind := jsonvalue.Text(v.node.Get("type"))
		switch byDefault := v.node.Get("default"); {
		case what == "default" && byDefault != nil:
			seen++
			if ok, err := jsonvalue.Fits(kind, byDefault); err == nil && !ok {
				sc.brokenView(v, "default", "is "+kind, jsonvalue.Raw(byDefault))
			}
		case what == "dropdown" && jsonvalue.Text(v.node.Get("input_type")) == "dropdown":
			seen++
			values := v.node.Get("supported_values")
			if ok, _ := jsonvalue.Fits("array of string", values); !ok || len(values.Items) == 0 {
				sc.brokenView(v, "supported_values", "lists what can be chosen", jsonvalue.Raw(values))
			}
		case what == "definition":
			seen++
			name := jsonvalue.Text(v.node.Get("name"))
			if stated := v.of.node.Get("configurable_field_definitions", name); jsonvalue.Text(stated) != kind {
				sc.brokenView(v.of, "configurable_field_definitions."+name, "is "+strconv.Quote(kind), jsonvalue.Raw(stated))
			}
		}
	}
	if seen == 0 {
		undecided("no %s was shown", what)
	}
	return sc.heldBy(seen, "look")
}

// objectKinds are the objects that a scenario may ask for, and how they are known.
var objectKinds = map[string]func(object *wire.Node) bool{
	"field ordering": func(o *wire.Node) bool { return isTrue(o.Get("supports_field_ordering")) && len(keyFields(o)) > 0 },
	"append":         func(o *wire.Node) bool { return offers(o, "append") && len(keyFields(o)) > 0 },
	"advanced configuration": func(o *wire.Node) bool {
		return offers(o, "upsert") && len(jsonvalue.Items(o.Get("advanced_configuration_field_definitions"))) > 1
	},
	"references": func(o *wire.Node) bool { return offers(o, "upsert") && reference(o) != nil },
	"mirror alone": func(o *wire.Node) bool {
		return offers(o, "mirror") && len(keyFields(o)) > 0 && len(jsonvalue.Items(o.Get("fields"))) > 1 && !offers(o, "upsert")
	},
}

func isTrue(n *wire.Node) bool { v, ok := n.Bool(); return ok && v }

// offers reports whether an object supports an operation (spec 2.3).
func offers(object *wire.Node, operation string) bool {
	return slices.ContainsFunc(jsonvalue.Items(object.Get("supported_operations")), func(one *wire.Node) bool { return jsonvalue.Text(one) == operation })
}

// keyFields are those that may identify records of an upsert (spec 2.5).
func keyFields(object *wire.Node) []string {
	keys := lists.Where(jsonvalue.Items(object.Get("fields")), func(f *wire.Node) bool { return isTrue(f.Get("can_be_upsert_key")) })
	return lists.Of(keys, func(f *wire.Node) string { return jsonvalue.Text(f.Get("full_name")) })
}

// reference is a field that refers to records of another object.
func reference(object *wire.Node) *wire.Node {
	for _, f := range jsonvalue.Items(object.Get("fields")) {
		if jsonvalue.Text(f.Get("lookup_object")) != "" {
			return f
		}
	}
	return nil
}

// anObject connects an application that has an object of some kind; the syncs of
// the scenario write to it from here on. Custom destinations have no field ordering, no
// append and no audiences.
func (sc *scenario) anObject(kind string) {
	sc.emulatedOnes()
	for _, id := range sc.emulated {
		list := sc.must(request{method: "GET", path: below("destinations", id, "/objects?per_page=100")})
		for _, object := range jsonvalue.Items(list.at("data")) {
			if objectKinds[kind](object) {
				// No call to it is ever seen.
				sc.dest = &destination{Endpoint: &endpoint.Endpoint{Owner: sc.endpoints}, id: id}
				sc.nextSync().others = jsonvalue.Items(list.at("data"))
				sc.writesTo(object)
				return
			}
		}
	}
	stop(engine.NotRun("", "no destination with such an object (%s) can be made here", kind))
}

// writesTo lets the syncs of the scenario write to an object: the first column
// goes to its key, the second to all fields that it requires.
func (sc *scenario) writesTo(object *wire.Node) {
	g := sc.nextSync()
	key := keyFields(object)[0]
	mappings := []any{identifies(mapping("id", key))}
	for _, f := range jsonvalue.Items(object.Get("fields")) {
		if name := jsonvalue.Text(f.Get("full_name")); name != key && isTrue(f.Get("required_for_mapping")) {
			mappings = append(mappings, mapping("name", name))
		}
	}
	advanced := map[string]any{}
	for _, f := range jsonvalue.Items(object.Get("advanced_configuration_field_definitions")) {
		if isTrue(f.Get("required")) && f.Get("default") == nil {
			advanced[jsonvalue.Text(f.Get("name"))] = "zz-conf"
		}
	}
	g.object = object
	maps.Copy(g.over, map[string]any{
		"destination_attributes": map[string]any{"connection_id": sc.dest.id, "object": jsonvalue.Text(object.Get("full_name"))},
		"mappings":               mappings, "advanced_configuration": advanced,
	})
}

// referred is the object that the reference of the scenario's object leads to,
// with the field that it is looked up by: one that may be written, so that the
// judge can.
func (sc *scenario) referred() (object *wire.Node, by string) {
	name := jsonvalue.Text(reference(sc.nextSync().object).Get("lookup_object"))
	for _, other := range sc.nextSync().others {
		if jsonvalue.Text(other.Get("full_name")) != name {
			continue
		}
		for _, f := range jsonvalue.Items(other.Get("fields")) {
			if isTrue(f.Get("can_be_reference_key")) && (by == "" || isTrue(f.Get("createable"))) {
				object, by = other, jsonvalue.Text(f.Get("full_name"))
			}
		}
	}
	return object, by
}

// lookup are the mappings of the scenario's object with one more that finds a
// record of another object by its key (spec 2.5).
func (sc *scenario) lookup() []any {
	field := reference(sc.nextSync().object)
	m := mapping("name", jsonvalue.Text(field.Get("full_name")))
	m["lookup_object"] = jsonvalue.Text(field.Get("lookup_object"))
	if _, by := sc.referred(); by != "" {
		m["lookup_field"] = by
	}
	return append(slices.Clone(sc.nextSync().over["mappings"].([]any)), m)
}
