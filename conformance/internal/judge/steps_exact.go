package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// storedExactly judges the stored values; a missing record is a finding too.
func (sc *Scenario) storedExactly() error {
	if err := sc.unanswered(); err != nil {
		return err
	}
	sc.statementsEnded()
	due, err := sc.due()
	if err != nil {
		return err
	}
	seen, err := sc.observeDue("which values are stored", due, func(s map[string]write.Observed) bool {
		return len(notThere(due, s)) == 0 && len(sc.differences(due, s)) == 0
	})
	if err != nil {
		return err
	}
	for _, d := range sc.differences(due, seen) {
		if d.Symptom == symptomOldValue {
			sc.Unmet.Stale = append(sc.Unmet.Stale, d)
		} else {
			sc.Unmet.Altered = append(sc.Unmet.Altered, d.Record.Place())
		}
		sc.brokenValue(d)
	}
	sc.Saw(conformance.SeenStored, len(due)-len(notThere(due, seen)))
	sc.sawChanged(due, seen)
	return sc.Held()
}

// statementsEnded looks at refusals: a value that ends a statement was not bound.
func (sc *Scenario) statementsEnded() {
	for b, r := range write.Each(sc.Latest) {
		said := b.RefusalOf(r)
		switch cause, _ := causes.Of(causes.Message{Text: said, Names: sc.NamesOf(b.Reply)}); cause.Name {
		case causes.StatementFromText:
			sc.BrokenAs("statement", b.Operation, "the value stored as it is, or refused as a value", "it became part of a statement: "+foreign.Clip(said, 200), b.Reply)
		case causes.UnquotedName:
			sc.BrokenAs("statement", b.Operation, "the value stored, whatever its field is called", "the statement is wrong: "+foreign.Clip(said, 200), b.Reply)
		}
	}
}

// needReadbackOf is INCONCLUSIVE without a read-back hook.
func (sc *Scenario) needReadbackOf(what string) error {
	if sc.Readback == nil {
		return engine.Inconclusive("readback", "only a read-back shows %s: give --readback-url or --readback-command", what)
	}
	return nil
}

// brokenValue adds a finding about a value. Its cause follows from what became of it.
func (sc *Scenario) brokenValue(d write.Difference) {
	cause, fix := d.Cause, d.Fix
	if cause == "" {
		cause, fix = d.Class.Cause()
	}
	_, known := sc.j.exact.Load(exactValue{d.Record.Object.APIName, d.Field, string(d.Pair.Sent)})
	if kept, _ := hook.SameValue(d.Pair.Field, d.Record.Odd.Nearly, d.Pair.Stored); known && kept {
		cause = "the change is left out: old and new are compared loosely (as doubles, without case, spaces or order, or in part), or the same values were sent " +
			"before and are remembered; or the operation changes the value on its way. A new record keeps it."
		fix = "write what is sent, or compare exactly before a change is left out."
	} else if known && sc.full && d.Cause == "" && d.Class != values.OtherRecord {
		cause = "a small batch stores this value as it was sent, and one of the declared size does not: large batches take another path (a bulk statement, a file), and there " + cmp.Or(cause, "it is changed.")
	}
	sc.brokenBy(write.Cause{Text: cause, Fix: fix}, d.Symptom, sc.operationOf(d.Record), d.Expected, d.Actual, sc.ReplyFor(d.Record))
}

// differences compares the values of the records that are there.
func (sc *Scenario) differences(due []*write.Expected, seen map[string]write.Observed) []write.Difference {
	var out []write.Difference
	for _, e := range due {
		got := seen[exchange.KeyText(e.Record.Key)]
		if got.Count == 0 {
			continue
		}
		from := len(out)
		for _, name := range slices.Sorted(maps.Keys(e.Values)) {
			if len(e.Record.Odd.Fields) > 0 && !slices.ContainsFunc(e.Record.Odd.Fields, func(f rpc.Field) bool { return f.APIName == name }) {
				continue // the row is about other fields
			}
			if !sc.fieldDiffers(e, name, got) {
				if len(e.Record.Odd.Fields) > 0 {
					sc.j.exact.Store(exactValue{e.Record.Object.APIName, name, string(e.Values[name])}, true)
				}
				continue
			}
			p := sc.pair(e, name, got)
			for b, o := range write.Each(sc.Batches) { // a value that an earlier batch has lost, too, is no old one
				sent := o.Values[name]
				if sent == nil || model.OrNull(p.Stored) != "null" || string(o.Key) != string(e.Record.Key) || slices.Contains(sc.Latest, b) || !b.Succeeded(o) {
					continue
				}
				if p.Before = nil; string(sent) == "null" {
					p.Before = sent
				}
			}
			for _, o := range due {
				if o != e {
					p.Records = append(p.Records, o.Values[name])
				}
			}
			d := DifferenceOf(e.Record, p)
			if d.Class == values.OtherRecord {
				c := takenForOne(e, due, p)
				d.Cause, d.Fix = cmp.Or(c.Text, d.Cause), cmp.Or(c.Fix, d.Fix)
			}
			if sc.MeetsFolded(e.Record) {
				d.Symptom = write.SymptomRenamed
			}
			out = append(out, d)
		}
		// What a flag or a date of a record has instead shows less than one difference that
		// shows the cause of the whole.
		ofOne := out[from:]
		if i := slices.IndexFunc(ofOne, func(d write.Difference) bool { return d.Class == values.OtherRecord && d.Cause != "" }); i >= 0 {
			for k := range ofOne {
				ofOne[k].Cause, ofOne[k].Fix = ofOne[i].Cause, ofOne[i].Fix
			}
		}
	}
	ofOneField(out)
	return out
}

// ofOneField gives differences of a field the class of one change that explains all of them.
func ofOneField(all []write.Difference) {
	for i, d := range all {
		same := lists.Where(all, func(o write.Difference) bool { return o.Field == d.Field && o.Record.Object == d.Record.Object })
		what := values.OfAll(lists.Of(same, func(o write.Difference) values.Pair { return o.Pair }))
		constant := what.Class == values.Constant || what.Class == values.Dropped
		vague := slices.Contains([]values.Class{values.Other, values.Retyped, values.Null, values.Dropped}, d.Class)
		added := func(o write.Difference) bool { return o.Class == values.Added }
		if what.Class != "" && d.Class != values.Older && (vague || !constant) {
			all[i].Class, all[i].Actual = what.Class, shownAs(d.Pair, what.How)
		} else if d.Class == values.Older && string(d.Pair.Sent) == "[]" && slices.ContainsFunc(same, added) {
			all[i].Class, all[i].Symptom = values.Added, "value of "+d.Field
		}
	}
}

// alikeKeys is the cause where keys that differ in one way name one record.
func alikeKeys(how string) write.Cause {
	return write.Cause{
		Text: fmt.Sprintf("identifiers that differ %s are taken for one record (a collation, a pattern, a column of numbers, or a key that is tidied up or put into a URL).", how),
		Fix:  "compare identifiers exactly, or fail the record.",
	}
}

// takenForOne is the cause where a value is that of a record whose key is nearly the same.
func takenForOne(e *write.Expected, due []*write.Expected, p values.Pair) write.Cause {
	for _, o := range due {
		if o.Record.ID.APIName != e.Record.ID.APIName || values.Text(o.Values[p.Field.APIName]) != values.Text(p.Stored) {
			continue
		}
		if how := values.AlikeKeys(exchange.KeyText(e.Record.Key), exchange.KeyText(o.Record.Key)); how != "" {
			return alikeKeys(how)
		}
	}
	return write.Cause{}
}

// DifferenceOf describes what became of a value.
func DifferenceOf(r *write.Record, p values.Pair) write.Difference {
	what := values.Classify(p)
	sent, _ := values.Apart(p.Sent, p.Stored)
	d := write.Difference{
		Record: r, Field: p.Field.APIName, Class: what.Class, Pair: p, Symptom: "value of " + p.Field.APIName, Actual: shownAs(p, what.How),
		Expected: fmt.Sprintf("%s of %s stored as %s", p.Field.APIName, foreign.Clip(string(r.Key), 60), foreign.Clip(sent, 160)),
	}
	d.Cause, d.Fix = write.HookShows(p)
	recent := func(raw json.RawMessage) write.Cause { return ownValue(p.Field, values.Text(raw)) }
	if c := recent(p.Stored); c.Text != "" && recent(p.Sent).Text == "" && string(p.Sent) != "null" && len(r.Odd.Fields) == 0 {
		d.Cause, d.Fix = c.Text, c.Fix
	}
	if r.Odd.Key && what.Class == values.OtherRecord {
		d.Cause, d.Fix = keysMerged.Text, keysMerged.Fix
	}
	switch {
	case what.Class == values.Older:
		d.Symptom = symptomOldValue
	case p.Stored == nil:
		d.Symptom, d.Actual = "no value of "+p.Field.APIName, what.How
	case string(p.Stored) == "null":
		d.Symptom = "no value of " + p.Field.APIName
	}
	return d
}

// shownAs is a value as a read-back shows it, with what became of it.
func shownAs(p values.Pair, how string) string {
	_, stored := values.Apart(p.Sent, p.Stored)
	return strings.TrimSuffix("it is "+foreign.Clip(stored, 160)+": "+how, ": ")
}

// pair is a value of a record as it was sent and as it is shown.
func (sc *Scenario) pair(e *write.Expected, name string, got write.Observed) values.Pair {
	p := values.Pair{Field: e.Record.Object.FieldOrNew(name), Sent: e.Values[name], Stored: got.Fields[name], Beside: e.Record.Values}
	if before, ok := sc.Before[e.Record.Place()]; ok && e.Changes > 0 && e.Record.Odd.Nearly == nil {
		p.Before = before.Fields[name]
	}
	return p
}

// fieldDiffers reports whether a field is not as it was sent, and notes permitted losses.
func (sc *Scenario) fieldDiffers(e *write.Expected, name string, got write.Observed) bool {
	p := sc.pair(e, name, got)
	if sc.Hides(e.Record.Object.APIName, name) {
		sc.Note("%s is not compared: a read-back cannot show it", name)
		return false
	}
	if p.Stored == nil {
		return string(p.Sent) != "null" // hooks may leave null fields out
	}
	same, note := hook.SameValue(p.Field, p.Sent, p.Stored)
	if note != "" {
		sc.Note("%s: %s", name, note)
	}
	return !same
}
