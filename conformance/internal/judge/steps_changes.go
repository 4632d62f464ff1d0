package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// haveChanged judges the latest batches against what was there before them: a record
// that was given other values and is in each field as before was not changed. Single
// fields, and the values that they have instead, are for the checks about values.
func (sc *Scenario) haveChanged() error {
	sc.unanswered()
	if err := sc.Held(); err != nil {
		return err
	}
	due := sc.expectations(func(e *write.Expected) bool { return e.Exists && e.Written })
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if err := sc.needReadbackOf("whether a record has changed"); err != nil {
		return err
	}
	kept := func(s map[string]write.Observed) []write.Difference {
		return sc.same(lists.Where(due, func(e *write.Expected) bool { return !sc.differs(e, s) }), s)
	}
	seen, err := sc.observeUntil(write.RecordsOf(due), func(s map[string]write.Observed) bool { return len(kept(s)) == 0 })
	if err != nil {
		return err
	}
	if err := sc.reportMissing(notThere(due, seen), len(due)); err != nil {
		return err
	}
	stale := kept(seen)
	sc.Unmet.Stale = append(sc.Unmet.Stale, stale...)
	for _, d := range stale {
		sc.brokenValue(d)
	}
	for _, e := range due {
		if sc.differs(e, seen) {
			sc.Saw(conformance.SeenChanged, 1)
		}
	}
	return sc.Held()
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
			was, is := before.Fields[name], got.Fields[name]
			if !write.BothWays(f) || name == e.Record.ID.APIName || OrNull(was) != OrNull(is) || sc.Hides(e.Record.Object.APIName, name) {
				continue
			}
			if now, _ := hook.SameValue(f, e.Record.Values[name], is); now || OrNull(is) == "null" && string(e.Record.Values[name]) == "null" {
				continue // it had this value before
			}
			sent, stored := values.Apart(e.Record.Values[name], []byte(OrNull(is)))
			out = append(out, write.Difference{
				Record: e.Record, Field: name, Symptom: symptomOldValue, Class: values.Classify(values.Pair{Field: f, Sent: e.Record.Values[name], Stored: []byte(OrNull(is)), Before: []byte(OrNull(was))}).Class, Actual: "it is " + foreign.Clip(stored, 160) + ", as before",
				Expected: fmt.Sprintf("%s of %s changed to %s", name, foreign.Clip(string(e.Record.Key), 60), foreign.Clip(sent, 160)),
			})
		}
	}
	return out
}

func OrNull(raw []byte) string { return cmp.Or(string(raw), "null") }

// differs reports whether a field of the record is not as it was before.
func (sc *Scenario) differs(e *write.Expected, seen map[string]write.Observed) bool {
	got, before := seen[exchange.KeyText(e.Record.Key)], sc.Before[e.Record.Place()]
	if got.Count == 0 || before.Count == 0 {
		return false
	}
	for name := range e.Record.Values {
		if OrNull(before.Fields[name]) != OrNull(got.Fields[name]) {
			return true
		}
	}
	return false
}

// operationOf is the operation of the last batch that carried a record.
func (sc *Scenario) operationOf(r *write.Record) string {
	for _, b := range slices.Backward(sc.Batches) {
		if slices.ContainsFunc(b.Records, func(o *write.Record) bool { return o.Place() == r.Place() }) {
			return b.Operation
		}
	}
	return sc.LastOperation()
}

// unchanged compares with what was there before the last batch. "everything
// else" is what that batch did not name, records and fields; "every record"
// includes those that it named, as in a reported skip; "every other record" is none
// of those: which fields of them change is for RES-014.
func (sc *Scenario) unchanged(what string) error {
	others := what == "every other record"
	if what == "every record" {
		sc.unanswered()
		if err := sc.Held(); err != nil {
			return err
		}
	}
	if err := sc.NeedReadback(); err != nil {
		return err
	}
	exempt := what != "every record"
	if exempt && !slices.ContainsFunc(sc.Latest, func(b *write.Batch) bool { return slices.ContainsFunc(b.Records, b.Succeeded) }) {
		return sc.noneAccepted()
	}
	var records []*write.Record
	for _, e := range sc.Model.All() {
		if sc.Before[e.Record.Place()].Count == 0 || exempt && e.Operation == rpc.OperationDelete || others && sc.inLatest(e.Record) {
			continue
		}
		records = append(records, e.Record)
	}
	if len(records) == 0 {
		return engine.Inconclusive("fixtures", "no record was there before the last batch, so that none could be changed by it")
	}
	seen, err := sc.Observe(records)
	if err != nil {
		return err
	}
	gone := 0
	for _, r := range records {
		if sc.keptAsItWas(r, seen, exempt) {
			sc.Saw(conformance.SeenKept, 1)
		} else if seen[exchange.KeyText(r.Key)].Count == 0 {
			gone++
		}
	}
	if exempt {
		if c := sc.ofOthers(records, gone, seen); c.Text != "" {
			sc.because(0, c)
		}
	}
	if found := sc.All(); gone > 1 && len(found) > 0 {
		found[0].Actual += fmt.Sprintf("; %d of %s that were there are missing", gone, quantity.Count(len(records), "record"))
	}
	return sc.Held()
}

// inLatest reports whether the last batch named a record.
func (sc *Scenario) inLatest(r *write.Record) bool {
	return slices.ContainsFunc(sc.Latest, func(b *write.Batch) bool {
		return slices.ContainsFunc(b.Records, func(o *write.Record) bool { return o.Place() == r.Place() })
	})
}

// keptAsItWas reports whether a record that the last batch could have changed is
// as it was. named exempts what the last batch named.
func (sc *Scenario) keptAsItWas(r *write.Record, seen map[string]write.Observed, exempt bool) bool {
	var last *write.Record
	operation := ""
	for _, b := range sc.Latest {
		for _, o := range b.Records {
			if o.Place() == r.Place() {
				last, operation = o, b.Operation
			}
		}
	}
	if exempt && last != nil && operation == rpc.OperationDelete {
		return false
	}
	before, got := sc.Before[r.Place()], seen[exchange.KeyText(r.Key)]
	if other := sc.mergedWith(r); last == nil && other != nil {
		sc.Note("%s and %s are one record in the destination, so that they cannot be told apart here", r.Key, other.Key)
		return false
	}
	if !exempt && got.Count > max(1, before.Count) {
		sc.brokenByCopies(r, got.Count)
		return false
	}
	if got.Count == 0 {
		sc.BrokenAs(write.SymptomMissing, sc.LastOperation(), foreign.Clip(string(r.Key), 80)+" as it was before the last batch", "it is not there", sc.lastReply())
		return false
	}
	if got.Count > max(before.Count, 1) {
		return false // SEM-003 and DUP-002 judge copies, and the values are those of either
	}
	compared, kept := 0, true
	for _, name := range slices.Sorted(maps.Keys(before.Fields)) {
		f, declared := r.Object.Field(name)
		if !declared || !f.Createable && !f.Updateable || sc.Hides(r.Object.APIName, name) {
			continue // such as the time of the last change, which the destination keeps
		}
		if last != nil && exempt {
			if _, named := last.Values[name]; named {
				continue
			}
		}
		if OrNull(before.Fields[name]) != OrNull(got.Fields[name]) {
			kept = false
			was, is := values.Apart([]byte(OrNull(before.Fields[name])), []byte(OrNull(got.Fields[name])))
			from := len(sc.All())
			sc.BrokenAs("changed", sc.LastOperation(), fmt.Sprintf("%s of %s as it was before the last batch: %s", name, foreign.Clip(string(r.Key), 60), foreign.Clip(was, 160)),
				"it is "+foreign.Clip(is, 160), sc.lastReply())
			sc.because(from, ownValue(f, values.Text(got.Fields[name])))
		}
		raw, sent := r.Values[name]
		if exempt && OrNull(before.Fields[name]) != "null" || sent && OrNull(before.Fields[name]) != string(raw) {
			compared++
		}
	}
	return kept && (compared > 0 || last == nil)
}

// mergedWith is a record of the last batch that was one with r before it: values
// differ from record to record, so equal ones show one record under two keys, unless
// each shows its own key.
func (sc *Scenario) mergedWith(r *write.Record) *write.Record {
	before := sc.Before[r.Place()]
	for _, b := range sc.Latest {
		for _, o := range b.Records {
			if other := sc.Before[o.Place()]; other.Count > 0 && len(before.Fields) > 1 && sameFields(r.ID.APIName, before.Fields, other.Fields) &&
				OrNull(before.Fields[r.ID.APIName]) == OrNull(other.Fields[r.ID.APIName]) {
				return o
			}
		}
	}
	return nil
}

// sameFields compares all fields but the identifier.
func sameFields(id string, a, b map[string]json.RawMessage) bool {
	for name := range a {
		if name != id && OrNull(a[name]) != OrNull(b[name]) {
			return false
		}
	}
	return true
}

// lastReply is the reply to the last batch.
func (sc *Scenario) lastReply() *exchange.Reply {
	if len(sc.Latest) == 0 {
		return nil
	}
	return sc.Latest[len(sc.Latest)-1].Reply
}
