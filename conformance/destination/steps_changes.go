package destination

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// haveChanged judges the latest batches against what was there before them: a record
// that was given other values and is in each field as before was not changed. Single
// fields, and the values that they have instead, are for the checks about values.
func (sc *scenario) haveChanged() error {
	sc.unanswered()
	if err := sc.Held(); err != nil {
		return err
	}
	due := sc.expectations(func(e *expected) bool { return e.Exists && e.Written })
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if err := sc.needReadbackOf("whether a record has changed"); err != nil {
		return err
	}
	kept := func(s map[string]observed) []difference {
		return sc.same(lists.Where(due, func(e *expected) bool { return !sc.differs(e, s) }), s)
	}
	seen, err := sc.observeUntil(recordsOf(due), func(s map[string]observed) bool { return len(kept(s)) == 0 })
	if err != nil {
		return err
	}
	if err := sc.reportMissing(notThere(due, seen), len(due)); err != nil {
		return err
	}
	stale := kept(seen)
	sc.unmet.stale = append(sc.unmet.stale, stale...)
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
func (sc *scenario) same(due []*expected, seen map[string]observed) []difference {
	var out []difference
	for _, e := range due {
		got, before := seen[exchange.KeyText(e.record.key)], sc.before[e.record.place()]
		if got.count == 0 || before.count == 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.record.values)) {
			f, _ := e.record.object.field(name)
			was, is := before.fields[name], got.fields[name]
			if !bothWays(f) || name == e.record.id.APIName || orNull(was) != orNull(is) || sc.hides(e.record.object.APIName, name) {
				continue
			}
			if now, _ := hook.SameValue(f, e.record.values[name], is); now || orNull(is) == "null" && string(e.record.values[name]) == "null" {
				continue // it had this value before
			}
			sent, stored := values.Apart(e.record.values[name], []byte(orNull(is)))
			out = append(out, difference{
				record: e.record, field: name, symptom: symptomOldValue, class: values.Classify(values.Pair{Field: f, Sent: e.record.values[name], Stored: []byte(orNull(is)), Before: []byte(orNull(was))}).Class, actual: "it is " + foreign.Clip(stored, 160) + ", as before",
				expected: fmt.Sprintf("%s of %s changed to %s", name, foreign.Clip(string(e.record.key), 60), foreign.Clip(sent, 160)),
			})
		}
	}
	return out
}

func orNull(raw []byte) string { return cmp.Or(string(raw), "null") }

// differs reports whether a field of the record is not as it was before.
func (sc *scenario) differs(e *expected, seen map[string]observed) bool {
	got, before := seen[exchange.KeyText(e.record.key)], sc.before[e.record.place()]
	if got.count == 0 || before.count == 0 {
		return false
	}
	for name := range e.record.values {
		if orNull(before.fields[name]) != orNull(got.fields[name]) {
			return true
		}
	}
	return false
}

func (sc *scenario) lastOperation() string {
	if len(sc.latest) == 0 {
		return ""
	}
	return sc.latest[len(sc.latest)-1].operation
}

// replyFor is the reply to the last batch that carried a record.
func (sc *scenario) replyFor(r *record) *reply {
	for _, b := range slices.Backward(sc.batches) {
		if slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() }) {
			return b.reply
		}
	}
	return nil
}

// operationOf is the operation of the last batch that carried a record.
func (sc *scenario) operationOf(r *record) string {
	for _, b := range slices.Backward(sc.batches) {
		if slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() }) {
			return b.operation
		}
	}
	return sc.lastOperation()
}

// unchanged compares with what was there before the last batch. "everything
// else" is what that batch did not name, records and fields; "every record"
// includes those that it named, as in a reported skip; "every other record" is none
// of those: which fields of them change is for RES-014.
func (sc *scenario) unchanged(what string) error {
	others := what == "every other record"
	if what == "every record" {
		sc.unanswered()
		if err := sc.Held(); err != nil {
			return err
		}
	}
	if err := sc.needReadback(); err != nil {
		return err
	}
	exempt := what != "every record"
	if exempt && !slices.ContainsFunc(sc.latest, func(b *batch) bool { return slices.ContainsFunc(b.records, b.succeeded) }) {
		return sc.noneAccepted()
	}
	var records []*record
	for _, e := range sc.model.all() {
		if sc.before[e.record.place()].count == 0 || exempt && e.Operation == rpc.OperationDelete || others && sc.inLatest(e.record) {
			continue
		}
		records = append(records, e.record)
	}
	if len(records) == 0 {
		return inconclusive("fixtures", "no record was there before the last batch, so that none could be changed by it")
	}
	seen, err := sc.observe(records)
	if err != nil {
		return err
	}
	gone := 0
	for _, r := range records {
		if sc.keptAsItWas(r, seen, exempt) {
			sc.Saw(conformance.SeenKept, 1)
		} else if seen[exchange.KeyText(r.key)].count == 0 {
			gone++
		}
	}
	if exempt {
		if c := sc.ofOthers(records, gone, seen); c.text != "" {
			sc.because(0, c)
		}
	}
	if found := sc.All(); gone > 1 && len(found) > 0 {
		found[0].Actual += fmt.Sprintf("; %d of %s that were there are missing", gone, quantity.Count(len(records), "record"))
	}
	return sc.Held()
}

// inLatest reports whether the last batch named a record.
func (sc *scenario) inLatest(r *record) bool {
	return slices.ContainsFunc(sc.latest, func(b *batch) bool {
		return slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() })
	})
}

// keptAsItWas reports whether a record that the last batch could have changed is
// as it was. named exempts what the last batch named.
func (sc *scenario) keptAsItWas(r *record, seen map[string]observed, exempt bool) bool {
	var last *record
	operation := ""
	for _, b := range sc.latest {
		for _, o := range b.records {
			if o.place() == r.place() {
				last, operation = o, b.operation
			}
		}
	}
	if exempt && last != nil && operation == rpc.OperationDelete {
		return false
	}
	before, got := sc.before[r.place()], seen[exchange.KeyText(r.key)]
	if other := sc.mergedWith(r); last == nil && other != nil {
		sc.Note("%s and %s are one record in the destination, so that they cannot be told apart here", r.key, other.key)
		return false
	}
	if !exempt && got.count > max(1, before.count) {
		sc.brokenByCopies(r, got.count)
		return false
	}
	if got.count == 0 {
		sc.brokenAs(symptomMissing, sc.lastOperation(), foreign.Clip(string(r.key), 80)+" as it was before the last batch", "it is not there", sc.lastReply())
		return false
	}
	if got.count > max(before.count, 1) {
		return false // SEM-003 and DUP-002 judge copies, and the values are those of either
	}
	compared, kept := 0, true
	for _, name := range slices.Sorted(maps.Keys(before.fields)) {
		f, declared := r.object.field(name)
		if !declared || !f.Createable && !f.Updateable || sc.hides(r.object.APIName, name) {
			continue // such as the time of the last change, which the destination keeps
		}
		if last != nil && exempt {
			if _, named := last.values[name]; named {
				continue
			}
		}
		if orNull(before.fields[name]) != orNull(got.fields[name]) {
			kept = false
			was, is := values.Apart([]byte(orNull(before.fields[name])), []byte(orNull(got.fields[name])))
			from := len(sc.All())
			sc.brokenAs("changed", sc.lastOperation(), fmt.Sprintf("%s of %s as it was before the last batch: %s", name, foreign.Clip(string(r.key), 60), foreign.Clip(was, 160)),
				"it is "+foreign.Clip(is, 160), sc.lastReply())
			sc.because(from, ownValue(f, values.Text(got.fields[name])))
		}
		raw, sent := r.values[name]
		if exempt && orNull(before.fields[name]) != "null" || sent && orNull(before.fields[name]) != string(raw) {
			compared++
		}
	}
	return kept && (compared > 0 || last == nil)
}

// mergedWith is a record of the last batch that was one with r before it: values
// differ from record to record, so equal ones show one record under two keys, unless
// each shows its own key.
func (sc *scenario) mergedWith(r *record) *record {
	before := sc.before[r.place()]
	for _, b := range sc.latest {
		for _, o := range b.records {
			if other := sc.before[o.place()]; other.count > 0 && len(before.fields) > 1 && sameFields(r.id.APIName, before.fields, other.fields) &&
				orNull(before.fields[r.id.APIName]) == orNull(other.fields[r.id.APIName]) {
				return o
			}
		}
	}
	return nil
}

// sameFields compares all fields but the identifier.
func sameFields(id string, a, b map[string]json.RawMessage) bool {
	for name := range a {
		if name != id && orNull(a[name]) != orNull(b[name]) {
			return false
		}
	}
	return true
}

// lastReply is the reply to the last batch.
func (sc *scenario) lastReply() *reply {
	if len(sc.latest) == 0 {
		return nil
	}
	return sc.latest[len(sc.latest)-1].reply
}
