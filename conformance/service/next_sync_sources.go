package service

import (
	"maps"
	"strconv"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// makesFields connects a destination whose object takes fields that it does not
// have yet.
func (sc *scenario) makesFields() error {
	_, err := sc.connect(connecting{sim: SimulatorConfig{
		Objects: []rpc.Object{{APIName: thingObject, Label: "Thing", CanCreateFields: rpc.CanCreateOnWrite}},
	}})
	return err
}

// streaming is a source of topics as a stand-in offers it.
const streaming = "topic_log"

// aTopic lets the syncs of the scenario read a topic, all the time. They are
// paused, since nothing is ever sent to it.
func (sc *scenario) aTopic() error {
	name := sc.called("topics")
	a, err := sc.send(sc.ctx, sc.Check().ID, request{method: "POST", path: "/sources", body: map[string]any{
		"connection": map[string]any{"name": name, "type": streaming, "credentials": map[string]any{}},
	}})
	if err != nil {
		return err
	}
	id := a.id("data", "id")
	if !accepted(a) || id == 0 {
		return conformance.Outcome(conformance.NotRun, "", "no streaming source can be made here: %s", sc.secrets.String(a.short()))
	}
	sc.made(thing{kind: "sources", id: id, name: name})
	topic, err := sc.must(request{method: "POST", path: "/sources/" + strconv.FormatInt(id, 10) + "/topics", body: map[string]any{
		"name": sc.called("topic"), "sample_message": map[string]any{"id": "r00001", "name": "name 1"},
	}})
	if err != nil {
		return err
	}
	maps.Copy(sc.nextSync().over, map[string]any{
		"source_attributes": map[string]any{"connection_id": id, "object": map[string]any{"type": "topic", "id": topic.id("data", "id")}},
		"mode":              map[string]any{"type": "live"}, "paused": true,
	})
	return nil
}

// aTable lets the syncs of the scenario read a table of the run's source: its
// first column goes to the key of the ordinary object.
func (sc *scenario) aTable() error {
	base := "/sources/" + strconv.FormatInt(sc.source, 10)
	list, err := sc.must(request{method: "GET", path: base + "/objects?per_page=100"})
	if err != nil {
		return err
	}
	for _, object := range itemsOf(list.at("data")) {
		if jsonvalue.Text(object.Get("type")) != "table" {
			continue
		}
		id, _ := object.Get("id").Int()
		table, err := sc.must(request{method: "GET", path: base + "/tables/" + strconv.FormatInt(id, 10)})
		if err != nil {
			return err
		}
		columns := itemsOf(table.at("data", "columns"))
		if len(columns) == 0 {
			continue
		}
		g := sc.nextSync()
		g.over["source_attributes"] = map[string]any{"connection_id": sc.source, "object": tableObject(object)}
		g.over["mappings"] = []any{identifies(mapping(jsonvalue.Text(columns[0].Get("name")), "id"))}
		return nil
	}
	return conformance.Outcome(conformance.NotRun, "", "the source has no table")
}

// tableObject names a table as a sync does (spec 2.8).
func tableObject(n *wire.Node) map[string]any {
	out := map[string]any{"type": "table"}
	for _, part := range []string{"table_catalog", "table_schema", "table_name"} {
		out[part] = jsonvalue.Text(n.Get(part))
	}
	return out
}

// createsAdvanced makes a sync with a value for every key that its object
// defines (spec 2.4).
func (sc *scenario) createsAdvanced() error {
	body, err := sc.draft()
	if err != nil {
		return err
	}
	values := map[string]any{}
	for _, f := range itemsOf(sc.nextSync().object.Get("advanced_configuration_field_definitions")) {
		var value any = "zz-conf"
		switch supported := itemsOf(f.Get("supported_values")); {
		case len(supported) > 0:
			value = supported[len(supported)-1].Text
		case jsonvalue.Text(f.Get("type")) == "integer":
			value = 7
		case jsonvalue.Text(f.Get("type")) == "boolean":
			value = true
		}
		values[jsonvalue.Text(f.Get("name"))] = value
	}
	body["advanced_configuration"] = values
	return sc.asks(body, map[string]any{"advanced_configuration": values})
}
