package conformance

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/destsim/rpc"
)

// Values that the declared types permit and that are refused are told as what they
// are: below the gate where an endpoint refuses them always, a broken rule where it
// accepts the same values in another operation or for another record.

// valuesAccepted adds a finding for each refused row, with the fields, the value
// and the message. A field that is known to want a format is noted only.
func (w *world) valuesAccepted() error {
	if !slices.ContainsFunc(w.latest, func(b *batch) bool { return slices.ContainsFunc(b.records, b.succeeded) }) {
		return w.noneAccepted() // OPS-007 judges that
	}
	for _, b := range w.latest {
		for _, r := range b.records {
			refusal := b.refusalOf(r)
			switch {
			case refusal == "" || len(r.odd.fields) > 1 && w.sentApart(r):
			default:
				w.refusedValue(b, r, refusal)
			}
		}
	}
	return w.held()
}

// sentApart reports whether the fields of a refused row were sent again one by one.
func (w *world) sentApart(r *record) bool {
	for _, b := range w.latest {
		for _, o := range b.records {
			if o != r && o.odd.what == r.odd.what && len(o.odd.fields) == 1 {
				return true
			}
		}
	}
	return false
}

func (w *world) refusedValue(b *batch, r *record, refusal string) {
	if len(r.odd.fields) == 0 {
		return
	}
	f := r.odd.fields[0]
	if f.Type == rpc.TypeString && guessed(f) != nil {
		w.note("%s takes no %s: %s", f.APIName, r.odd.what, clip(refusal, 160))
		return
	}
	names := make([]string, len(r.odd.fields))
	for i, f := range r.odd.fields {
		names[i] = f.APIName
	}
	w.brokenAs("refused "+r.odd.what, b.operation,
		fmt.Sprintf("%s accepted in %s, which is declared as %s", r.odd.what, list(names), declared(f)),
		fmt.Sprintf("%s is refused: %s", clip(string(r.values[f.APIName]), 80), clip(refusal, 300)), b.reply)
}

// declared is the type of a field as list_fields declares it.
func declared(f rpc.Field) string {
	text := f.Type
	if f.Array {
		text = "array of " + text
	}
	if !f.Required {
		text += ", not required"
	}
	return text
}

// sendsEverywhere sends a record for each row of a table for every purpose of the
// advertised operations: new ones, and changes of records that are there.
func (w *world) sendsEverywhere(table *Table) error {
	id, err := w.object.identifier()
	if err != nil {
		return err
	}
	w.sets, w.purposes = nil, nil
	var prepare, due []set
	for _, p := range w.object.purposes(false) {
		if p.existing && w.object.creating() == "" {
			continue
		}
		var plain, odd []*record
		for _, row := range table.Rows() {
			r, err := w.withValue(id, row)
			if err != nil {
				return err
			}
			if r == nil {
				continue
			}
			odd = append(odd, r)
			if p.existing {
				before, err := w.beforeIt(id, r)
				if err != nil {
					return err
				}
				plain = append(plain, before)
			}
		}
		if len(odd) == 0 {
			return notApplicable("%s has no field of that type", w.object)
		}
		if len(plain) > 0 {
			prepare = append(prepare, set{w.object.creating(), plain})
		}
		due = append(due, set{p.operation, forOperation(p.operation, odd)})
		w.purposes = append(w.purposes, p)
	}
	if len(due) < 2 {
		return notApplicable("%s has one way of writing only", w.object)
	}
	if len(prepare) > 0 {
		w.sets = prepare
		if err := w.sendSets(&sending{alone: true}); err != nil {
			return err
		}
	}
	w.sets = due
	return w.sendSets(&sending{alone: true})
}

// beforeIt is an ordinary record under the identifiers of another one, which is to
// change it.
func (w *world) beforeIt(id rpc.Field, r *record) (*record, error) {
	before, err := w.newRecord(w.object, id)
	if err != nil {
		return nil, err
	}
	for _, f := range w.object.identifiers() {
		if raw, ok := r.values[f.APIName]; ok {
			before = before.with(f.APIName, raw)
		}
	}
	return before, nil
}

// valuesFareTheSame compares what became of each row in each operation. What is
// refused in one and accepted in another is sent once more, under another key:
// accepted there, it was refused for no reason of its values.
func (w *world) valuesFareTheSame() error {
	type fate struct {
		purpose purpose
		batch   *batch
		record  *record
	}
	accepted, refused := map[string]fate{}, map[string][]fate{}
	for i, s := range w.sets {
		for _, r := range s.records {
			b := w.batchWith(r)
			if b == nil || w.purposes[i].existing && !w.model.get(r).created {
				continue
			}
			at := fate{w.purposes[i], b, r}
			switch {
			case b.succeeded(r):
				if _, is := accepted[r.odd.what]; !is {
					accepted[r.odd.what] = at
				}
			case b.refusalOf(r) != "":
				refused[r.odd.what] = append(refused[r.odd.what], at)
			}
		}
	}
	if len(accepted) == 0 {
		return w.noneAccepted()
	}
	for _, r := range w.sets[0].records {
		here, ok := accepted[r.odd.what]
		for _, there := range refused[r.odd.what] {
			if !ok || !w.operationWorks(there.purpose) {
				break // DAT-014 and OPS-007 judge what is refused everywhere
			}
			w.brokenAs("refused "+r.odd.what, there.batch.operation,
				fmt.Sprintf("%s accepted in %s, as in %s", r.odd.what, there.purpose, here.purpose),
				fmt.Sprintf("it is refused: %s", clip(there.batch.refusalOf(there.record), 300)), there.batch.reply, here.batch.reply)
		}
		delete(refused, r.odd.what)
	}
	return w.held()
}

// operationWorks reports whether anything was accepted for a purpose.
func (w *world) operationWorks(p purpose) bool {
	for i, s := range w.sets {
		if w.purposes[i] == p {
			yes, _, _, _ := w.accepted(s)
			return yes > 0
		}
	}
	return false
}
