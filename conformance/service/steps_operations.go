package service

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/destsim/rpc"
)

// operationsSteps are for OPER: operations and strategies end to end (spec 4.2, 2.6).
func operationsSteps() []conformance.Step {
	return []conformance.Step{
		step(`^a sync with operation "([a-z]+)"(?: and (mirror_strategy) "([a-z_]+)")? of$`, func(p *play) any { return p.aSyncOf }),
		step(`^the source then holds$`, func(p *play) any { return p.sourceHolds }),
		step(`^the destination already holds$`, func(p *play) any { return p.alreadyHolds }),
		step(`^the sync no longer maps "([a-z]+)"$`, func(p *play) any { return p.unmaps }),
		step(`^a client makes a sync with operation "([a-z]+)" and the identifier "([a-z]+)"$`, func(p *play) any { return p.clientMakes }),
		step(`^the sync is (made|refused)$`, func(p *play) any { return p.syncIs }),
		step(`^run (\d+) is (completed|failed)$`, func(p *play) any { return p.runIs }),
		step(`^run (\d+) sends$`, func(p *play) any { return p.runSends }),
		step(`^run (\d+) sends nothing$`, func(p *play) any { return p.runSendsNothing }),
		step(`^no record of run (\d+) has the (field|identifier) "([^"]*)"( twice)?$`, func(p *play) any { return p.noRecordHas }),
		step(`^the destination holds$`, func(p *play) any { return p.destinationHolds }),
		step(`^every batch has the operation "([a-z]+)"(?: or "([a-z]+)")?$`, func(p *play) any { return p.everyBatchIs }),
		step(`^no batch of run (\d+) has the operation "([a-z]+)"$`, func(p *play) any { return p.noBatchIs }),
		step(`^every record of every batch carries the one identifier of its plan$`, func(p *play) any { return p.identifiersStand }),
	}
}

func (p *play) aSyncOf(operation, setting, value string, rows *conformance.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	if p.dest == nil {
		if _, err := p.connect(connecting{}); err != nil {
			return err
		}
	}
	held, err := p.newDataset(t)
	if err != nil {
		return err
	}
	changes := map[string]any{}
	if setting != "" {
		changes[setting] = value
	}
	_, err = p.newSync(p.dest, held, operation, changes)
	return err
}

func (p *play) sourceHolds(rows *conformance.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	return p.holds(p.latest().rows, t)
}

// alreadyHolds writes into the simulator as somebody else would.
func (p *play) alreadyHolds(rows *conformance.Table) error {
	t, err := tableOf(rows)
	if err != nil {
		return err
	}
	if p.dest == nil {
		if _, err := p.connect(connecting{}); err != nil {
			return err
		}
	}
	schema := map[string]rpc.SchemaField{}
	for _, f := range thingFields() {
		schema[f.APIName] = rpc.SchemaField{ActiveIdentifier: f.APIName == t.columns[0], Field: f}
	}
	var records []json.RawMessage
	for _, r := range t.rows {
		records = append(records, raw(r))
	}
	reply := p.dest.carryOut(raw(map[string]any{"jsonrpc": "2.0", "method": rpc.MethodSyncBatch, "id": "before", "params": map[string]any{
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
func (p *play) changes(s *syncing, changed map[string]any) error {
	maps.Copy(s.body, changed)
	_, err := p.must(request{method: "PATCH", path: "/syncs/" + strconv.FormatInt(s.id, 10), body: s.body})
	return err
}

func (p *play) unmaps(field string) error {
	s := p.latest()
	var kept []map[string]any
	for _, m := range s.body["mappings"].([]map[string]any) {
		if m["to"] != field {
			kept = append(kept, m)
		}
	}
	return p.changes(s, map[string]any{"mappings": kept})
}

// clientMakes asks for a sync that may be refused.
func (p *play) clientMakes(operation, identifier string) error {
	if p.dest == nil {
		if _, err := p.connect(connecting{}); err != nil {
			return err
		}
	}
	rows, err := p.newDataset(numbered(1, 2))
	if err != nil {
		return err
	}
	body := p.syncBody(p.dest, rows, operation)
	for _, m := range body["mappings"].([]map[string]any) {
		m["is_primary_identifier"] = m["to"] == identifier
	}
	a, err := p.api(request{method: "POST", path: "/syncs", body: body})
	if err == nil && a.id("data", "sync_id") > 0 {
		p.made(thing{kind: "syncs", id: a.id("data", "sync_id"), name: fmt.Sprint(body["label"])})
	}
	return err
}

func (p *play) syncIs(what string) error {
	made := p.last.OK() && p.last.Status < 300 && p.last.id("data", "sync_id") > 0
	refused := p.last.OK() && p.last.Status >= 400 && p.last.Status < 500
	if what == "made" && !made || what == "refused" && !refused {
		p.broken("the sync is "+what, p.last.short(), p.last)
	}
	p.Proof("HTTP %d", p.last.Status)
	return p.Held()
}

// ran is a run of the latest sync as it ended, from 1.
func (p *play) ran(run int) (*answer, error) {
	s := p.latest()
	if run > len(s.runs) {
		return nil, fmt.Errorf("the scenario has no run %d", run)
	}
	return s.runs[run-1], nil
}

func (p *play) runIs(run int, status string) error {
	a, err := p.ran(run)
	if err != nil {
		return err
	}
	if got := a.text("data", "status"); got != status {
		p.broken(fmt.Sprintf("run %d is %s", run, status), fmt.Sprintf("%s: %s", got, a.text("data", "error_message")), a)
	}
	p.Proof("run %d is %s", run, status)
	return p.Held()
}

func (p *play) runSendsNothing(run int) error {
	batches, err := p.batchesOf(p.latest(), run)
	if err != nil {
		return err
	}
	if len(batches) > 0 {
		p.brokenCall(fmt.Sprintf("run %d calls sync_batch for nothing", run), fmt.Sprintf("%d calls of sync_batch", len(batches)), batches...)
	}
	p.Proof("%d calls before", len(p.latest().dest.seen("")))
	return p.Held()
}

func (p *play) noRecordHas(run int, what, name, twice string) error {
	records, err := p.sentIn(run)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "run %d sent no record", run)
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
			p.brokenCall(fmt.Sprintf("no record of run %d has the %s %q%s", run, what, name, twice), "one has", r.call)
		}
	}
	p.Proof("%d records", len(records))
	return p.Held()
}

// destinationHolds compares all that is there, in the columns of the table.
func (p *play) destinationHolds(rows *conformance.Table) error {
	want, err := tableOf(rows)
	if err != nil {
		return err
	}
	stored, err := p.dest.stored(thingObject, want.columns[0])
	if err != nil {
		return err
	}
	batches := p.dest.batches()
	for _, r := range want.rows {
		id := r[want.columns[0]].(string)
		got, there := stored[id]
		delete(stored, id)
		if !there {
			p.brokenCall(fmt.Sprintf("the destination holds %q", id), "it does not", batches...)
			continue
		}
		for _, column := range want.columns[1:] {
			value := string(got[column])
			if value == "" {
				value = "null"
			}
			if value != string(raw(r[column])) {
				p.brokenCall(fmt.Sprintf("the record %q has %s in %s", id, raw(r[column]), column), value, batches...)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		p.brokenCall(fmt.Sprintf("the destination does not hold %q", id), "it does", batches...)
	}
	p.Proof("%d records as wanted", len(want.rows))
	return p.Held()
}

// someBatches are all of the scenario; none at all decides nothing.
func (p *play) someBatches() ([]*call, error) {
	batches := p.dest.batches()
	if len(batches) == 0 {
		return nil, conformance.Outcome(conformance.Inconclusive, "", "the service has sent no batch")
	}
	return batches, nil
}

func (p *play) everyBatchIs(one, other string) error {
	batches, err := p.someBatches()
	if err != nil {
		return err
	}
	for _, c := range batches {
		if got := stringOf(c.param("sync_plan", "operation")); got != one && (other == "" || got != other) {
			p.brokenCall("the operation "+one+" "+other, rawOf(c.param("sync_plan", "operation")), c)
		}
	}
	p.Proof("%d batches", len(batches))
	return p.Held()
}

func (p *play) noBatchIs(run int, operation string) error {
	batches, err := p.batchesOf(p.latest(), run)
	if err != nil {
		return err
	}
	if len(batches) == 0 {
		return conformance.Outcome(conformance.Inconclusive, "", "run %d has sent no batch", run)
	}
	for _, c := range batches {
		if stringOf(c.param("sync_plan", "operation")) == operation {
			p.brokenCall("no batch with operation "+operation, "one has it", c)
		}
	}
	p.Proof("%d batches", len(batches))
	return p.Held()
}

// identifiersStand looks for the one active identifier of each plan, and for its
// value in each record (spec 4.2).
func (p *play) identifiersStand() error {
	batches, err := p.someBatches()
	if err != nil {
		return err
	}
	for _, c := range batches {
		active := 0
		if schema := c.param("sync_plan", "schema"); schema != nil {
			for _, m := range schema.Members {
				if is := m.Value.Get("active_identifier"); is != nil && string(is.Raw) == "true" {
					active++
				}
			}
		}
		if active != 1 {
			p.brokenCall("one active identifier in the schema of the plan", fmt.Sprintf("%d", active), c)
		}
	}
	for _, r := range unpack(batches) {
		if value := r.fields[activeIdentifier(r.call)]; len(value) == 0 || string(value) == "null" {
			p.brokenCall("every record carries the identifier", fmt.Sprintf("a record with operation %s does not", r.operation), r.call)
		}
	}
	p.Proof("%d batches", len(batches))
	return p.Held()
}
