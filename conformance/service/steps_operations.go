package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/service/internal/endpoint"
	"github.com/destkit/destkit/conformance/service/internal/jsonvalue"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// operationsSteps are for OPER: operations and strategies end to end (spec 4.2, 2.6).
func operationsSteps() []engine.Step {
	return []engine.Step{
		step(`^a sync with operation "([a-z]+)"(?: and (mirror_strategy) "([a-z_]+)")? of$`, func(sc *scenario) any { return sc.aSyncOf }),
		step(`^the source then holds$`, func(sc *scenario) any { return sc.sourceHolds }),
		step(`^the destination already holds$`, func(sc *scenario) any { return sc.alreadyHolds }),
		step(`^the sync no longer maps "([a-z]+)"$`, func(sc *scenario) any { return sc.unmaps }),
		step(`^a client makes a sync with operation "([a-z]+)" and the identifier "([a-z]+)"$`, func(sc *scenario) any { return sc.clientMakes }),
		step(`^the sync is (made|refused)$`, func(sc *scenario) any { return sc.syncIs }),
		step(`^run (\d+) is (completed|failed)$`, func(sc *scenario) any { return sc.runIs }),
		step(`^run (\d+) sends$`, func(sc *scenario) any { return sc.runSends }),
		step(`^run (\d+) sends nothing$`, func(sc *scenario) any { return sc.runSendsNothing }),
		step(`^no record of run (\d+) has the (field|identifier) "([^"]*)"( twice)?$`, func(sc *scenario) any { return sc.noRecordHas }),
		step(`^the destination holds$`, func(sc *scenario) any { return sc.destinationHolds }),
		step(`^every batch has the operation "([a-z]+)"(?: or "([a-z]+)")?$`, func(sc *scenario) any { return sc.everyBatchIs }),
		step(`^no batch of run (\d+) has the operation "([a-z]+)"$`, func(sc *scenario) any { return sc.noBatchIs }),
		step(`^every record of every batch carries the one identifier of its plan$`, func(sc *scenario) any { return sc.identifiersStand }),
	}
}

func (sc *scenario) aSyncOf(operation, setting, value string, rows *engine.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	if err := sc.someDestination(); err != nil {
		return err
	}
	held, err := sc.newDataset(t)
	if err != nil {
		return err
	}
	changes := map[string]any{}
	if setting != "" {
		changes[setting] = value
	}
	_, err = sc.newSync(sc.dest, held, operation, changes)
	return err
}

func (sc *scenario) sourceHolds(rows *engine.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	return sc.holds(sc.latest().rows, t)
}

// alreadyHolds writes into the simulator as another client would.
func (sc *scenario) alreadyHolds(rows *engine.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	if err := sc.someDestination(); err != nil {
		return err
	}
	schema := map[string]rpc.SchemaField{}
	for _, f := range thingFields() {
		schema[f.APIName] = rpc.SchemaField{ActiveIdentifier: f.APIName == t.columns[0], Field: f}
	}
	var records []json.RawMessage
	for _, r := range t.rows {
		records = append(records, jsonvalue.Encode(r))
	}
	reply := sc.dest.CarryOut(jsonvalue.Encode(map[string]any{"jsonrpc": "2.0", "method": rpc.MethodSyncBatch, "id": "before", "params": map[string]any{
		"sync_plan": rpc.SyncPlan{
			Object: rpc.ObjectRef{APIName: thingObject, Label: "Thing"}, Operation: rpc.OperationUpsert, SyncRunID: 1, SyncID: 1, Schema: schema,
		},
		"records": records,
	}}))
	if strings.Count(string(reply), `"success":true`) != len(records) {
		return fmt.Errorf("write into the simulator: %s", reply)
	}
	return nil
}

// changes updates the sync with a whole body (spec 4.1.1).
func (sc *scenario) changes(s *syncing, changed map[string]any) error {
	maps.Copy(s.body, changed)
	_, err := sc.must(request{method: "PATCH", path: "/syncs/" + strconv.FormatInt(s.id, 10), body: s.body})
	return err
}

func (sc *scenario) unmaps(field string) error {
	s := sc.latest()
	var kept []map[string]any
	for _, m := range s.body["mappings"].([]map[string]any) {
		if m["to"] != field {
			kept = append(kept, m)
		}
	}
	return sc.changes(s, map[string]any{"mappings": kept})
}

// clientMakes asks for a sync that may be refused.
func (sc *scenario) clientMakes(operation, identifier string) error {
	if err := sc.someDestination(); err != nil {
		return err
	}
	rows, err := sc.newDataset(numbered(1, 2))
	if err != nil {
		return err
	}
	body := sc.syncBody(sc.dest, rows, operation)
	for _, m := range body["mappings"].([]map[string]any) {
		m["is_primary_identifier"] = m["to"] == identifier
	}
	a, err := sc.api(request{method: "POST", path: "/syncs", body: body})
	if err == nil && a.id("data", "sync_id") > 0 {
		sc.made(thing{kind: "syncs", id: a.id("data", "sync_id"), name: fmt.Sprint(body["label"])})
	}
	return err
}

func (sc *scenario) syncIs(what string) error {
	made := sc.last.OK() && sc.last.Status < 300 && sc.last.id("data", "sync_id") > 0
	refused := sc.last.OK() && sc.last.Status >= 400 && sc.last.Status < 500
	if what == "made" && !made || what == "refused" && !refused {
		sc.broken("the sync is "+what, sc.last.short(), sc.last)
	}
	return sc.HeldBy("HTTP %d", sc.last.Status)
}

// ran is a run of the latest sync as it ended, from 1.
func (sc *scenario) ran(run int) (*answer, error) {
	s := sc.latest()
	if run > len(s.runs) {
		return nil, fmt.Errorf("the scenario has no run %d", run)
	}
	return s.runs[run-1], nil
}

func (sc *scenario) runIs(run int, status string) error {
	a, err := sc.ran(run)
	if err != nil {
		return err
	}
	if got := a.text("data", "status"); got != status {
		sc.broken(fmt.Sprintf("run %d is %s", run, status), fmt.Sprintf("%s: %s", got, a.text("data", "error_message")), a)
	}
	return sc.HeldBy("run %d is %s", run, status)
}

func (sc *scenario) runSendsNothing(run int) error {
	batches, err := sc.batchesOf(sc.latest(), run)
	if err != nil {
		return err
	}
	if len(batches) > 0 {
		sc.brokenCall(fmt.Sprintf("run %s sync_batch for nothing", quantity.Count(run, "call")), fmt.Sprintf("%s of sync_batch", quantity.Count(len(batches), "call")), batches...)
	}
	return sc.HeldBy("%s before", quantity.Count(len(sc.latest().dest.Seen("")), "call"))
}

func (sc *scenario) noRecordHas(run int, what, name, twice string) error {
	records, err := sc.sentIn(run)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "run %d sent no record", run)
	}
	count := 0
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
	want, err := tableOf(rows)
	if err != nil {
		return err
	}
	stored, err := sc.dest.stored(thingObject, want.columns[0])
	if err != nil {
		return err
	}
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
			value := string(got[column])
			if value == "" {
				value = "null"
			}
			if value != string(jsonvalue.Encode(r[column])) {
				sc.brokenCall(fmt.Sprintf("the record %q has %s in %s", id, jsonvalue.Encode(r[column]), column), value, batches...)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		sc.brokenCall(fmt.Sprintf("the destination does not hold %q", id), "it does", batches...)
	}
	return sc.HeldBy("%s as wanted", quantity.Count(len(want.rows), "record"))
}

// someBatches are all of the scenario; none at all decides nothing.
func (sc *scenario) someBatches() ([]*endpoint.Call, error) {
	batches := sc.dest.Batches()
	if len(batches) == 0 {
		return nil, engine.Outcome(conformance.Inconclusive, "", "the service has sent no batch")
	}
	return batches, nil
}

func (sc *scenario) everyBatchIs(one, other string) error {
	batches, err := sc.someBatches()
	if err != nil {
		return err
	}
	for _, c := range batches {
		if got := jsonvalue.Text(c.Param("sync_plan", "operation")); got != one && (other == "" || got != other) {
			sc.brokenCall("the operation "+one+" "+other, jsonvalue.Raw(c.Param("sync_plan", "operation")), c)
		}
	}
	return sc.heldBy(len(batches), "batch")
}

func (sc *scenario) noBatchIs(run int, operation string) error {
	batches, err := sc.batchesOf(sc.latest(), run)
	if err != nil {
		return err
	}
	if len(batches) == 0 {
		return engine.Outcome(conformance.Inconclusive, "", "run %d has sent no batch", run)
	}
	for _, c := range batches {
		if jsonvalue.Text(c.Param("sync_plan", "operation")) == operation {
			sc.brokenCall("no batch with operation "+operation, "one has it", c)
		}
	}
	return sc.heldBy(len(batches), "batch")
}

// identifiersStand looks for the one active identifier of each plan, and for its
// value in each record (spec 4.2).
func (sc *scenario) identifiersStand() error {
	batches, err := sc.someBatches()
	if err != nil {
		return err
	}
	for _, c := range batches {
		active := 0
		if schema := c.Param("sync_plan", "schema"); schema != nil {
			for _, m := range schema.Members {
				if is := m.Value.Get("active_identifier"); is != nil && string(is.Raw) == "true" {
					active++
				}
			}
		}
		if active != 1 {
			sc.brokenCall("one active identifier in the schema of the plan", fmt.Sprintf("%d", active), c)
		}
	}
	for _, r := range unpack(batches) {
		if value := r.fields[activeIdentifier(r.call)]; len(value) == 0 || string(value) == "null" {
			sc.brokenCall("every record carries the identifier", fmt.Sprintf("a record with operation %s does not", r.operation), r.call)
		}
	}
	return sc.heldBy(len(batches), "batch")
}
