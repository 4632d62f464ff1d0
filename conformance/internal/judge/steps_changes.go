package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// haveChanged: a record that was given other values and is in each field as before was not changed. Single fields
// are for the checks about values.
func (sc *Scenario) haveChanged() error {
	due, err := sc.due()
	if err != nil {
		return err
	}
	kept := func(s map[string]write.Observed) []write.Difference {
		return sc.same(lists.Where(due, func(e *write.Expected) bool { return !sc.differs(e, s) }), s)
	}
	seen, err := sc.observeDue("whether a record has changed", due, func(s map[string]write.Observed) bool { return len(kept(s)) == 0 })
	if err != nil {
		return err
	}
	stale := kept(seen)
	sc.Unmet.Stale = append(sc.Unmet.Stale, stale...)
	for _, d := range stale {
		sc.brokenValue(d)
	}
	sc.sawChanged(due, seen)
	return sc.Held()
}

// sawChanged counts the records that are not as they were before.
func (sc *Scenario) sawChanged(due []*write.Expected, seen map[string]write.Observed) {
	for _, e := range due {
		if sc.differs(e, seen) {
			sc.Saw(conformance.SeenChanged, 1)
		}
	}
}

// same are the fields that were given another value and have the one of before.
func (sc *Scenario) same(due []*write.Expected, seen map[string]write.Observed) []write.Difference {
	var out []write.Difference
	for _, e := range due {
		got, before := seen[exchange.KeyText(e.Record.Key)], sc.Before[e.Record.Place()]
		if got.Count == 0 || before.Count == 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.Record.Values)) {
			f, _ := e.Record.Object.Field(name)
			sent, was, is := e.Record.Values[name], before.Fields[name], []byte(model.OrNull(got.Fields[name]))
			if !write.BothWays(f) || name == e.Record.ID.APIName || model.OrNull(was) != string(is) || sc.Hides(e.Record.Object.APIName, name) {
				continue
			}
			if now, _ := hook.SameValue(f, sent, got.Fields[name]); now || string(is) == "null" && string(sent) == "null" {
				continue // it had this value before
			}
			class := values.Classify(values.Pair{Field: f, Sent: sent, Stored: is, Before: is}).Class
			shownSent, shownStored := values.Apart(sent, is)
			out = append(out, write.Difference{
				Record: e.Record, Field: name, Symptom: symptomOldValue, Class: class, Actual: "it is " + foreign.Clip(shownStored, 160) + ", as before",
				Expected: fmt.Sprintf("%s of %s changed to %s", name, foreign.Clip(string(e.Record.Key), 60), foreign.Clip(shownSent, 160)),
			})
		}
	}
	return out
}

// differs reports whether a field of the record is not as it was before.
func (sc *Scenario) differs(e *write.Expected, seen map[string]write.Observed) bool {
	got, before := seen[exchange.KeyText(e.Record.Key)], sc.Before[e.Record.Place()]
	return got.Count > 0 && before.Count > 0 && slices.ContainsFunc(slices.Collect(maps.Keys(e.Record.Values)), func(name string) bool {
		return model.OrNull(before.Fields[name]) != model.OrNull(got.Fields[name])
	})
}

// leftAlone are records that were there: what insert names, and what was refused.
const leftAlone = "every skipped or refused record"

// unchanged compares with what was there before the last batch. "everything else" leaves out the fields that it named,
// "every other record" the records: which fields of them change is for RES-014.
func (sc *Scenario) unchanged(what string) error {
	exempt := what != "every record" && what != leftAlone
	if what == "every record" {
		if err := sc.unanswered(); err != nil {
			return err
		}
	}
	if exempt && !slices.ContainsFunc(sc.Latest, func(b *write.Batch) bool { return slices.ContainsFunc(b.Records, b.Succeeded) }) {
		return sc.noneAccepted()
	}
	var records []*write.Record
	for _, e := range sc.Model.All() {
		named := what == "every other record" && sc.inLatest(e.Record) || exempt && e.Operation == rpc.OperationDelete
		taken := what == leftAlone && (!e.Known || !e.Refused && e.Operation != rpc.OperationInsert)
		if sc.Before[e.Record.Place()].Count > 0 && !named && !taken {
			records = append(records, e.Record)
		}
	}
	if len(records) == 0 && what == leftAlone {
		return sc.Held()
	}
	if len(records) == 0 {
		return engine.Inconclusive("fixtures", "no record was there before the last batch, so that none could be changed by it")
	}
	seen, err := sc.Observe(records)
	if err != nil {
		return err
	}
	gone := 0
	var alike []write.Cause // of the records that were reached
	for _, r := range records {
		if sc.keptAsItWas(r, seen, exempt) {
			sc.Saw(conformance.SeenKept, 1)
		} else if alike = append(alike, sc.whyKeysLost([]*write.Record{r})); seen[exchange.KeyText(r.Key)].Count == 0 {
			gone++
		}
	}
	if exempt {
		sc.because(0, sc.ofOthers(records, gone, seen, alike))
	}
	if found := sc.All(); gone > 1 && len(found) > 0 {
		found[0].Actual += fmt.Sprintf("; %d of %s that were there are missing", gone, quantity.Count(len(records), "record"))
	}
	return sc.Held()
}

// keptAsItWas reports whether a record is as it was; exempt leaves out what the last batch named.
func (sc *Scenario) keptAsItWas(r *write.Record, seen map[string]write.Observed, exempt bool) bool {
	var last *write.Record
	by := sc.LastBatch()
	for b, o := range write.Each(sc.Latest) {
		if o.Place() == r.Place() {
			if last, by = o, b; exempt && b.Operation == rpc.OperationDelete {
				return false
			}
		}
	}
	before, got := sc.Before[r.Place()], seen[exchange.KeyText(r.Key)]
	if other := sc.mergedWith(r); last == nil && other != nil {
		sc.Note("%s and %s are one record in the destination, so that they cannot be told apart here", r.Key, other.Key)
		return false
	}
	switch {
	case !exempt && got.Count > max(1, before.Count):
		sc.brokenByCopies(r, got.Count)
		return false
	case got.Count == 0:
		sc.BrokenAs(write.SymptomMissing, by.Operation, foreign.Clip(string(r.Key), 80)+" as it was before the last batch", "it is not there", by.Reply)
		return false
	case got.Count > max(before.Count, 1):
		return false // SEM-003 and DUP-002 judge copies, and the values are those of either
	}
	compared, kept := 0, true
	for _, name := range slices.Sorted(maps.Keys(before.Fields)) {
		f, declared := r.Object.Field(name)
		if !declared || !f.Createable && !f.Updateable || sc.Hides(r.Object.APIName, name) {
			continue // such as the time of the last change, which the destination keeps
		}
		if last != nil && exempt && last.Values[name] != nil {
			continue
		}
		old, now := model.OrNull(before.Fields[name]), model.OrNull(got.Fields[name])
		if old != now {
			kept = false
			was, is := values.Apart([]byte(old), []byte(now))
			why, actual := ownValue(f, values.Text(got.Fields[name])), "it is "+foreign.Clip(is, 160)
			if last != nil && by.Refused(last) && by.Operation != rpc.OperationInsert {
				actual += ", and the change was refused: " + foreign.Clip(by.RefusalOf(last), 160)
				why.Text = "a refused change is made in part: values are written into the stored record one by one, before the last one is checked, and are not taken back."
				why.Fix = "check the whole record before its first value is written, or take all of them back (a transaction, a copy)."
			}
			sc.brokenBy(why, "changed", by.Operation,
				fmt.Sprintf("%s of %s as it was before the last batch: %s", name, foreign.Clip(string(r.Key), 60), foreign.Clip(was, 160)), actual, by.Reply)
		}
		raw, sent := r.Values[name]
		if exempt && old != "null" || sent && old != string(raw) {
			compared++
		}
	}
	return kept && (compared > 0 || last == nil)
}

// mergedWith is a record of the last batch that was one with r before it: values differ from record to record, so
// that equal ones show one record under two keys.
func (sc *Scenario) mergedWith(r *write.Record) *write.Record {
	before := sc.Before[r.Place()]
	for _, o := range write.Each(sc.Latest) {
		other := sc.Before[o.Place()]
		differs := func(name string) bool { return model.OrNull(before.Fields[name]) != model.OrNull(other.Fields[name]) }
		if other.Count > 0 && len(before.Fields) > 1 && !differs(r.ID.APIName) && !slices.ContainsFunc(slices.Collect(maps.Keys(before.Fields)), differs) {
			return o
		}
	}
	return nil
}
