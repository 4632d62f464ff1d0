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
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// recordSteps are for OPER, operations and strategies (spec 4.2, 2.6), and RTRY, records sent again (spec 7.2.4, 7.2.5).
var recordSteps = []step{
	{`^a sync with operation "([a-z]+)"(?: and mirror_strategy "([a-z_]+)")? of$`,
		func(sc *scenario, operation, strategy string, rows *engine.Table) {
			changes := map[string]any{}
			if strategy != "" {
				changes["mirror_strategy"] = strategy
			}
			sc.syncOfRows(sc.tableOf(rows), operation, changes)
		}},
	{`^the source then holds$`, func(sc *scenario, rows *engine.Table) { sc.holds(sc.latest().rows, sc.tableOf(rows)) }},
	// It was written by another client.
	{`^the destination already holds$`, func(sc *scenario, rows *engine.Table) {
		t := sc.tableOf(rows)
		sc.someDestination()
		schema := map[string]rpc.SchemaField{}
		for _, f := range thingFields() {
			schema[f.APIName] = rpc.SchemaField{ActiveIdentifier: f.APIName == t.columns[0], Field: f}
		}
		records := lists.Of(t.rows, func(r row) json.RawMessage { return jsonvalue.Encode(r) })
		reply := sc.dest.carryOut("before", rpc.SyncPlan{
			Object: rpc.ObjectRef{APIName: thingObject, Label: "Thing"}, Operation: rpc.OperationUpsert, SyncRunID: 1, SyncID: 1, Schema: schema,
		}, records)
		if strings.Count(string(reply), `"success":true`) != len(records) {
			stop(fmt.Errorf("write into the simulator: %s", reply))
		}
	}},
	{`^the sync (no longer|also) maps "([a-z]+)"$`, func(sc *scenario, how, column string) {
		s := sc.latest()
		mappings := lists.Where(s.body["mappings"].([]map[string]any), func(m map[string]any) bool { return m["to"] != column })
		if how == "also" {
			mappings = append(mappings, mapping(column, column))
		}
		sc.changes(s, map[string]any{"mappings": mappings})
	}},
	// Another URL leads to the same simulator.
	{`^the URL of the destination changes$`, func(sc *scenario) {
		sc.dest.url += "/moved"
		sc.must(request{method: "PATCH", path: below("destinations", sc.dest.id, ""), body: sc.dest.connection(nil)})
	}},

	{`^the sync is (made|refused)$`, (*scenario).syncIs},
	{`^run (\d+) sends$`, (*scenario).runSends},
	{`^run (\d+) sends nothing$`, func(sc *scenario, run int) error {
		batches := sc.batchesOf(run)
		actual := quantity.Count(len(batches), "call") + " of sync_batch"
		sc.expectCall(len(batches) == 0, fmt.Sprintf("run %d sends nothing", run), actual, batches...)
		return sc.HeldBy("%s before", quantity.Count(len(sc.latest().dest.Seen("")), "call"))
	}},
	{`^(?:run (\d+)|the sync) sends "([^"]*)" (once|more than once)$`, func(sc *scenario, number, id, often string) error {
		batches := sc.latest().dest.Batches()
		if run, err := strconv.Atoi(number); err == nil {
			batches = sc.batchesOf(run)
		}
		records := lists.Where(unpack(batches), func(r sent) bool { return r.identifier == id })
		is := len(records) == 1
		if often == "more than once" {
			is = len(records) > 1
		}
		sc.expectCall(is, fmt.Sprintf("the sync sends %q %s", id, often), quantity.Count(len(records), "time"), callsOf(records)...)
		return sc.HeldBy("%q is sent %s", id, quantity.Count(len(records), "time"))
	}},
	{`^no record of run (\d+) has the (field|identifier) "([^"]*)"( twice)?$`, func(sc *scenario, run int, what, name, twice string) error {
		count := 0
		return each(sc, "record", unpack(sc.someBatchesOf(run)), func(r sent) {
			has := r.record.Get(name) != nil
			if what == "identifier" {
				has = r.identifier == name
			}
			if has {
				count++
			}
			if has && (twice == "" || count > 1) {
				sc.brokenCall(fmt.Sprintf("no record of run %d has the %s %q%s", run, what, name, twice), "one has", r.call)
			}
		})
	}},
	{`^no batch of run (\d+) has the operation "([a-z]+)"$`, func(sc *scenario, run int, operation string) error {
		return each(sc, "batch", sc.someBatchesOf(run), func(c *endpoint.Call) {
			sc.expectCall(operationOf(c) != operation, "no batch with operation "+operation, "one has it", c)
		})
	}},
	{`^the waits between the batches of run (\d+) grow$`, func(sc *scenario, run int) error {
		// Backoffs double, and may be shortened by chance.
		const growth = 1.2
		batches := sc.batchesOf(run)
		var waits []time.Duration
		for i := 1; i < len(batches); i++ {
			before, _ := sc.dest.timeOf(batches[i-1])
			now, _ := sc.dest.timeOf(batches[i])
			waits = append(waits, now.Sub(before))
		}
		if len(waits) < 2 {
			undecided("no waits that could grow: %s seen", quantity.Count(len(batches), "batch"))
		}
		grow := true
		for i := 1; i < len(waits); i++ {
			grow = grow && float64(waits[i]) >= growth*float64(waits[i-1])
		}
		sc.expectCall(grow, "each wait is longer than the one before", fmt.Sprintf("waits of %v", waits), batches...)
		return sc.HeldBy("waits of %v", waits)
	}},
	{`^the destination holds$`, func(sc *scenario, rows *engine.Table) error { return sc.holdsAll(sc.tableOf(rows), true) }},
	{`^every record of the source is in the destination$`, func(sc *scenario) error {
		return sc.holdsAll(sc.latest().rows.table, false)
	}},
}

// sent is one record of a sync_batch.
type sent struct {
	call       *endpoint.Call
	identifier string // the text of the active identifier
	record     *wire.Node
}

// unpack gives the records of batches in the order of their arrival.
func unpack(batches []*endpoint.Call) []sent {
	var out []sent
	for _, c := range batches {
		field := activeIdentifier(c)
		for _, r := range c.Records() {
			out = append(out, sent{c, jsonvalue.Plain(r.Get(field)), r})
		}
	}
	return out
}

// callsOf are the calls that records came with, each once.
func callsOf(records []sent) []*endpoint.Call {
	return slices.Compact(lists.Of(records, func(r sent) *endpoint.Call { return r.call }))
}

// identifiersIn are the texts of the identifiers of batches.
func identifiersIn(batches ...*endpoint.Call) []string {
	return lists.Of(unpack(batches), func(r sent) string { return r.identifier })
}

// activeIdentifier names the identifier of a batch by its schema, "" where the plan has none.
func activeIdentifier(c *endpoint.Call) string {
	for _, m := range jsonvalue.Members(c.Param("sync_plan", "schema")) {
		if isTrue(m.Value.Get("active_identifier")) {
			return m.Name
		}
	}
	return ""
}

// syncOf returns which sync a batch belongs to.
func syncOf(c *endpoint.Call) string { return jsonvalue.Raw(c.Param("sync_plan", "sync_id")) }

func operationOf(c *endpoint.Call) string { return jsonvalue.Text(c.Param("sync_plan", "operation")) }

// batchesOf are the batches of a run of the latest sync, from 1.
func (sc *scenario) batchesOf(run int) []*endpoint.Call {
	s := sc.latest()
	sc.ran(run)
	from := 0
	if run > 1 {
		from = s.marks[run-2]
	}
	return s.dest.Batches()[from:s.marks[run-1]]
}

// someBatchesOf are those of a run; none at all decides nothing.
func (sc *scenario) someBatchesOf(run int) []*endpoint.Call {
	batches := sc.batchesOf(run)
	mustSee(len(batches), "run %d has sent no batch", run)
	return batches
}

// changes updates the sync with a whole body (spec 4.1.1).
func (sc *scenario) changes(s *syncing, changed map[string]any) {
	maps.Copy(s.body, changed)
	sc.must(request{method: "PATCH", path: below("syncs", s.id, ""), body: s.body})
}

func (sc *scenario) syncIs(what string) error {
	a := sc.last()
	is := a.OK() && a.Status >= 400 && a.Status < 500
	if what == "made" {
		is = a.OK() && a.Status < 300 && a.id("data", "sync_id") > 0
	}
	sc.expect(is, "the sync is "+what, a.short(), a)
	return sc.HeldBy("HTTP %d", a.Status)
}

// runSends compares what a run sent with a table of operations and identifiers, each exactly as often.
func (sc *scenario) runSends(run int, want *engine.Table) error {
	got := unpack(sc.batchesOf(run))
	var said []string
	left := map[string]int{}
	for _, line := range engine.Rows(want) {
		said = append(said, line[0]+" "+line[1])
		for id := range strings.FieldsSeq(line[1]) {
			left[line[0]+" "+id]++
		}
	}
	expected := fmt.Sprintf("run %d sends %s", run, strings.Join(said, ", "))
	for _, r := range got {
		key := operationOf(r.call) + " " + r.identifier
		left[key]--
		sc.expectCall(left[key] >= 0, expected, fmt.Sprintf("it also sends %s (or sends it more often)", key), r.call)
	}
	maps.DeleteFunc(left, func(_ string, n int) bool { return n <= 0 })
	missing := slices.Sorted(maps.Keys(left))
	sc.expectCall(len(missing) == 0, expected, "it does not send "+strings.Join(missing, ", "), callsOf(got)...)
	return sc.HeldBy("run %d: %s", run, quantity.Count(len(got), "record"))
}

// holdsAll looks for rows in the destination, which holds no others where they are alone.
func (sc *scenario) holdsAll(want table, alone bool) error {
	stored, batches := sc.dest.stored(want.columns[0]), sc.dest.Batches()
	for _, r := range want.rows {
		id := r[want.columns[0]].(string)
		got, there := stored[id]
		delete(stored, id)
		if !there {
			sc.brokenCall(fmt.Sprintf("the destination holds %q", id), "it does not", batches...)
			continue
		}
		for _, column := range want.columns[1:] {
			wanted, value := string(jsonvalue.Encode(r[column])), "null"
			if n := got.Get(column); n != nil {
				value = string(n.Raw)
			}
			sc.expectCall(value == wanted, fmt.Sprintf("the record %q has %s in %s", id, wanted, column), value, batches...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		sc.expectCall(!alone, fmt.Sprintf("the destination does not hold %q", id), "it does", batches...)
	}
	return sc.HeldBy("%s as wanted", quantity.Count(len(want.rows), "record"))
}
