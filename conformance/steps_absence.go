package conformance

import (
	"fmt"

	"github.com/destkit/destkit/destsim/rpc"
)

func (w *world) noneThere(what string) error {
	if what == "record" {
		return w.noneExists()
	}
	return w.nowhereElse()
}

// noneExists: none of the records of the latest batches may be in the destination,
// but those whose delete was not acknowledged.
func (w *world) noneExists() error {
	var records []*record
	for _, s := range w.sets {
		for _, r := range s.records {
			if e := w.model.get(r); w.operationOf(r) == rpc.OperationDelete && (!e.known || e.exists) {
				continue // a delete that was not acknowledged removes nothing
			}
			records = append(records, r)
		}
	}
	if len(records) == 0 {
		return w.noneAccepted()
	}
	if w.readback == nil {
		if err := w.witnessed(records, false); err != nil {
			return err
		}
		return w.updatesFind()
	}
	absent := func(s map[string]observed) bool { return len(s) == 0 }
	seen, err := w.observeUntil(records, absent)
	if err != nil {
		return err
	}
	for _, r := range records {
		if got, ok := seen[keyText(r.key)]; ok && got.count > 0 {
			w.brokenAs("still there", w.lastOperation(), "no record "+string(r.key)+" in the destination", "it is there", w.replyFor(r))
			continue
		}
		w.Saw(SeenAbsent, 1)
		if w.before[r.place()].count > 0 {
			w.Saw(SeenDeleted, 1)
		}
	}
	if err := w.held(); err != nil {
		return err
	}
	return w.updatesFind()
}

// updatesFind is the control of an update that was skipped: one of a record that is
// there is taken.
func (w *world) updatesFind() error {
	if w.lastOperation() != rpc.OperationUpdate {
		return nil
	}
	if found, err := w.finds(rpc.OperationUpdate); err != nil || !found {
		return orError(err, inconclusive("", "an update of a record that is there is refused as well (OPS-007), so that its refusal shows nothing"))
	}
	return nil
}

func (w *world) existOnce() error {
	due := w.expectations(standing)
	if len(due) == 0 {
		return w.noneAccepted()
	}
	if err := w.needReadbackOf("how many copies of a record there are"); err != nil {
		return err
	}
	seen, err := w.observe(recordsOf(due))
	if err != nil {
		return err
	}
	for _, e := range due {
		switch n := seen[keyText(e.record.key)].count; n {
		case 1:
			w.Saw(SeenStored, 1)
		case 0:
			w.brokenAs(symptomMissing, w.operationOf(e.record), "one record "+string(e.record.key), "it is not there", w.replyFor(e.record))
		default:
			w.brokenAs("copies", w.operationOf(e.record), "one record "+string(e.record.key), fmt.Sprintf("%d copies of it", n), w.replyFor(e.record))
		}
	}
	return w.held()
}

func (w *world) nowhereElse() error {
	if err := w.needReadback(); err != nil {
		return err
	}
	due := w.expectations(written)
	if len(due) == 0 {
		return w.noneAccepted()
	}
	looked := 0
	for _, o := range w.catalog.objects {
		if o.APIName == w.object.APIName {
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
			seen, err := w.observe(elsewhere)
			if err != nil {
				return err
			}
			looked += len(elsewhere)
			for _, r := range elsewhere {
				if seen[keyText(r.key)].count > 0 {
					w.brokenFor(w.lastOperation(), fmt.Sprintf("%s in %q only", r.key, w.object.APIName), fmt.Sprintf("%q holds it too", o.APIName), w.replyFor(due[0].record))
				}
			}
		}
	}
	if looked == 0 {
		return notApplicable("no other object has an identifier of the same type")
	}
	w.Saw(SeenAbsent, looked)
	return w.held()
}
