package service

import (
	"bytes"
	"cmp"
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

// objectSteps are for DOB: destination objects and fields (spec 2.3 to 2.5).
var objectSteps = []step{
	{`^a connection to each emulated application$`, (*scenario).emulatedOnes},
	{`^a client (lists the objects|looks at the objects in every way)$`, func(sc *scenario, how string) {
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
	}},
	// An application has what no custom destination has; the syncs of the scenario write to it from here on.
	{`^an object with (field ordering|append|advanced configuration|references|mirror alone)$`, func(sc *scenario, kind string) {
		sc.emulatedOnes()
		for _, id := range sc.emulated {
			objects := jsonvalue.Items(sc.get(below("destinations", id, "/objects?per_page=100")).at("data"))
			if i := slices.IndexFunc(objects, objectKinds[kind]); i >= 0 {
				// No call to it is ever seen.
				sc.dest = &destination{Endpoint: &endpoint.Endpoint{Owner: sc.endpoints}, id: id}
				sc.next.others = objects
				sc.writesTo(objects[i])
				return
			}
		}
		stop(engine.NotRun("", "no destination with such an object (%s) can be made here", kind))
	}},
	// Each fetch gives 200 and the requested object.
	{`^every object of the list is found under its full_name$`, func(sc *scenario) error {
		found := 0
		for _, v := range sc.shown("destination object") {
			name, is := strings.CutPrefix(v.way, "fetch of ")
			if !is {
				continue
			}
			found++
			sc.expect(v.answer.Status == 200 && jsonvalue.Text(v.node.Get("full_name")) == name && v.answer.text("status") == "success",
				`200 {"status":"success","data":{"full_name":`+strconv.Quote(name)+`,…}}`, v.answer.short(), v.answer)
		}
		mustSee(found, "no object was fetched by its name")
		return sc.heldBy(found, "object")
	}},
	// Members that appear after an update only (spec 2.3) do not count.
	{`^an object is the same wherever it is shown$`, func(sc *scenario) error {
		first, compared := map[string]*view{}, 0
		for _, v := range sc.looked("destination object") {
			one := first[v.name()]
			if one == nil {
				first[v.name()] = v
				continue
			}
			compared++
			was, is := everyAnswer(one.node), everyAnswer(v.node)
			for _, member := range slices.Sorted(maps.Keys(was)) {
				sc.expect(reflect.DeepEqual(was[member], is[member]),
					fmt.Sprintf("%s of the object %s is the same in the %s and in the %s", member, v.name(), one.way, v.way),
					jsonvalue.Brief(was[member])+" and "+jsonvalue.Brief(is[member]), one.answer, v.answer)
			}
		}
		mustSee(compared, "every object was seen once only")
		return sc.heldBy(compared, "comparison")
	}},
	// spec 2.4: what the definitions declare about themselves.
	{`^every (default|dropdown|definition) of the advanced configuration agrees with its (?:type|values|map)$`,
		func(sc *scenario, what string) error {
			shown := lists.Where(sc.looked("advanced configuration field"), func(v *view) bool {
				return what == "default" && v.node.Get("default") != nil ||
					what == "dropdown" && jsonvalue.Text(v.node.Get("input_type")) == "dropdown" || what == "definition"
			})
			mustSee(len(shown), "no %s was shown", what)
			return each(sc, "look", shown, func(v *view) {
				kind, name := jsonvalue.Text(v.node.Get("type")), jsonvalue.Text(v.node.Get("name"))
				switch what {
				case "default":
					ok, err := jsonvalue.Fits(kind, v.node.Get("default"))
					sc.expectView(ok || err != nil, v, "default", "is "+kind, jsonvalue.Raw(v.node.Get("default")))
				case "dropdown":
					values := v.node.Get("supported_values")
					ok, _ := jsonvalue.Fits("array of string", values)
					sc.expectView(ok && len(values.Items) > 0, v, "supported_values", "lists what can be chosen", jsonvalue.Raw(values))
				default:
					stated := v.of.node.Get("configurable_field_definitions", name)
					same := jsonvalue.Text(stated) == kind
					sc.expectView(same, v.of, "configurable_field_definitions."+name, "is "+strconv.Quote(kind), jsonvalue.Raw(stated))
				}
			})
		}},
}

// updateOnly are only in the answer to an update (spec 2.3).
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

// emulatedOnes connects applications that the service emulates itself, with credentials by their description.
func (sc *scenario) emulatedOnes() {
	var types []*wire.Node
	sc.pages("/connectors", func(_ *answer, n *wire.Node) { types = append(types, n) })
	sc.emulated = nil
	for _, n := range types {
		if !isTrue(n.Get("emulated")) {
			continue
		}
		a := sc.api(request{method: "POST", path: "/destinations", body: map[string]any{"service_connection": map[string]any{
			"name": sc.called("application"), "type": jsonvalue.Text(n.Get("service_name")),
			"credentials": invented(n.Get("configuration_fields", "fields")),
		}}})
		if sc.madeBy(a); a.id("data", "id") != 0 {
			sc.shows("destination", "creation", a, a.at("data"))
			sc.emulated = append(sc.emulated, a.id("data", "id"))
		}
	}
	if len(sc.emulated) == 0 {
		stop(engine.NotRun("", "the service emulates no application"))
	}
}

// invented are credentials that fit the fields of a connector.
func invented(fields *wire.Node) map[string]any {
	credentials := map[string]any{}
	for _, f := range jsonvalue.Items(fields) {
		if rules := f.Get("rules"); rules == nil || !bytes.Contains(rules.Raw, []byte("required")) {
			continue
		}
		value := f.Get("placholder")
		if first := f.Get("possible_values", "0"); first != nil {
			value = first
		}
		credentials[jsonvalue.Text(f.Get("id"))] = cmp.Or(jsonvalue.Text(value), "zz-conf")
	}
	return credentials
}

// objectKinds are the objects that a scenario can name, and how they are recognised.
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
	supported := jsonvalue.Items(object.Get("supported_operations"))
	return slices.ContainsFunc(supported, func(one *wire.Node) bool { return jsonvalue.Text(one) == operation })
}

// keyFields are those that may identify records of an upsert (spec 2.5).
func keyFields(object *wire.Node) []string {
	keys := lists.Where(jsonvalue.Items(object.Get("fields")), func(f *wire.Node) bool { return isTrue(f.Get("can_be_upsert_key")) })
	return lists.Of(keys, func(f *wire.Node) string { return jsonvalue.Text(f.Get("full_name")) })
}

// reference is a field that refers to records of another object.
func reference(object *wire.Node) *wire.Node {
	fields := jsonvalue.Items(object.Get("fields"))
	i := slices.IndexFunc(fields, func(f *wire.Node) bool { return jsonvalue.Text(f.Get("lookup_object")) != "" })
	if i < 0 {
		return nil
	}
	return fields[i]
}

// writesTo lets syncs write to an object: the first column to its key, the second to all fields that it requires.
func (sc *scenario) writesTo(object *wire.Node) {
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
	sc.next.object = object
	maps.Copy(sc.next.over, map[string]any{
		"destination_attributes": map[string]any{"connection_id": sc.dest.id, "object": jsonvalue.Text(object.Get("full_name"))},
		"mappings":               mappings, "advanced_configuration": advanced,
	})
}

// lookup are the mappings of the object with one more that finds a record of another object by its key (spec 2.5).
func (sc *scenario) lookup() []any {
	field := reference(sc.next.object)
	m := mapping("name", jsonvalue.Text(field.Get("full_name")))
	m["lookup_object"] = jsonvalue.Text(field.Get("lookup_object"))
	for _, other := range sc.next.others {
		if jsonvalue.Text(other.Get("full_name")) != m["lookup_object"] {
			continue
		}
		for _, f := range jsonvalue.Items(other.Get("fields")) {
			// Rather one that may be written, so that the judge can.
			if isTrue(f.Get("can_be_reference_key")) && (m["lookup_field"] == nil || isTrue(f.Get("createable"))) {
				m["lookup_field"] = jsonvalue.Text(f.Get("full_name"))
			}
		}
	}
	return append(slices.Clone(sc.next.over["mappings"].([]any)), m)
}
