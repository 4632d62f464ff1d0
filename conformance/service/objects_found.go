package service

import (
	"maps"
	"strconv"

	"github.com/destkit/destkit/conformance"
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
	return conformance.Outcome(conformance.NotRun, "", "no destination with such an object (%s) can be made here", kind)
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
