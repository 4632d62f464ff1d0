package service

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
)

// connectionTypes are destinations of other types that a stand-in may emulate:
// custom destinations have no field ordering, no append and no audiences. What
// they are given opens nothing anywhere.
var connectionTypes = []struct {
	name        string
	credentials map[string]any
}{
	{"google_sheets", map[string]any{"spreadsheet_id": "1zzConfZzConfZzConfZzConfZzConf", "service_account_key": `{"type":"service_account"}`}},
	{"google_ads", map[string]any{"customer_id": "123-456-7890", "developer_token": "zz-conf"}},
	{"salesforce", map[string]any{"instance_url": "https://zz-conf.my.salesforce.com", "client_id": "zz-conf", "client_secret": "zz-conf"}},
}

// objectKinds are the objects that a scenario may ask for, and how they are known.
var objectKinds = map[string]func(object *wire.Node) bool{
	"field ordering": func(o *wire.Node) bool { return isTrue(o.Get("supports_field_ordering")) && len(keyFields(o)) > 0 },
	"append":         func(o *wire.Node) bool { return offers(o, "append") && len(keyFields(o)) > 0 },
	"advanced configuration": func(o *wire.Node) bool {
		return offers(o, "upsert") && len(itemsOf(o.Get("advanced_configuration_field_definitions"))) > 1
	},
	"mirrored": func(o *wire.Node) bool {
		return offers(o, "mirror") && offers(o, "upsert") && len(keyFields(o)) > 0
	},
	"references": func(o *wire.Node) bool { return offers(o, "upsert") && reference(o) != nil },
	"an audience": func(o *wire.Node) bool {
		return offers(o, "mirror") && len(keyFields(o)) > 0 && len(itemsOf(o.Get("fields"))) > 1 && !offers(o, "upsert")
	},
}

func isTrue(n *wire.Node) bool { v, ok := n.Bool(); return ok && v }

func itemsOf(n *wire.Node) []*wire.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

// offers reports whether an object supports an operation (spec 2.3).
func offers(object *wire.Node, operation string) bool {
	for _, one := range itemsOf(object.Get("supported_operations")) {
		if jsonvalue.Text(one) == operation {
			return true
		}
	}
	return false
}

// keyFields are those that may identify records of an upsert (spec 2.5).
func keyFields(object *wire.Node) []string {
	var out []string
	for _, f := range itemsOf(object.Get("fields")) {
		if isTrue(f.Get("can_be_upsert_key")) {
			out = append(out, jsonvalue.Text(f.Get("full_name")))
		}
	}
	return out
}

// reference is a field that refers to records of another object.
func reference(object *wire.Node) *wire.Node {
	for _, f := range itemsOf(object.Get("fields")) {
		if jsonvalue.Text(f.Get("lookup_object")) != "" {
			return f
		}
	}
	return nil
}

// anObject connects a destination that has an object of some kind; the syncs of
// the scenario write to it from here on.
func (sc *scenario) anObject(kind string) error {
	for _, c := range connectionTypes {
		name := sc.called(c.name)
		a, err := sc.send(sc.ctx, sc.Check().ID, request{method: "POST", path: "/destinations", body: map[string]any{
			"service_connection": map[string]any{"name": name, "type": c.name, "credentials": c.credentials},
		}})
		if err != nil {
			return err
		}
		if !accepted(a) || a.id("data", "id") == 0 {
			continue
		}
		// No call to it is ever seen.
		d := &destination{Endpoint: &endpoint.Endpoint{Name: name, Owner: sc.endpoints}, name: name, id: a.id("data", "id")}
		sc.made(thing{kind: "destinations", id: d.id, name: name})
		list, err := sc.must(request{method: "GET", path: "/destinations/" + strconv.FormatInt(d.id, 10) + "/objects?per_page=100"})
		if err != nil {
			return err
		}
		for _, object := range itemsOf(list.at("data")) {
			if objectKinds[kind](object) {
				sc.dest, sc.nextSync().others = d, itemsOf(list.at("data"))
				sc.writesTo(object)
				return nil
			}
		}
	}
	return engine.Outcome(conformance.NotRun, "", "no destination with such an object (%s) can be made here", kind)
}

// writesTo lets the syncs of the scenario write to an object: the first column
// goes to its key, the second to all fields that it requires.
func (sc *scenario) writesTo(object *wire.Node) {
	g := sc.nextSync()
	key := keyFields(object)[0]
	mappings := []any{identifies(mapping("id", key))}
	for _, f := range itemsOf(object.Get("fields")) {
		if name := jsonvalue.Text(f.Get("full_name")); name != key && isTrue(f.Get("required_for_mapping")) {
			mappings = append(mappings, mapping("name", name))
		}
	}
	advanced := map[string]any{}
	for _, f := range itemsOf(object.Get("advanced_configuration_field_definitions")) {
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

// lookupSteps are about references to records of another object (spec 2.7).
func lookupSteps() []engine.Step {
	return []engine.Step{
		step(`^the object that is referred to holds$`, func(sc *scenario) any { return sc.referredHolds }),
		step(`^every record refers to the record that its lookup finds$`, func(sc *scenario) any { return sc.refers }),
	}
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
		for _, f := range itemsOf(other.Get("fields")) {
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

// referredHolds writes records that can be looked up: the column key goes to the
// field that they are looked up by, the column name to those that they require.
func (sc *scenario) referredHolds(rows *engine.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	object, by := sc.referred()
	if object == nil || !slices.Contains(keyFields(object), by) {
		return engine.Outcome(conformance.NotRun, "", "no record that can be looked up can be written here")
	}
	mappings := []any{identifies(mapping("key", by))}
	for _, f := range itemsOf(object.Get("fields")) {
		if name := jsonvalue.Text(f.Get("full_name")); name != by && isTrue(f.Get("required_for_mapping")) {
			mappings = append(mappings, mapping("name", name))
		}
	}
	return sc.writes(t, map[string]any{
		"destination_attributes": map[string]any{"connection_id": sc.dest.id, "object": jsonvalue.Text(object.Get("full_name"))},
		"mappings":               mappings, "advanced_configuration": sc.nextSync().over["advanced_configuration"],
	})
}

// refers compares each reference that arrived with the record that it must lead
// to. By what is open: the number of the record, or any of its reference keys but
// the one that was looked by.
func (sc *scenario) refers() error {
	s, field := sc.latest(), jsonvalue.Text(reference(sc.nextSync().object).Get("full_name"))
	object, by := sc.referred()
	targets, _, err := sc.kept(s.dest, jsonvalue.Text(object.Get("full_name")))
	if err != nil {
		return err
	}
	leads := map[string][]string{} // by the value that was looked up
	for _, k := range targets {
		value := k.text(by)
		leads[value] = append(leads[value], k.number)
		for _, f := range itemsOf(object.Get("fields")) {
			name := jsonvalue.Text(f.Get("full_name"))
			if own := k.text(name); isTrue(f.Get("can_be_reference_key")) && name != by && own != "null" {
				leads[value] = append(leads[value], own)
			}
		}
	}
	records, a, err := sc.kept(s.dest, objectOf(s))
	if err != nil {
		return err
	}
	arrived := map[string]keptRecord{}
	for _, k := range records {
		arrived[k.text(fieldOf(s, "id"))] = k
	}
	for _, r := range s.rows.table.rows {
		id, value := fmt.Sprint(r["id"]), fmt.Sprint(r["name"])
		k, there := arrived[id]
		switch got := k.text(field); {
		case !there:
			sc.broken("the record "+id+" arrives", "it does not", a)
		case !slices.Contains(leads[value], got):
			sc.broken(fmt.Sprintf("%s of %s leads to the record whose %s is %q: one of %q", field, id, by, value, leads[value]), fmt.Sprintf("%q", got), a)
		}
	}
	return sc.heldBy(len(s.rows.table.rows), "reference")
}
