package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
)

// sourcesSteps are for SRC, MDL and TPC, source types, models and topics (spec 2.10 to
// 2.12), and for MAP: what a source has, and what of it arrives at a destination (spec 2.7).
func sourcesSteps() []engine.Step {
	return []engine.Step{
		step(`^a client lists the source types$`, (*scenario).listsSourceTypes),
		step(`^a source that streams$`, (*scenario).streams),
		step(`^a topic of a streaming source$`, (*scenario).aTopic),
		step(`^a client creates a (model|topic) with (\{.*\})$`, (*scenario).createsBelow),
		step(`^"([a-z_=]+)" of every ([a-z ]+) shown is its "([a-z_]+)"$`, (*scenario).sameMembers),
		step(`^a client updates the topic with (\{.*\})(, a moment later)?$`, (*scenario).updatesTopic),

		step(`^these rows in the source:$`, (*scenario).rowsAre),

		step(`^a destination with these fields:$`, (*scenario).fieldsAre),

		step(`^every record in the destination has:$`, (*scenario).allStored),
		step(`^the record "([^"]+)" in the destination has:$`, (*scenario).isStored),
	}
}

// listsSourceTypes goes through all pages (spec 2.10, 8).
func (sc *scenario) listsSourceTypes() {
	sc.batch = sc.pages("/source_types", func(a *answer, n *wire.Node) { sc.shows("source type", "list", a, n) })
}

// streams makes a source with topics; {stream} stands for it. Which types of sources
// stream is published nowhere; where this one is unknown, topics cannot be judged.
func (sc *scenario) streams() {
	a := sc.call(request{method: "POST", path: "/sources", body: map[string]any{
		"connection": map[string]any{"name": sc.called("stream"), "type": "topic_log", "credentials": map[string]any{}},
	}})
	if !accepted(a) || a.id("data", "id") == 0 {
		stop(engine.NotRun("", "no source with topics could be made: %s", sc.secrets.String(a.short())))
	}
	sc.madeBy(a)
	sc.says("stream", a.id("data", "id"))
}

// aTopic lets the syncs of the scenario read a topic, all the time. They are
// paused, since nothing is ever sent to it.
func (sc *scenario) aTopic() {
	sc.streams()
	topic := sc.must(request{method: "POST", path: "/sources/" + sc.words["stream"] + "/topics", body: map[string]any{
		"name": sc.called("topic"), "sample_message": map[string]any{"id": "r00001", "name": "name 1"},
	}})
	maps.Copy(sc.nextSync().over, map[string]any{
		"source_attributes": map[string]any{"connection_id": json.RawMessage(sc.words["stream"]), "object": map[string]any{"type": "topic", "id": topic.id("data", "id")}},
		"mode":              map[string]any{"type": "live"}, "paused": true,
	})
}

// createsBelow makes a model of the run's source, or a topic of the one that
// streams.
func (sc *scenario) createsBelow(kind, body string) {
	path := map[string]string{"model": "/sources/{source}/models", "topic": "/sources/{stream}/topics"}[kind]
	a := sc.calling("POST", path, body, request{as: asWorkspace})
	sc.anew(kind)
	sc.shows(kind, "creation", a, a.at("data"))
}

// updatesTopic changes the topic that was made last. There is no other way to
// look at one (spec 4): an empty change shows it as it is.
func (sc *scenario) updatesTopic(change, later string) {
	if sc.words["made"] == "" {
		undecided("the topic could not be made")
	}
	do := func() {
		a := sc.calling("PATCH", "/sources/{stream}/topics/{made}", change, request{as: asWorkspace})
		sc.shows("topic", "update", a, a.at("data"))
	}
	if later == "" {
		sc.anew("topic")
		do()
		return
	}
	sc.later("topic", "updated_at", do)
}

// sameMembers compares two members of one thing.
func (sc *scenario) sameMembers(member, kind, other string) error {
	all := sc.looked(kind)
	for _, v := range all {
		a, b := v.node.Get(member), v.node.Get(other)
		if a == nil || jsonvalue.Raw(a) != jsonvalue.Raw(b) {
			sc.brokenView(v, member, "is "+jsonvalue.Raw(b), jsonvalue.Raw(a))
		}
	}
	return sc.heldBy(len(all), "look")
}

// aMoment bounds how long a time stamp may stand still: those without a
// fraction change every second.
const aMoment = 1300 * time.Millisecond

// later does something until a moment moves on, or for a second.
func (sc *scenario) later(kind, member string, do func()) {
	var first *view
	for deadline := time.Now().Add(aMoment); ; {
		sc.anew(kind)
		if first == nil {
			first = sc.before[kind]
		}
		sc.before[kind] = first
		do()
		all := sc.shown(kind)
		if first == nil || len(all) == 0 || time.Now().After(deadline) || momentOf(all[0].member(member)).After(momentOf(first.member(member))) {
			return
		}
		sc.sleep(pollAtMost)
	}
}

func (sc *scenario) rowsAre(t *engine.Table) {
	sc.nextSync().rows = sc.newDataset(sc.tableOf(t))
}

// allStored holds every record of the source against what the destination has.
func (sc *scenario) allStored(t *engine.Table) error {
	return sc.areStored(lists.Of(sc.nextSync().rows.table.rows, func(r row) string { return fmt.Sprint(r["id"]) }), t)
}

// isStored holds one record of the destination against a table.
func (sc *scenario) isStored(id string, t *engine.Table) error {
	return sc.areStored([]string{id}, t)
}

func (sc *scenario) areStored(ids []string, t *engine.Table) error {
	wanted := sc.asked(t)
	d := sc.latest().dest
	stored, err := d.stored(thingObject, "id")
	if err != nil {
		return err
	}
	for _, id := range ids {
		record, there := stored[id]
		if !there {
			sc.brokenCall(fmt.Sprintf("the record %s is in the destination", id), "it is not", d.Batches()...)
			continue
		}
		for field, value := range wanted {
			if why := jsonvalue.Missing(value, nested(record, field), field); why != "" {
				sc.brokenCall(fmt.Sprintf("the record %s has %s %s", id, field, jsonvalue.Brief(value)), why, d.Batches()...)
			}
		}
	}
	return sc.heldBy(len(ids), "record")
}

// nested is a value of a record: under its whole name, or down the dots of it.
func nested(record map[string]json.RawMessage, field string) any {
	if v, there := record[field]; there {
		return anyOf(v)
	}
	first, rest, deeper := strings.Cut(field, ".")
	var inner map[string]json.RawMessage
	if !deeper || json.Unmarshal(record[first], &inner) != nil {
		return nil
	}
	return nested(inner, rest)
}

// fieldsAre connects a destination whose object has the fields of a table: each
// is an identifier, required, or an ordinary one.
func (sc *scenario) fieldsAre(t *engine.Table) {
	var fields []rpc.Field
	for _, line := range cells(t) {
		fields = append(fields, rpc.Field{
			APIName: line["name"], Label: line["name"], Type: line["type"], Createable: true, Updateable: true,
			Identifier: line["is"] == "identifier", Required: line["is"] != "ordinary",
		})
	}
	sc.connect(connecting{sim: SimulatorConfig{Fields: map[string][]rpc.Field{thingObject: fields}}})
}

func anyOf(text json.RawMessage) any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return v
}

// row is one row of a source by column. Values: string, json.Number, bool or nil.
type row map[string]any

// table is what a dataset is to give: columns in order, and rows.
type table struct {
	columns []string
	rows    []row
}

// query gives the rows as one statement that every SQL source understands.
func (t table) query() string {
	if len(t.rows) == 0 {
		empty := lists.Of(t.columns, func(c string) string { return `'' AS "` + c + `"` })
		return "SELECT " + strings.Join(empty, ", ") + " WHERE 1 = 0"
	}
	var b strings.Builder
	for i, r := range t.rows {
		if i > 0 {
			b.WriteString(" UNION ALL ")
		}
		b.WriteString("SELECT ")
		for j, c := range t.columns {
			if j > 0 {
				b.WriteString(", ")
			}
			b.WriteString(literal(r[c]))
			if i == 0 {
				b.WriteString(` AS "` + c + `"`)
			}
		}
	}
	return b.String()
}

func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	}
	return fmt.Sprint(v)
}

// tableOf reads the rows of a source: a head of columns, the first of which is the
// identifier, and cells as JSON.
func (sc *scenario) tableOf(t *engine.Table) table {
	out := table{columns: slices.Clone(engine.Rows(t)[0])}
	for _, line := range cells(t) {
		r := row{}
		for column, cell := range line {
			value, err := jsonvalue.DecodeAny([]byte(sc.filled(cell))) // a number as it stands there: 7 and not 7.0
			if err != nil {
				stop(fmt.Errorf("read cell %q: %w", cell, err))
			}
			r[column] = value
		}
		out.rows = append(out.rows, r)
	}
	return out
}

// numbered are n rows with ids "r<from>", … and a name each.
func numbered(from, n int) table {
	t := table{columns: []string{"id", "name"}}
	for i := range n {
		t.rows = append(t.rows, row{"id": fmt.Sprintf("r%05d", from+i), "name": fmt.Sprintf("name %d", from+i)})
	}
	return t
}

// dataset is a query of the run's source that a scenario changes as it likes.
type dataset struct {
	id    int64
	name  string
	table table
}

// newDataset makes a dataset with these rows.
func (sc *scenario) newDataset(t table) *dataset {
	d := &dataset{name: sc.called("dataset"), table: t}
	a := sc.must(request{method: "POST", path: "/datasets", body: map[string]any{
		"name": d.name, "type": "sql", "source_id": sc.source, "query": t.query(),
	}})
	d.id = a.id("data", "id")
	sc.made(thing{kind: "datasets", id: d.id})
	return d
}

// holds gives the dataset other rows.
func (sc *scenario) holds(d *dataset, t table) {
	d.table = t
	sc.must(request{method: "PATCH", path: "/datasets/" + strconv.FormatInt(d.id, 10), body: map[string]any{"query": t.query()}})
}
