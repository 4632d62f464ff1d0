package destination

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// Values that the declared types permit and that are refused are reported as what they
// are: below the gate where an endpoint refuses them always, a broken rule where it
// accepts the same values in another operation or for another record.

// valuesAccepted adds a finding for each refused row, with the fields, the value
// and the message. A field that is known to want a format is noted only.
func (sc *scenario) valuesAccepted() error {
	if err := sc.fieldsTakeValues(); err != nil {
		return err
	}
	if !slices.ContainsFunc(sc.latest, func(b *batch) bool { return slices.ContainsFunc(b.records, b.succeeded) }) {
		return sc.noneAccepted() // OPS-007 judges that
	}
	for _, b := range sc.latest {
		for _, r := range b.records {
			refusal := b.refusalOf(r)
			switch {
			case refusal == "" || len(r.odd.fields) > 1 && sc.sentApart(r):
			case sc.takenAlone(b, r, false):
				sc.refusedInBatch(b, r)
			default:
				sc.refusedValue(b, r, refusal)
			}
		}
	}
	return sc.Held()
}

// takenAlone sends the values of a record that was refused among others once more, alone
// and under another key: where they are taken, they are not what was refused. A change is
// sent for a record that is there.
func (sc *scenario) takenAlone(b *batch, r *record, existing bool) bool {
	if len(b.records) == 1 {
		return false
	}
	again, err := sc.freshOf(r)
	if err != nil {
		return false
	}
	if existing {
		before, err := sc.beforeIt(r.id, again)
		if err != nil {
			return false
		}
		if made, err := sc.apart().writeOne(sc.object.creating(), []*record{before}, plan{}); err != nil || !made.succeeded(before) {
			return false
		}
		again = forOperation(b.operation, []*record{again})[0]
	}
	alone, err := sc.apart().writeOne(b.operation, []*record{again}, plan{})
	return err == nil && alone.succeeded(again)
}

// refusedInBatch adds a finding about a record that is taken alone.
func (sc *scenario) refusedInBatch(b *batch, r *record) {
	sc.brokenAs(symptomPosition, b.operation, cmp.Or(r.odd.what, "a record")+" accepted among other records as it is alone",
		fmt.Sprintf("in a batch of %d it is refused: %s", len(b.records), foreign.Clip(b.refusalOf(r), 300)), b.reply)
	sc.explainPosition(fmt.Sprintf("number %d of %d", slices.Index(b.records, r)+1, len(b.records)))
}

// fieldsTakeValues reports the fields that the trial had to leave out: one that refuses
// null like every value cannot be written at all. What refuses only the values that were
// tried stays undecided.
func (sc *scenario) fieldsTakeValues() error {
	for _, f := range sc.object.Fields {
		if l := sc.object.lessons[f.APIName]; l != nil && l.avoid && l.shut != nil {
			sc.brokenAs("no value of "+f.APIName, sc.object.creating(), fmt.Sprintf("a value accepted in %s, which is declared as %s and createable", f.APIName, declared(f)),
				"every value is refused in the same words, null too: "+foreign.Clip(l.refusal, 300), l.shut)
		}
	}
	sc.leavesOut()
	return sc.Held()
}

// freshOf is a new record with the odd values of another one.
func (sc *scenario) freshOf(r *record) (*record, error) {
	again, err := sc.newRecord(sc.object, r.id)
	if err != nil {
		return nil, err
	}
	for _, f := range r.odd.fields {
		again = again.with(f.APIName, r.values[f.APIName])
	}
	again.odd = r.odd
	return again, nil
}

// leavesOut takes a PASS back where the trial found fields that a check about every
// field cannot use.
func (sc *scenario) leavesOut() {
	for _, f := range sc.object.Fields {
		if l := sc.object.lessons[f.APIName]; l != nil && l.avoid && f.Createable {
			sc.Weaken(inconclusive("fixtures", "%s refuses every value that was tried, so that nothing was seen of it: %s", f.APIName, foreign.Clip(l.refusal, 200)))
		}
	}
}

// sentApart reports whether the fields of a refused row were sent again one by one.
func (sc *scenario) sentApart(r *record) bool {
	for _, b := range sc.latest {
		for _, o := range b.records {
			if o != r && o.odd.what == r.odd.what && len(o.odd.fields) == 1 {
				return true
			}
		}
	}
	return false
}

func (sc *scenario) refusedValue(b *batch, r *record, refusal string) {
	if len(r.odd.fields) == 0 {
		return
	}
	f := r.odd.fields[0]
	if f.Type == rpc.TypeString && values.Guessed(f) != nil {
		sc.Note("%s takes no %s: %s", f.APIName, r.odd.what, foreign.Clip(refusal, 160))
		return
	}
	names := make([]string, len(r.odd.fields))
	for i, f := range r.odd.fields {
		names[i] = f.APIName
	}
	sc.brokenAs("refused "+r.odd.what, b.operation,
		fmt.Sprintf("%s accepted in %s, which is declared as %s", r.odd.what, quantity.List(names), declared(f)),
		fmt.Sprintf("%s is refused: %s", foreign.Clip(string(r.values[f.APIName]), 80), foreign.Clip(refusal, 300)), b.reply)
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
func (sc *scenario) sendsEverywhere(table *engine.Table) error {
	id, err := sc.object.identifier()
	if err != nil {
		return err
	}
	sc.sets, sc.purposes = nil, nil
	var prepare, due []set
	for _, p := range sc.object.purposes(false) {
		if p.existing && sc.object.creating() == "" {
			continue
		}
		var plain []*record
		odd, err := sc.withValues(id, table)
		if err != nil {
			return err
		}
		if len(odd) == 0 {
			return sc.noField(table)
		}
		for _, r := range odd {
			if p.existing {
				before, err := sc.beforeIt(id, r)
				if err != nil {
					return err
				}
				plain = append(plain, before)
			}
		}
		if len(plain) > 0 {
			prepare = append(prepare, set{sc.object.creating(), plain})
		}
		due = append(due, set{p.operation, forOperation(p.operation, odd)})
		sc.purposes = append(sc.purposes, p)
	}
	if len(due) < 2 {
		return notApplicable("%s has one way of writing only", sc.object)
	}
	if len(prepare) > 0 {
		sc.sets = prepare
		if err := sc.sendSets(&sending{alone: true}); err != nil {
			return err
		}
	}
	sc.sets = due
	return sc.sendSets(&sending{alone: true})
}

// beforeIt is an ordinary record under the identifiers of another one, which is to
// change it.
func (sc *scenario) beforeIt(id rpc.Field, r *record) (*record, error) {
	before, err := sc.newRecord(sc.object, id)
	if err != nil {
		return nil, err
	}
	for _, f := range sc.object.identifiers() {
		if raw, ok := r.values[f.APIName]; ok {
			before = before.with(f.APIName, raw)
		}
	}
	return before, nil
}

// valuesFareTheSame compares what became of each row in each operation. What is
// refused in one and accepted in another is sent once more, alone: accepted then, it was
// refused for the records next to it.
func (sc *scenario) valuesFareTheSame() error {
	type fate struct {
		purpose purpose
		batch   *batch
		record  *record
	}
	accepted, refused := map[string]fate{}, map[string][]fate{}
	for i, s := range sc.sets {
		for _, r := range s.records {
			b := sc.batchWith(r)
			if b == nil || sc.purposes[i].existing && !sc.model.get(r).Created {
				continue
			}
			at := fate{sc.purposes[i], b, r}
			switch {
			case b.succeeded(r):
				if _, is := accepted[r.odd.what]; !is {
					accepted[r.odd.what] = at
				}
			case b.refused(r):
				refused[r.odd.what] = append(refused[r.odd.what], at)
			}
		}
	}
	if len(accepted) == 0 {
		return sc.noneAccepted()
	}
	for _, r := range sc.sets[0].records {
		here, ok := accepted[r.odd.what]
		for _, there := range refused[r.odd.what] {
			if !ok || !sc.operationWorks(there.purpose) {
				break // DAT-014 and OPS-007 judge what is refused everywhere
			}
			if sc.takenAlone(there.batch, there.record, there.purpose.existing) {
				sc.refusedInBatch(there.batch, there.record)
				continue
			}
			sc.brokenAs("refused "+r.odd.what, there.batch.operation,
				fmt.Sprintf("%s accepted in %s, as in %s", r.odd.what, there.purpose, here.purpose),
				fmt.Sprintf("it is refused: %s", foreign.Clip(there.batch.refusalOf(there.record), 300)), there.batch.reply, here.batch.reply)
		}
		delete(refused, r.odd.what)
	}
	return sc.Held()
}

// operationWorks reports whether anything was accepted for a purpose.
func (sc *scenario) operationWorks(p purpose) bool {
	for i, s := range sc.sets {
		if sc.purposes[i] == p {
			yes, _, _, _ := sc.accepted(s)
			return yes > 0
		}
	}
	return false
}
