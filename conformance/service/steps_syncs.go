package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
)

// syncSteps are about syncs as resources (spec 2.6).
var syncSteps = []step{
	// It is for all syncs that the scenario makes from here on.
	{`^syncs that have:$`, func(sc *scenario, t *engine.Table) {
		sc.draft()
		over := sc.laid(sc.next.over, t)
		for _, row := range cells(t) {
			if row["value"] == "nothing" {
				over[row["field"]] = nil
			}
		}
		sc.next.over = over
	}},
	{`^a sync$`, func(sc *scenario) { sc.given(sc.draft()) }},
	{`^a sync with:$`, func(sc *scenario, t *engine.Table) { sc.given(sc.laid(sc.draft(), t)) }},
	{`^a client creates a sync with:$`, (*scenario).clientCreates},
	{`^a client creates a sync with each of these:$`, func(sc *scenario, t *engine.Table) { eachRow(t, sc.clientCreates) }},
	// The object defines the keys (spec 2.4).
	{`^a client creates a sync with every key of its advanced configuration$`, func(sc *scenario) {
		body := sc.draft()
		values := map[string]any{}
		for _, f := range jsonvalue.Items(sc.next.object.Get("advanced_configuration_field_definitions")) {
			var value any = "zz-conf"
			switch supported := jsonvalue.Items(f.Get("supported_values")); {
			case len(supported) > 0:
				value = supported[len(supported)-1].Text
			case jsonvalue.Text(f.Get("type")) == "integer":
				value = 7.0
			case jsonvalue.Text(f.Get("type")) == "boolean":
				value = true
			}
			values[jsonvalue.Text(f.Get("name"))] = value
		}
		body["advanced_configuration"] = values
		sc.asks(body, map[string]any{"advanced_configuration": values})
	}},
	{`^a client updates the sync with:$`, (*scenario).clientUpdates},
	{`^a client updates the sync with each of these:$`, func(sc *scenario, t *engine.Table) { eachRow(t, sc.clientUpdates) }},
	// spec 4.1.1: what an update must have.
	{`^a client updates the sync with its required fields alone$`, func(sc *scenario) {
		body := map[string]any{}
		for _, field := range []string{"operation", "destination_attributes", "mappings", "source_attributes"} {
			body[field] = sc.latest().body[field]
		}
		sc.update(body, map[string]any{})
	}},

	{`^a destination that makes fields on write$`, func(sc *scenario) {
		sc.connect(connecting{sim: SimulatorConfig{
			Objects: []rpc.Object{{APIName: thingObject, Label: "Thing", CanCreateFields: rpc.CanCreateOnWrite}},
		}})
	}},
	// The syncs of the scenario read it from here on: its first column goes to the key of the ordinary object.
	{`^a table of the source$`, func(sc *scenario) {
		list := sc.get(below("sources", sc.source, "/objects?per_page=100"))
		for _, object := range jsonvalue.Items(list.at("data")) {
			if jsonvalue.Text(object.Get("type")) != "table" {
				continue
			}
			id, _ := object.Get("id").Int()
			columns := jsonvalue.Items(sc.get(below("sources", sc.source, below("tables", id, ""))).at("data", "columns"))
			if len(columns) == 0 {
				continue
			}
			named := map[string]any{"type": "table"} // spec 2.8
			for _, part := range []string{"table_catalog", "table_schema", "table_name"} {
				named[part] = jsonvalue.Text(object.Get(part))
			}
			maps.Copy(sc.next.over, map[string]any{
				"source_attributes": map[string]any{"connection_id": sc.source, "object": named},
				"mappings":          []any{identifies(mapping(jsonvalue.Text(columns[0].Get("name")), "id"))},
			})
			return
		}
		stop(engine.NotRun("", "the source has no table"))
	}},

	{`^the sync shows:$`, func(sc *scenario, t *engine.Table) error {
		return sc.allCompared("the sync", sc.get(sc.syncPath()), t)
	}},
	{`^every request is accepted$`, func(sc *scenario) error { return sc.allAre(accepted, "is accepted") }},
	{`^every request is refused$`, func(sc *scenario) error { return sc.allAre(refused, "is refused with a status from 400 to 499") }},
	{`^every sync shows what it was given$`, func(sc *scenario) error {
		return sc.eachTrial(func(t *trial) {
			if t.shown == nil {
				sc.broken("a sync with "+t.String()+" is made", t.answer.short(), t.answer)
				return
			}
			for field, wanted := range t.fields {
				sc.compare("the sync", t.shown, field, wanted)
			}
		})
	}},
	// Settings that apply elsewhere only may be refused, or be paid no heed to (spec 4.1.3, 4.1.4).
	{`^every request is refused, or the sync does not show what was asked for$`, func(sc *scenario) error {
		return sc.eachTrial(func(t *trial) {
			if refused(t.answer) {
				return
			}
			if !accepted(t.answer) || t.shown == nil {
				sc.broken("a sync with "+t.String()+" is refused", t.answer.short(), t.answer)
				return
			}
			for field, asked := range t.fields {
				sc.expect(missing(t.shown, field, asked) != "", "a sync that does not show "+field+" "+jsonvalue.Brief(asked), "it does", t.shown)
			}
		})
	}},
	{`^the list "([^"]+)" shows the sync as it is read by its id$`, func(sc *scenario, path string) error {
		return sc.listedAlike(path, sc.get(sc.syncPath()))
	}},
	{`^the list "([^"]+)" shows both runs as they are read by their ids$`, func(sc *scenario, path string) error {
		runs := sc.latest().runs
		if len(runs) != 2 {
			undecided("the sync has not run twice")
		}
		return sc.listedAlike(path, runs...)
	}},
}

// nextSync configures the next sync; zero is an ordinary destination and three rows.
type nextSync struct {
	rows   *dataset
	object *wire.Node     // of the destination, where it is no ordinary one
	others []*wire.Node   // all objects of that destination
	over   map[string]any // laid over the ordinary body; nil leaves a field out
}

// draft is the body of a sync as the scenario wants it.
func (sc *scenario) draft() map[string]any {
	sc.someDestination()
	if sc.next.rows == nil {
		sc.next.rows = sc.newDataset(numbered(3))
	}
	body := sc.syncBody(sc.next.rows, "upsert")
	maps.Copy(body, sc.next.over)
	return withoutNil(body)
}

// withoutNil leaves out of a body what has no value.
func withoutNil(body map[string]any) map[string]any {
	maps.DeleteFunc(body, func(_ string, v any) bool { return v == nil })
	return body
}

// given makes a sync that the scenario builds on.
func (sc *scenario) given(body map[string]any) { sc.newSync(sc.next.rows, body) }

// creates requests a sync and notes it where the service creates one.
func (sc *scenario) creates(rows *dataset, body map[string]any) (made bool) {
	a := sc.api(request{method: "POST", path: "/syncs", body: body})
	if made = accepted(a) && a.id("data", "sync_id") != 0; made {
		sc.noteSync(a, rows, body)
	}
	return made
}

// syncPath is the path of the latest sync.
func (sc *scenario) syncPath() string { return below("syncs", sc.latest().id, "") }

// trial is a request that a scenario is about: the fields that it differs in.
type trial struct {
	fields map[string]any // by path, as JSON has them; nil where one was left out
	answer *answer
	shown  *answer // the resulting sync; nil where none was created
}

func (t *trial) String() string {
	var parts []string
	for field, value := range t.fields {
		parts = append(parts, field+" "+jsonvalue.Brief(value))
	}
	return strings.Join(parts, ", ")
}

// asks creates a sync and notes the fields that it is about.
func (sc *scenario) asks(body, fields map[string]any) {
	sc.tries(fields, sc.creates(sc.next.rows, body))
}

// tries notes the latest request, and what became of the sync.
func (sc *scenario) tries(fields map[string]any, made bool) {
	one := &trial{fields: fields, answer: sc.last()}
	if made {
		one.shown = sc.get(sc.syncPath())
	}
	if sc.judged {
		sc.trials, sc.judged = nil, false
	}
	sc.trials = append(sc.trials, one)
}

func (sc *scenario) clientCreates(t *engine.Table) { sc.asks(sc.laid(sc.draft(), t), sc.asked(t)) }

// eachRow does something with every row of a table by itself.
func eachRow(t *engine.Table, do func(*engine.Table)) {
	for _, row := range t.Rows[1:] {
		do(&engine.Table{Rows: append(t.Rows[:1:1], row)})
	}
}

// clientUpdates sends the whole sync again, with changes.
func (sc *scenario) clientUpdates(t *engine.Table) {
	sc.update(sc.laid(sc.latest().body, t), sc.asked(t))
}

func (sc *scenario) update(body, fields map[string]any) {
	a := sc.api(request{method: "PATCH", path: sc.syncPath(), body: body})
	if accepted(a) && body["validate_only"] != true {
		kept := maps.Clone(sc.latest().body)
		maps.Copy(kept, body)
		sc.latest().body = kept
	}
	sc.tries(fields, accepted(a))
}

// allCompared holds what an answer shows against a table.
func (sc *scenario) allCompared(what string, a *answer, t *engine.Table) error {
	wanted := sc.asked(t)
	for field, value := range wanted {
		sc.compare(what, a, field, value)
	}
	return sc.heldBy(len(wanted), "field")
}

// compare compares one shown field with the written value.
func (sc *scenario) compare(what string, a *answer, field string, wanted any) {
	why := missing(a, field, wanted)
	sc.expect(why == "", fmt.Sprintf("%s shows %s %s", what, field, jsonvalue.Brief(wanted)), why, a)
}

// missing returns what a field of an answer lacks, "" when nothing.
func missing(a *answer, field string, wanted any) string {
	return jsonvalue.Missing(wanted, jsonvalue.Decode(jsonvalue.Down(a.at("data"), field)), field)
}

// eachTrial looks at every request since the last claim; none at all decides nothing.
func (sc *scenario) eachTrial(look func(*trial)) error {
	sc.judged = true
	mustSee(len(sc.trials), "nothing was asked of the service")
	return each(sc, "request", sc.trials, look)
}

func (sc *scenario) allAre(are func(*answer) bool, what string) error {
	return sc.eachTrial(func(t *trial) {
		sc.expect(are(t.answer), "a sync with "+t.String()+" "+what, t.answer.short(), t.answer)
	})
}

// listedAlike compares things of a list with those read by their ids.
func (sc *scenario) listedAlike(path string, read ...*answer) error {
	list := sc.get(sc.filled(path) + "?per_page=100")
	return each(sc, "thing", read, func(one *answer) {
		listed := jsonvalue.Items(list.at("data"))
		i := slices.IndexFunc(listed, func(n *wire.Node) bool { return jsonvalue.SameValue(n.Get("id"), one.at("data", "id")) })
		if i < 0 {
			sc.broken("the list shows what has the id "+jsonvalue.Raw(one.at("data", "id")), "it does not", list)
			return
		}
		same := jsonvalue.SameValue(listed[i], one.at("data"))
		sc.expect(same, "the list shows "+jsonvalue.Raw(one.at("data")), jsonvalue.Raw(listed[i]), list, one)
	})
}
