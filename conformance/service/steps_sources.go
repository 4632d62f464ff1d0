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

// sourceSteps are for SRC, MDL and TPC, source types, models and topics (spec 2.10 to
// 2.12), and for MAP: what a source has, and what of it arrives at a destination (spec 2.7).
var sourceSteps = []step{
	{`^a client lists the source types$`, func(sc *scenario) {
		sc.batch = sc.pages("/source_types", func(a *answer, n *wire.Node) { sc.shows("source type", "list", a, n) })
	}},
	{`^a source that streams$`, (*scenario).streams},
	// The topic is read all the time; the syncs are paused, since nothing is ever sent to it.
	{`^a topic of a streaming source$`, func(sc *scenario) {
		sc.streams()
		topic := sc.must(request{method: "POST", path: "/sources/" + sc.words["stream"] + "/topics", body: map[string]any{
			"name": sc.called("topic"), "sample_message": map[string]any{"id": "r00001", "name": "name 1"},
		}})
		object := map[string]any{"type": "topic", "id": topic.id("data", "id")}
		maps.Copy(sc.next.over, map[string]any{
			"source_attributes": map[string]any{"connection_id": json.RawMessage(sc.words["stream"]), "object": object},
			"mode":              map[string]any{"type": "live"}, "paused": true,
		})
	}},
	{`^a client creates a (model|topic) with (\{.*\})$`, func(sc *scenario, kind, body string) {
		path := map[string]string{"model": "/sources/{source}/models", "topic": "/sources/{stream}/topics"}[kind]
		a := sc.calling("POST", path, body, request{})
		sc.anew(kind)
		sc.shows(kind, "creation", a, a.at("data"))
	}},
	// A moment later updated_at moves on. An empty change is the only way to look at a topic (spec 4).
	{`^a client updates the topic with (\{.*\})(, a moment later)?$`, func(sc *scenario, change, later string) {
		mustSee(len(sc.words["made"]), "the topic could not be made")
		const aMoment = 1300 * time.Millisecond // a time stamp without a fraction changes every second
		var first *view
		for deadline := time.Now().Add(aMoment); ; sc.sleep(pollAtMost) {
			sc.anew("topic")
			if first == nil {
				first = sc.before["topic"]
			}
			sc.before["topic"] = first
			a := sc.calling("PATCH", "/sources/{stream}/topics/{made}", change, request{})
			sc.shows("topic", "update", a, a.at("data"))
			if later == "" || first == nil || time.Now().After(deadline) ||
				momentOf(a.at("data", "updated_at")).After(momentOf(first.member("updated_at"))) {
				return
			}
		}
	}},
	{`^these rows in the source:$`, func(sc *scenario, t *engine.Table) { sc.next.rows = sc.newDataset(sc.tableOf(t)) }},
	// Each field is an identifier, required, or an ordinary one.
	{`^a destination with these fields:$`, func(sc *scenario, t *engine.Table) {
		fields := lists.Of(cells(t), func(line map[string]string) rpc.Field {
			return rpc.Field{
				APIName: line["name"], Label: line["name"], Type: line["type"], Createable: true, Updateable: true,
				Identifier: line["is"] == "identifier", Required: line["is"] != "ordinary",
			}
		})
		sc.connect(connecting{sim: SimulatorConfig{Fields: map[string][]rpc.Field{thingObject: fields}}})
	}},

	{`^every record in the destination has:$`, func(sc *scenario, t *engine.Table) error {
		return sc.areStored(lists.Of(sc.next.rows.table.rows, func(r row) string { return fmt.Sprint(r["id"]) }), t)
	}},
	{`^the record "([^"]+)" in the destination has:$`, func(sc *scenario, id string, t *engine.Table) error {
		return sc.areStored([]string{id}, t)
	}},
}

// streams creates a source with topics, {stream}. No list has the types that stream: without this one nothing is judged.
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

// areStored holds records of the destination against a table.
func (sc *scenario) areStored(ids []string, t *engine.Table) error {
	wanted, d := sc.asked(t), sc.latest().dest
	stored := d.stored("id")
	return each(sc, "record", ids, func(id string) {
		record, there := stored[id]
		if !there {
			sc.brokenCall(fmt.Sprintf("the record %s is in the destination", id), "it is not", d.Batches()...)
			return
		}
		for field, value := range wanted {
			n := record.Get(field)
			if n == nil {
				n = jsonvalue.Down(record, field)
			}
			if why := jsonvalue.Missing(value, jsonvalue.Decode(n), field); why != "" {
				sc.brokenCall(fmt.Sprintf("the record %s has %s %s", id, field, jsonvalue.Brief(value)), why, d.Batches()...)
			}
		}
	})
}

// row is one row of a source by column. Values: string, json.Number, bool or nil.
type row map[string]any

// table is the content of a dataset: columns in order, and rows.
type table struct {
	columns []string
	rows    []row
}

// query gives the rows as one statement that every SQL source understands.
func (t table) query() string {
	selected := lists.Of(t.rows, func(r row) string {
		return "SELECT " + strings.Join(lists.Of(t.columns, func(c string) string { return literal(r[c]) + ` AS "` + c + `"` }), ", ")
	})
	if len(selected) == 0 {
		return "SELECT " + strings.Join(lists.Of(t.columns, func(c string) string { return `'' AS "` + c + `"` }), ", ") + " WHERE 1 = 0"
	}
	return strings.Join(selected, " UNION ALL ")
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

// tableOf reads the rows of a source: a head of columns, the identifier first, and cells as JSON.
func (sc *scenario) tableOf(t *engine.Table) table {
	return table{columns: slices.Clone(engine.Rows(t)[0]), rows: lists.Of(cells(t), func(line map[string]string) row {
		r := row{}
		for column, cell := range line {
			value, err := jsonvalue.DecodeAny([]byte(sc.filled(cell))) // a number as written: 7 and not 7.0
			stopAt(err, "read cell %q", cell)
			r[column] = value
		}
		return r
	})}
}

// numbered are n rows with ids "r00001", … and a name each.
func numbered(n int) table {
	t := table{columns: []string{"id", "name"}}
	for i := range n {
		t.rows = append(t.rows, row{"id": fmt.Sprintf("r%05d", i+1), "name": fmt.Sprintf("name %d", i+1)})
	}
	return t
}

// dataset is a query of the run's source that a scenario changes as it likes.
type dataset struct {
	id    int64
	table table
}

// newDataset makes a dataset with these rows.
func (sc *scenario) newDataset(t table) *dataset {
	a := sc.must(request{method: "POST", path: "/datasets", body: map[string]any{
		"name": sc.called("dataset"), "type": "sql", "source_id": sc.source, "query": t.query(),
	}})
	sc.made(thing{kind: "datasets", id: a.id("data", "id")})
	return &dataset{a.id("data", "id"), t}
}

// holds gives the dataset other rows.
func (sc *scenario) holds(d *dataset, t table) {
	d.table = t
	sc.must(request{method: "PATCH", path: below("datasets", d.id, ""), body: map[string]any{"query": t.query()}})
}
