package judge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance/internal/discover"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Refusals of values that the declared types permit are below the gate where an endpoint refuses
// them always, and a broken rule where it accepts the same values in another operation or for
// another record.

// valuesAccepted adds a finding for each refused row; a field that is known to want a format is noted only.
func (sc *Scenario) valuesAccepted() error {
	if err := sc.fieldsTakeValues(); err != nil {
		return err
	}
	if !slices.ContainsFunc(sc.Latest, func(b *write.Batch) bool { return slices.ContainsFunc(b.Records, b.Succeeded) }) {
		return sc.noneAccepted() // OPS-007 judges that
	}
	for b, r := range write.Each(sc.Latest) {
		refusal := b.RefusalOf(r)
		oneField := func(o *write.Record) bool { return o.Odd.What == r.Odd.What && len(o.Odd.Fields) == 1 }
		switch {
		case refusal == "" || len(r.Odd.Fields) > 1 && slices.ContainsFunc(sc.Sets[0].Records, oneField): // its fields were sent apart
		case sc.takenAlone(b, r, false):
			sc.refusedInBatch(b, r)
		default:
			sc.refusedValue(b, r, refusal)
		}
	}
	return sc.Held()
}

// takenAlone reports whether the values of a record that was refused among others are taken alone, under another key.
func (sc *Scenario) takenAlone(b *write.Batch, r *write.Record, existing bool) bool {
	if len(b.Records) == 1 {
		return false
	}
	again, err := sc.NewRecord(sc.Object, r.ID)
	if err != nil {
		return false
	}
	for _, f := range r.Odd.Fields {
		again = again.With(f.APIName, r.Values[f.APIName])
	}
	again.Odd = r.Odd
	if existing {
		before, err := sc.beforeIt(r.ID, again)
		if err != nil || !sc.apart().sends(sc.Object.Creating(), before) {
			return false
		}
	}
	return sc.apart().sends(b.Operation, again)
}

// refusedInBatch adds a finding about a record that is taken alone.
func (sc *Scenario) refusedInBatch(b *write.Batch, r *write.Record) {
	sc.BrokenAs(write.SymptomPosition, b.Operation, cmp.Or(r.Odd.What, "a record")+" accepted among other records as it is alone",
		fmt.Sprintf("in a batch of %d it is refused: %s", len(b.Records), foreign.Clip(b.RefusalOf(r), 300)), b.Reply)
	sc.ExplainPosition(fmt.Sprintf("number %d of %d", slices.Index(b.Records, r)+1, len(b.Records)))
}

// fieldsTakeValues reports fields that refuse null like every value. What refuses only what was tried stays undecided.
func (sc *Scenario) fieldsTakeValues() error {
	for _, f := range sc.Object.Fields {
		if l := sc.Object.Lessons[f.APIName]; l != nil && l.Avoid && l.Shut != nil {
			sc.BrokenAs("no value of "+f.APIName, sc.Object.Creating(), fmt.Sprintf("a value accepted in %s, which is declared as %s and createable", f.APIName, declared(f)),
				"every value is refused in the same words, null too: "+foreign.Clip(l.Refusal, 300), l.Shut)
		}
	}
	sc.LeavesOut()
	return sc.Held()
}

func (sc *Scenario) refusedValue(b *write.Batch, r *write.Record, refusal string) {
	if len(r.Odd.Fields) == 0 {
		return
	}
	f, names := r.Odd.Fields[0], lists.Of(r.Odd.Fields, func(f rpc.Field) string { return f.APIName })
	if f.Type == rpc.TypeString && values.Guessed(f) != nil || discover.NamesLimit(refusal, f, string(r.Key)+" "+string(r.Values[f.APIName])) {
		sc.Note("%s takes no %s: %s", quantity.List(names), r.Odd.What, foreign.Clip(refusal, 160))
		return
	}
	sc.BrokenAs("refused "+r.Odd.What, b.Operation,
		fmt.Sprintf("%s accepted in %s, which is declared as %s", r.Odd.What, quantity.List(names), declared(f)),
		fmt.Sprintf("%s is refused: %s", foreign.Clip(string(r.Values[f.APIName]), 80), foreign.Clip(refusal, 300)), b.Reply)
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

// sendsEverywhere sends a record for each row of a table for every purpose of the advertised operations.
func (sc *Scenario) sendsEverywhere(table *engine.Table) error {
	id, err := sc.Object.Identifier()
	if err != nil {
		return err
	}
	sc.Sets, sc.Purposes = nil, nil
	var prepare, due []write.Set
	for _, p := range sc.Object.Purposes(false) {
		creating := sc.Object.Creating()
		if p.Existing && creating == "" {
			continue
		}
		odd, err := sc.withValues(id, table)
		if err != nil {
			return err
		}
		if p.Existing {
			plain := make([]*write.Record, len(odd))
			for i, r := range odd {
				if plain[i], err = sc.beforeIt(id, r); err != nil {
					return err
				}
			}
			prepare = append(prepare, write.Set{Operation: creating, Records: plain})
		}
		due = append(due, write.Set{Operation: p.Operation, Records: write.ForOperation(p.Operation, odd)})
		sc.Purposes = append(sc.Purposes, p)
	}
	if len(due) < 2 {
		return line.NotApplicable("%s has one way of writing only", sc.Object)
	}
	return sc.sendsAfter(prepare, due, &write.Sending{Alone: true}, &write.Sending{Alone: true})
}

// beforeIt is an ordinary record under the identifiers of another one, which is to change it.
func (sc *Scenario) beforeIt(id rpc.Field, r *write.Record) (*write.Record, error) {
	before, err := sc.NewRecord(sc.Object, id)
	if err != nil {
		return nil, err
	}
	for _, f := range sc.Object.Identifiers() {
		if raw, ok := r.Values[f.APIName]; ok {
			before = before.With(f.APIName, raw)
		}
	}
	return before, nil
}

// valuesFareTheSame compares the fate of each row in each operation. A value that only one
// operation refuses is sent again, alone: accepted then, it was refused for the records next to it.
func (sc *Scenario) valuesFareTheSame() error {
	type fate struct {
		purpose write.Purpose
		batch   *write.Batch
		record  *write.Record
	}
	accepted, refused := map[string]fate{}, map[string][]fate{}
	for i, s := range sc.Sets {
		for _, r := range s.Records {
			b := sc.batchWith(r)
			if b == nil || sc.Purposes[i].Existing && !sc.Model.Get(r).Created {
				continue
			}
			at := fate{sc.Purposes[i], b, r}
			switch {
			case b.Succeeded(r):
				if _, is := accepted[r.Odd.What]; !is {
					accepted[r.Odd.What] = at
				}
			case b.Refused(r):
				refused[r.Odd.What] = append(refused[r.Odd.What], at)
			}
		}
	}
	if len(accepted) == 0 {
		return sc.noneAccepted()
	}
	for _, r := range sc.Sets[0].Records {
		here, ok := accepted[r.Odd.What]
		for _, there := range refused[r.Odd.What] {
			if yes, _, _, _ := sc.Accepted(sc.Sets[slices.Index(sc.Purposes, there.purpose)]); !ok || yes == 0 {
				break // DAT-014 and OPS-007 judge values that are refused everywhere
			}
			if sc.takenAlone(there.batch, there.record, there.purpose.Existing) {
				sc.refusedInBatch(there.batch, there.record)
				continue
			}
			sc.BrokenAs("refused "+r.Odd.What, there.batch.Operation,
				fmt.Sprintf("%s accepted in %s, as in %s", r.Odd.What, there.purpose, here.purpose),
				fmt.Sprintf("it is refused: %s", foreign.Clip(there.batch.RefusalOf(there.record), 300)), there.batch.Reply, here.batch.Reply)
		}
		delete(refused, r.Odd.What)
	}
	return sc.Held()
}
