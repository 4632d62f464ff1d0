package judge

import (
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/cleanup"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// symptomLeft is that of records which are there after their delete was acknowledged.
const symptomLeft = "still there after its delete"

func (sc *Scenario) noneThere(what string) error {
	if what == "record" {
		return sc.noneExists()
	}
	return sc.nowhereElse()
}

// noneExists: none of the records of the latest batches may be in the destination,
// but those whose delete was not acknowledged.
func (sc *Scenario) noneExists() error {
	var records []*write.Record
	for _, s := range sc.Sets {
		for _, r := range s.Records {
			if e := sc.Model.Get(r); sc.operationOf(r) == rpc.OperationDelete && (!e.Known || e.Exists) {
				continue // a delete that was not acknowledged removes nothing
			}
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return sc.noneAccepted()
	}
	if sc.Readback == nil {
		if err := sc.Witnessed(records, false); err != nil {
			return err
		}
		return sc.updatesFind()
	}
	absent := func(s map[string]write.Observed) bool { return len(s) == 0 }
	seen, err := sc.observeUntil(records, absent)
	if err != nil {
		return err
	}
	for _, r := range records {
		if got, ok := seen[exchange.KeyText(r.Key)]; ok && got.Count > 0 {
			symptom := "still there"
			if sc.operationOf(r) == rpc.OperationDelete {
				symptom, sc.Unmet.Left = symptomLeft, append(sc.Unmet.Left, r)
			}
			sc.BrokenAs(symptom, sc.LastOperation(), "no record "+string(r.Key)+" in the destination", "it is there", sc.ReplyFor(r))
			continue
		}
		sc.Saw(conformance.SeenAbsent, 1)
		if sc.Before[r.Place()].Count > 0 {
			sc.Saw(conformance.SeenDeleted, 1)
		}
	}
	if err := sc.Held(); err != nil {
		return err
	}
	return sc.updatesFind()
}

// updatesFind is the control of an update that was skipped: one of a record that is
// there is taken.
func (sc *Scenario) updatesFind() error {
	if sc.LastOperation() != rpc.OperationUpdate {
		return nil
	}
	if found, err := sc.Finds(rpc.OperationUpdate); err != nil || !found {
		return cleanup.OrError(err, engine.Inconclusive("", "an update of a record that is there is refused as well (OPS-007), so that its refusal shows nothing"))
	}
	return nil
}

func (sc *Scenario) existOnce() error {
	due := sc.expectations(standing)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if err := sc.needReadbackOf("how many copies of a record there are"); err != nil {
		return err
	}
	seen, err := sc.Observe(write.RecordsOf(due))
	if err != nil {
		return err
	}
	for _, e := range due {
		switch n := seen[exchange.KeyText(e.Record.Key)].Count; n {
		case 1:
			sc.Saw(conformance.SeenStored, 1)
		case 0:
			sc.BrokenAs(write.SymptomMissing, sc.operationOf(e.Record), "one record "+string(e.Record.Key), "it is not there", sc.ReplyFor(e.Record))
		default:
			sc.brokenByCopies(e.Record, n)
		}
	}
	return sc.Held()
}

func (sc *Scenario) nowhereElse() error {
	if err := sc.NeedReadback(); err != nil {
		return err
	}
	due := sc.expectations(written)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	looked := 0
	for _, o := range sc.Catalog.Objects {
		if o.APIName == sc.Object.APIName {
			continue
		}
		for _, id := range o.Identifiers() {
			var elsewhere []*write.Record
			for _, e := range due {
				if e.Record.ID.Type == id.Type {
					elsewhere = append(elsewhere, &write.Record{Object: o, ID: id, Key: e.Record.Key})
				}
			}
			if len(elsewhere) == 0 {
				continue
			}
			seen, err := sc.Observe(elsewhere)
			if err != nil {
				return err
			}
			looked += len(elsewhere)
			for _, r := range elsewhere {
				if seen[exchange.KeyText(r.Key)].Count > 0 {
					sc.BrokenFor(sc.LastOperation(), fmt.Sprintf("%s in %q only", r.Key, sc.Object.APIName), fmt.Sprintf("%q holds it too", o.APIName), sc.ReplyFor(due[0].Record))
				}
			}
		}
	}
	if looked == 0 {
		return line.NotApplicable("no other object has an identifier of the same type")
	}
	sc.Saw(conformance.SeenAbsent, looked)
	return sc.Held()
}
