package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// nextSync is what the next sync of a scenario is made from. The zero value is an
// ordinary destination and three rows.
type nextSync struct {
	rows   *dataset
	object *wire.Node     // of the destination, where it is no ordinary one
	others []*wire.Node   // all objects of that destination
	over   map[string]any // laid over the ordinary body; nil leaves a field out
}

// nextSync gives what the scenario has prepared so far.
func (sc *scenario) nextSync() *nextSync {
	if sc.prepared == nil {
		sc.prepared = &nextSync{over: map[string]any{}}
	}
	return sc.prepared
}

// draft is the body of a sync as the scenario wants it.
func (sc *scenario) draft() map[string]any {
	g := sc.nextSync()
	sc.someDestination()
	if g.rows == nil {
		g.rows = sc.newDataset(numbered(1, 3))
	}
	body := sc.syncBody(sc.dest, g.rows, "upsert")
	maps.Copy(body, g.over)
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	return body
}

// creates asks the service for a sync and notes it where one is made.
func (sc *scenario) creates(body map[string]any) *answer {
	a := sc.api(request{method: "POST", path: "/syncs", body: body})
	if id := a.id("data", "sync_id"); accepted(a) && id != 0 {
		sc.made(thing{kind: "syncs", id: id})
		sc.syncs = append(sc.syncs, &syncing{id: id, dest: sc.dest, rows: sc.nextSync().rows, body: body})
	}
	return a
}

// syncPath is where the latest sync stands.
func (sc *scenario) syncPath() string { return below("syncs", sc.latest().id, "") }

// accepted reports whether a call did what it was asked to.
func accepted(a *answer) bool {
	return a.OK() && a.Status < http.StatusMultipleChoices && a.text("status") != "error"
}

// refused reports whether a service has seen what is wrong with a call. A fault of
// the service is no refusal, and which status it gives is not shown (spec 7.1).
func refused(a *answer) bool {
	return a.OK() && a.Status < http.StatusInternalServerError &&
		(a.Status >= http.StatusBadRequest || a.text("status") == "error" || a.text("status") == "not_found")
}

// laid gives a body with the rows of a table laid over it: a field by its path
// with dots, and its value as JSON. The value "nothing" leaves the field out.
func (sc *scenario) laid(body map[string]any, t *engine.Table) map[string]any {
	out := maps.Clone(body)
	for _, row := range cells(t) {
		if row["value"] == "nothing" {
			delete(out, row["field"])
			continue
		}
		jsonvalue.Put(out, row["field"], sc.value(row["value"]))
	}
	return out
}

// value reads a cell: JSON in which words stand for ids.
func (sc *scenario) value(cell string) any {
	var v any
	if err := json.Unmarshal([]byte(sc.filled(cell)), &v); err != nil {
		stop(fmt.Errorf("read cell %q: %w", cell, err))
	}
	return v
}

// cells are the rows of a table by the names in its first one.
func cells(t *engine.Table) []map[string]string {
	var out []map[string]string
	rows := engine.Rows(t)
	for _, row := range rows[1:] {
		one := map[string]string{}
		for i, cell := range row {
			one[rows[0][i]] = cell
		}
		out = append(out, one)
	}
	return out
}

// makesFields connects a destination whose object takes fields that it does not
// have yet.
func (sc *scenario) makesFields() {
	sc.connect(connecting{sim: SimulatorConfig{
		Objects: []rpc.Object{{APIName: thingObject, Label: "Thing", CanCreateFields: rpc.CanCreateOnWrite}},
	}})
}

// aTable lets the syncs of the scenario read a table of the run's source: its
// first column goes to the key of the ordinary object.
func (sc *scenario) aTable() {
	list := sc.must(request{method: "GET", path: below("sources", sc.source, "/objects?per_page=100")})
	for _, object := range jsonvalue.Items(list.at("data")) {
		if jsonvalue.Text(object.Get("type")) != "table" {
			continue
		}
		id, _ := object.Get("id").Int()
		table := sc.must(request{method: "GET", path: below("sources", sc.source, "/tables/"+strconv.FormatInt(id, 10))})
		columns := jsonvalue.Items(table.at("data", "columns"))
		if len(columns) == 0 {
			continue
		}
		maps.Copy(sc.nextSync().over, map[string]any{
			"source_attributes": map[string]any{"connection_id": sc.source, "object": tableObject(object)},
			"mappings":          []any{identifies(mapping(jsonvalue.Text(columns[0].Get("name")), "id"))},
		})
		return
	}
	stop(engine.NotRun("", "the source has no table"))
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
func (sc *scenario) createsAdvanced() {
	body := sc.draft()
	values := map[string]any{}
	for _, f := range jsonvalue.Items(sc.nextSync().object.Get("advanced_configuration_field_definitions")) {
		var value any = "zz-conf"
		switch supported := jsonvalue.Items(f.Get("supported_values")); {
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
	sc.asks(body, map[string]any{"advanced_configuration": values})
}
