package service

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/internal/quantity"
)

// arrivalsSteps are for ARR: what a destination has after real runs (spec 2.6).
func arrivalsSteps() []engine.Step {
	return []engine.Step{
		step(`^an object that can be (mirrored)$`, func(sc *scenario) any { return sc.anObject }),
		step(`^another sync has written into it$`, func(sc *scenario) any { return sc.anotherWrites }),
		step(`^a sync writes to an object with field ordering for each of these:$`, func(sc *scenario) any { return sc.ordersRun }),
		step(`^a table of its own with$`, func(sc *scenario) any { return sc.ownTable }),
		step(`^the table gets a column "([a-z]+)" with "([^"]*)"$`, func(sc *scenario) any { return sc.tableGets }),
		step(`^a live sync of a topic with sync_behavior_family "([A-Za-z]+)"$`, func(sc *scenario) any { return sc.liveSync }),
		step(`^a producer sends$`, func(sc *scenario) any { return sc.producerSends }),

		step(`^every record arrives with its columns in the order that was asked for$`, func(sc *scenario) any { return sc.ordersHeeded }),
		step(`^run (\d+) appends "([^"]*)"$`, func(sc *scenario) any { return sc.runAppends }),
		step(`^the object holds exactly$`, func(sc *scenario) any { return sc.objectHolds }),
		step(`^the sync maps the column "([^"]+)" to the field "([^"]+)"$`, func(sc *scenario) any { return sc.mapsColumn }),
		step(`^the destination was sent, in the order of each identifier$`, func(sc *scenario) any { return sc.wasSent }),
	}
}

// anotherWrites plants records in the object that the scenario is about.
func (sc *scenario) anotherWrites(rows *engine.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	body := map[string]any{"mappings": sc.twoMappings()}
	for _, name := range []string{"destination_attributes", "advanced_configuration"} {
		body[name] = sc.nextSync().over[name]
	}
	return sc.writes(t, body)
}

// ordered is a sync to an object with field ordering, which has run.
type ordered struct {
	sync   *syncing
	order  string   // as it was asked for
	fields []string // in the order of the mappings
}

// ordersRun lets a sync with each order write to a destination of its own.
func (sc *scenario) ordersRun(t *engine.Table) error {
	var all []ordered
	for _, line := range cells(t) {
		if err := sc.anObject("field ordering"); err != nil {
			return err
		}
		one, err := sc.orderRuns(line["field_order"])
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	sc.orders = all
	return nil
}

// orderRuns lets a sync of one row write every field that a value can be made
// for, from a column of the same name.
func (sc *scenario) orderRuns(order string) (one ordered, err error) {
	one.order = order
	rows := table{rows: []row{{}}}
	var mappings []any
	for _, f := range sc.reversedFields() {
		name := jsonvalue.Text(f.Get("full_name"))
		m := mapping(name, name)
		if name == keyFields(sc.nextSync().object)[0] {
			m = identifies(m)
		}
		mappings, one.fields = append(mappings, m), append(one.fields, name)
		rows.columns = append(rows.columns, name)
		rows.rows[0][name] = sampleOf(jsonvalue.Text(f.Get("type")))
	}
	if len(mappings) < 3 {
		return one, engine.Outcome(conformance.NotRun, "", "the object has too few fields to tell orders apart")
	}
	if sc.nextSync().rows, err = sc.newDataset(rows); err != nil {
		return one, err
	}
	body, err := sc.draft()
	if err != nil {
		return one, err
	}
	body["mappings"], body["operation"] = mappings, "append"
	if order != "nothing" {
		body["field_order"] = order
	}
	if one.sync, err = sc.newSync(sc.dest, sc.nextSync().rows, "append", body); err == nil {
		_, err = sc.runs(one.sync)
	}
	return one, err
}

// reversedFields are the fields of the scenario's object that a value can be made
// for, but neither by name nor against it.
func (sc *scenario) reversedFields() []*wire.Node {
	var out []*wire.Node
	for _, f := range itemsOf(sc.nextSync().object.Get("fields")) {
		if isTrue(f.Get("createable")) && !isTrue(f.Get("array")) && sampleOf(jsonvalue.Text(f.Get("type"))) != nil {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *wire.Node) int {
		return strings.Compare(jsonvalue.Text(b.Get("full_name")), jsonvalue.Text(a.Get("full_name")))
	})
	if len(out) > 2 { // the other way round is an order that a mistake may have, too
		out[0], out[1] = out[1], out[0]
	}
	return out
}

// sampleOf is a value of a field's type, nil of one that it does not know.
func sampleOf(kind string) any {
	switch strings.ToLower(kind) {
	case "string":
		return "x"
	case "integer":
		return 7
	case "float", "decimal":
		return 1.5
	}
	return nil
}

func (sc *scenario) ordersHeeded() error {
	for _, one := range sc.orders {
		records, a, err := sc.kept(one.sync.dest, objectOf(one.sync))
		if err != nil {
			return err
		}
		want := slices.Clone(one.fields)
		if one.order != "mapping_order" {
			slices.Sort(want)
		}
		if len(records) == 0 {
			sc.broken("a record with the columns "+strings.Join(want, ", "), "no record arrived", a)
		}
		for _, k := range records {
			var got []string
			for _, m := range k.fields.Members {
				if slices.Contains(want, m.Name) { // the application may add some of its own
					got = append(got, m.Name)
				}
			}
			if !slices.Equal(want, got) {
				sc.broken(fmt.Sprintf("field_order %s: the columns %s", one.order, strings.Join(want, ", ")), strings.Join(got, ", "), a)
			}
		}
	}
	return sc.heldBy(len(sc.orders), "order")
}

// runAppends compares what a run has sent, by the history of the run: an
// application that distinguishes records hides what was sent to it twice.
func (sc *scenario) runAppends(run int, list string) error {
	lines, a, err := sc.history(run, "")
	if err != nil {
		return err
	}
	got, want := []string{}, strings.Fields(strings.ReplaceAll(list, ",", " "))
	for _, l := range lines {
		got = append(got, fmt.Sprint(l.Identifier))
	}
	if slices.Sort(got); !slices.Equal(want, got) {
		sc.broken(fmt.Sprintf("run %d appends %q", run, want), fmt.Sprintf("%q", got), a)
	}
	return sc.HeldBy("run %d appended %s", run, quantity.Count(len(got), "record"))
}

// mapsColumn reads the sync again: mappings that are made by the service are
// shown with it.
func (sc *scenario) mapsColumn(column, field string) error {
	a, err := sc.must(request{method: "GET", path: sc.syncPath()})
	if err != nil {
		return err
	}
	for _, m := range itemsOf(a.at("data", "mappings")) {
		if jsonvalue.Text(m.Get("from", "type")) == "column" && jsonvalue.Text(m.Get("from", "data")) == column && jsonvalue.Text(m.Get("to")) == field {
			return sc.heldBy(len(itemsOf(a.at("data", "mappings"))), "mapping")
		}
	}
	sc.broken(fmt.Sprintf("the sync shows a mapping of the column %q to the field %q", column, field), jsonvalue.Raw(a.at("data", "mappings")), a)
	return sc.Held()
}

// wasSent compares the records of all batches with a table; between different
// identifiers no order is asked for.
func (sc *scenario) wasSent(rows *engine.Table) error {
	want, err := tableOf(rows)
	if err != nil {
		return err
	}
	key, other := want.columns[0], want.columns[1]
	wanted, got := map[string][]string{}, map[string][]string{}
	for _, r := range want.rows {
		id := fmt.Sprint(r[key])
		wanted[id] = append(wanted[id], fmt.Sprint(r[other]))
	}
	batches := sc.dest.Batches()
	for _, r := range unpack(batches) {
		got[r.identifier] = append(got[r.identifier], textOf(r.fields[other]))
	}
	for _, id := range sortedNames(wanted, got) {
		if !slices.Equal(wanted[id], got[id]) {
			sc.brokenCall(fmt.Sprintf("%s is sent with %s %q", id, other, wanted[id]), fmt.Sprintf("%q", got[id]), batches...)
		}
	}
	return sc.HeldBy("%s sent", quantity.Count(len(unpack(batches)), "record"))
}

// sortedNames are the keys of maps, each once.
func sortedNames(maps ...map[string][]string) []string {
	var out []string
	for _, m := range maps {
		for name := range m {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
