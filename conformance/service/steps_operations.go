package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// operationsSteps are for OPER: operations and strategies end to end (spec 4.2, 2.6).
func operationsSteps() []engine.Step {
	return []engine.Step{
		step(`^a sync with operation "([a-z]+)"(?: and mirror_strategy "([a-z_]+)")? of$`, (*scenario).aSyncOf),
		step(`^the source then holds$`, (*scenario).sourceHolds),
		step(`^the destination already holds$`, (*scenario).alreadyHolds),
		step(`^the sync no longer maps "([a-z]+)"$`, (*scenario).unmaps),
		step(`^the sync is (made|refused)$`, (*scenario).syncIs),
		step(`^run (\d+) is (completed|failed)$`, (*scenario).runIs),
		step(`^run (\d+) sends$`, (*scenario).runSends),
		step(`^run (\d+) sends nothing$`, (*scenario).runSendsNothing),
		step(`^no record of run (\d+) has the (field|identifier) "([^"]*)"( twice)?$`, (*scenario).noRecordHas),
		step(`^the destination holds$`, (*scenario).destinationHolds),
		step(`^no batch of run (\d+) has the operation "([a-z]+)"$`, (*scenario).noBatchIs),
	}
}

func (sc *scenario) aSyncOf(operation, strategy string, rows *engine.Table) {
	t := sc.tableOf(rows)
	changes := map[string]any{}
	if strategy != "" {
		changes["mirror_strategy"] = strategy
	}
	sc.syncOfRows(t, operation, changes)
}

func (sc *scenario) sourceHolds(rows *engine.Table) {
	sc.holds(sc.latest().rows, sc.tableOf(rows))
}

// alreadyHolds writes into the simulator as another client would.
func (sc *scenario) alreadyHolds(rows *engine.Table) {
	t := sc.tableOf(rows)
	sc.someDestination()
	schema := map[string]rpc.SchemaField{}
	for _, f := range thingFields() {
		schema[f.APIName] = rpc.SchemaField{ActiveIdentifier: f.APIName == t.columns[0], Field: f}
	}
	records := lists.Of(t.rows, func(r row) json.RawMessage { return jsonvalue.Encode(r) })
	reply := sc.dest.CarryOut(jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "method": rpc.MethodSyncBatch, "id": "before", "params": map[string]any{
		"sync_plan": rpc.SyncPlan{
			Object: rpc.ObjectRef{APIName: thingObject, Label: "Thing"}, Operation: rpc.OperationUpsert, SyncRunID: 1, SyncID: 1, Schema: schema,
		},
		"records": records,
	}}))
	if strings.Count(string(reply), `"success":true`) != len(records) {
		stop(fmt.Errorf("write into the simulator: %s", reply))
	}
}

// changes updates the sync with a whole body (spec 4.1.1).
func (sc *scenario) changes(s *syncing, changed map[string]any) {
	maps.Copy(s.body, changed)
	sc.must(request{method: "PATCH", path: below("syncs", s.id, ""), body: s.body})
}

func (sc *scenario) unmaps(field string) {
	s := sc.latest()
	kept := lists.Where(s.body["mappings"].([]map[string]any), func(m map[string]any) bool { return m["to"] != field })
	sc.changes(s, map[string]any{"mappings": kept})
}

func (sc *scenario) syncIs(what string) error {
	a := sc.last()
	made := a.OK() && a.Status < 300 && a.id("data", "sync_id") > 0
	if what == "made" && !made || what == "refused" && (!a.OK() || a.Status < 400 || a.Status >= 500) {
		sc.broken("the sync is "+what, a.short(), a)
	}
	return sc.HeldBy("HTTP %d", a.Status)
}

// someBatchesOf are those of a run; none at all decides nothing.
func (sc *scenario) someBatchesOf(run int) []*endpoint.Call {
	batches := sc.batchesOf(sc.latest(), run)
	if len(batches) == 0 {
		undecided("run %d has sent no batch", run)
	}
	return batches
}

// ran is a run of the latest sync as it ended, from 1.
func (sc *scenario) ran(run int) *answer {
	s := sc.latest()
	if run > len(s.runs) {
		stop(fmt.Errorf("the scenario has no run %d", run))
	}
	return s.runs[run-1]
}

func (sc *scenario) runIs(run int, status string) error {
	a := sc.ran(run)
	if got := a.text("data", "status"); got != status {
		sc.broken(fmt.Sprintf("run %d is %s", run, status), fmt.Sprintf("%s: %s", got, a.text("data", "error_message")), a)
	}
	return sc.HeldBy("run %d is %s", run, status)
}

func (sc *scenario) runSendsNothing(run int) error {
	batches := sc.batchesOf(sc.latest(), run)
	if len(batches) > 0 {
		sc.brokenCall(fmt.Sprintf("run %d sends nothing", run), fmt.Sprintf("%s of sync_batch", quantity.Count(len(batches), "call")), batches...)
	}
	return sc.HeldBy("%s before", quantity.Count(len(sc.latest().dest.Seen("")), "call"))
}

func (sc *scenario) noRecordHas(run int, what, name, twice string) error {
	records, count := unpack(sc.someBatchesOf(run)), 0
	for _, r := range records {
		_, has := r.fields[name]
		if what == "identifier" {
			has = r.identifier == name
		}
		if has {
			count++
		}
		if has && (twice == "" || count > 1) {
			sc.brokenCall(fmt.Sprintf("no record of run %d has the %s %q%s", run, what, name, twice), "one has", r.call)
		}
	}
	return sc.heldBy(len(records), "record")
}

// destinationHolds compares all that is there, in the columns of the table.
func (sc *scenario) destinationHolds(rows *engine.Table) error {
	want := sc.tableOf(rows)
	for _, id := range sc.holdsAll(want) {
		sc.brokenCall(fmt.Sprintf("the destination does not hold %q", id), "it does", sc.dest.Batches()...)
	}
	return sc.HeldBy("%s as wanted", quantity.Count(len(want.rows), "record"))
}

// allArrived looks for the rows of the source.
func (sc *scenario) allArrived() error {
	want := sc.latest().rows.table
	sc.holdsAll(want)
	return sc.HeldBy("%s as wanted", quantity.Count(len(want.rows), "record"))
}

// holdsAll looks for rows in the destination, and says what else is there.
func (sc *scenario) holdsAll(want table) (more []string) {
	stored, err := sc.dest.stored(thingObject, want.columns[0])
	stop(err)
	batches := sc.dest.Batches()
	for _, r := range want.rows {
		id := r[want.columns[0]].(string)
		got, there := stored[id]
		delete(stored, id)
		if !there {
			sc.brokenCall(fmt.Sprintf("the destination holds %q", id), "it does not", batches...)
			continue
		}
		for _, column := range want.columns[1:] {
			if value := cmp.Or(string(got[column]), "null"); value != string(jsonvalue.Encode(r[column])) {
				sc.brokenCall(fmt.Sprintf("the record %q has %s in %s", id, jsonvalue.Encode(r[column]), column), value, batches...)
			}
		}
	}
	return slices.Sorted(maps.Keys(stored))
}

func (sc *scenario) noBatchIs(run int, operation string) error {
	batches := sc.someBatchesOf(run)
	for _, c := range batches {
		if jsonvalue.Text(c.Param("sync_plan", "operation")) == operation {
			sc.brokenCall("no batch with operation "+operation, "one has it", c)
		}
	}
	return sc.heldBy(len(batches), "batch")
}
