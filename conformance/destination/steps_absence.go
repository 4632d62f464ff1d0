package destination

import (
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
)

// symptomLeft is that of records which are there after their delete was acknowledged.
const symptomLeft = "still there after its delete"

func (sc *scenario) noneThere(what string) error {
	if what == "record" {
		return sc.noneExists()
	}
	return sc.nowhereElse()
}

// noneExists: none of the records of the latest batches may be in the destination,
// but those whose delete was not acknowledged.
func (sc *scenario) noneExists() error {
	var records []*record
	for _, s := range sc.sets {
		for _, r := range s.records {
			if e := sc.model.get(r); sc.operationOf(r) == rpc.OperationDelete && (!e.Known || e.Exists) {
				continue // a delete that was not acknowledged removes nothing
			}
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return sc.noneAccepted()
	}
	if sc.readback == nil {
		if err := sc.witnessed(records, false); err != nil {
			return err
		}
		return sc.updatesFind()
	}
	absent := func(s map[string]observed) bool { return len(s) == 0 }
	seen, err := sc.observeUntil(records, absent)
	if err != nil {
		return err
	}
	for _, r := range records {
		if got, ok := seen[exchange.KeyText(r.key)]; ok && got.count > 0 {
			symptom := "still there"
			if sc.operationOf(r) == rpc.OperationDelete {
				symptom, sc.unmet.left = symptomLeft, append(sc.unmet.left, r)
			}
			sc.brokenAs(symptom, sc.lastOperation(), "no record "+string(r.key)+" in the destination", "it is there", sc.replyFor(r))
			continue
		}
		sc.Saw(conformance.SeenAbsent, 1)
		if sc.before[r.place()].count > 0 {
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
func (sc *scenario) updatesFind() error {
	if sc.lastOperation() != rpc.OperationUpdate {
		return nil
	}
	if found, err := sc.finds(rpc.OperationUpdate); err != nil || !found {
		return orError(err, inconclusive("", "an update of a record that is there is refused as well (OPS-007), so that its refusal shows nothing"))
	}
	return nil
}

func (sc *scenario) existOnce() error {
	due := sc.expectations(standing)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if err := sc.needReadbackOf("how many copies of a record there are"); err != nil {
		return err
	}
	seen, err := sc.observe(recordsOf(due))
	if err != nil {
		return err
	}
	for _, e := range due {
		switch n := seen[exchange.KeyText(e.record.key)].count; n {
		case 1:
			sc.Saw(conformance.SeenStored, 1)
		case 0:
			sc.brokenAs(symptomMissing, sc.operationOf(e.record), "one record "+string(e.record.key), "it is not there", sc.replyFor(e.record))
		default:
			sc.brokenByCopies(e.record, n)
		}
	}
	return sc.Held()
}

func (sc *scenario) nowhereElse() error {
	if err := sc.needReadback(); err != nil {
		return err
	}
	due := sc.expectations(written)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	looked := 0
	for _, o := range sc.catalog.objects {
		if o.APIName == sc.object.APIName {
			continue
		}
		for _, id := range o.identifiers() {
			var elsewhere []*record
			for _, e := range due {
				if e.record.id.Type == id.Type {
					elsewhere = append(elsewhere, &record{object: o, id: id, key: e.record.key})
				}
			}
			if len(elsewhere) == 0 {
				continue
			}
			seen, err := sc.observe(elsewhere)
			if err != nil {
				return err
			}
			looked += len(elsewhere)
			for _, r := range elsewhere {
				if seen[exchange.KeyText(r.key)].count > 0 {
					sc.brokenFor(sc.lastOperation(), fmt.Sprintf("%s in %q only", r.key, sc.object.APIName), fmt.Sprintf("%q holds it too", o.APIName), sc.replyFor(due[0].record))
				}
			}
		}
	}
	if looked == 0 {
		return notApplicable("no other object has an identifier of the same type")
	}
	sc.Saw(conformance.SeenAbsent, looked)
	return sc.Held()
}
