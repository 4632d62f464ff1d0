package destination

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/causes"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// storedExactly judges the values of what is there. In the scenarios about values
// a record that is not there is a finding too.
func (sc *scenario) storedExactly() error {
	sc.unanswered()
	if err := sc.Held(); err != nil {
		return err
	}
	sc.statementsEnded()
	if err := sc.Held(); err != nil {
		return err
	}
	due := sc.expectations(written)
	if len(due) == 0 {
		return sc.noneAccepted()
	}
	if err := sc.needReadbackOf("which values are stored"); err != nil {
		return err
	}
	seen, err := sc.observeUntil(recordsOf(due), func(s map[string]observed) bool {
		return len(notThere(due, s)) == 0 && len(sc.differences(due, s)) == 0
	})
	if err != nil {
		return err
	}
	lost := notThere(due, seen)
	if err := sc.reportMissing(lost, len(due)); err != nil {
		return err
	}
	for _, d := range sc.differences(due, seen) {
		if d.symptom == symptomOldValue {
			sc.unmet.stale = append(sc.unmet.stale, d)
		} else {
			sc.unmet.altered = append(sc.unmet.altered, d.record.place())
		}
		sc.brokenValue(d)
	}
	sc.Saw(conformance.SeenStored, len(due)-len(lost))
	for _, e := range due {
		if sc.differs(e, seen) {
			sc.Saw(conformance.SeenChanged, 1)
		}
	}
	return sc.Held()
}

// statementsEnded looks at refusals: a value that ends a statement was not bound.
func (sc *scenario) statementsEnded() {
	for _, b := range sc.latest {
		for _, r := range b.records {
			said := b.refusalOf(r)
			switch cause, _ := causes.Of(causes.Message{Text: said, Names: sc.namesOf(b.reply)}); cause.Name {
			case causes.StatementFromText:
				sc.brokenAs("statement", b.operation, "the value stored as it is, or refused as a value", "it became part of a statement: "+foreign.Clip(said, 200), b.reply)
			case causes.UnquotedName:
				sc.brokenAs("statement", b.operation, "the value stored, whatever its field is called", "the statement is wrong: "+foreign.Clip(said, 200), b.reply)
			}
		}
	}
}

// needReadbackOf is INCONCLUSIVE without a read-back hook.
func (sc *scenario) needReadbackOf(what string) error {
	if sc.readback == nil {
		return inconclusive("readback", "only a read-back shows %s: give --readback-url or --readback-command", what)
	}
	return nil
}

// difference is one deviation of the store from what was acknowledged.
type difference struct {
	record                    *record
	field                     string
	expected, actual, symptom string
	class                     values.Class
	pair                      values.Pair
	cause, fix                string // where the read-back hook may be what is wrong
}

// brokenValue adds a finding about a value. Its cause follows from what became of it.
func (sc *scenario) brokenValue(d difference) {
	before := len(sc.All())
	sc.brokenAs(d.symptom, sc.operationOf(d.record), d.expected, d.actual, sc.replyFor(d.record))
	cause, fix := d.cause, d.fix
	if cause == "" {
		cause, fix = d.class.Cause()
	}
	for i := range sc.All()[before:] {
		if f := &sc.All()[before+i]; cause != "" {
			f.Cause, f.Fix = cause+strings.TrimPrefix(f.Cause, sc.Check().Cause), fix
		}
	}
}

// differences compares the values of the records that are there.
func (sc *scenario) differences(due []*expected, seen map[string]observed) []difference {
	var out []difference
	for _, e := range due {
		got := seen[exchange.KeyText(e.record.key)]
		if got.count == 0 {
			continue
		}
		from := len(out)
		for _, name := range slices.Sorted(maps.Keys(e.Values)) {
			if len(e.record.odd.fields) > 0 && !slices.ContainsFunc(e.record.odd.fields, func(f rpc.Field) bool { return f.APIName == name }) {
				continue // the row is about other fields
			}
			if !sc.fieldDiffers(e, name, got) {
				continue
			}
			p := sc.pair(e, name, got)
			for _, o := range due {
				if o != e {
					p.Records = append(p.Records, o.Values[name])
				}
			}
			d := differenceOf(e.record, p)
			if cause, fix := takenForOne(e, due, p); d.class == values.OtherRecord && cause != "" {
				d.cause, d.fix = cause, fix
			}
			if sc.meetsFolded(e.record) {
				d.symptom = symptomRenamed
			}
			out = append(out, d)
		}
		ofOneRecord(out[from:])
	}
	ofOneField(out)
	return out
}

// ofOneRecord gives all differences of a record the cause that one of them shows to be
// that of the whole: what a flag or a date has instead shows less.
func ofOneRecord(all []difference) {
	i := slices.IndexFunc(all, func(d difference) bool { return d.class == values.OtherRecord && d.cause != "" })
	for k := range all {
		if i >= 0 {
			all[k].cause, all[k].fix = all[i].cause, all[i].fix
		}
	}
}

// ofOneField gives differences of a field the class of one change that explains all of
// them, where there is one.
func ofOneField(all []difference) {
	for i, d := range all {
		var pairs []values.Pair
		for _, o := range all {
			if o.field == d.field && o.record.object == d.record.object {
				pairs = append(pairs, o.pair)
			}
		}
		if class := values.OfAll(pairs); class != "" && d.class != values.Older {
			all[i].class = class
		}
	}
}

const takenForOneRecord = "identifiers that differ %s are taken for one record (a collation, a pattern, or a key that is tidied up or put into a URL)."

// takenForOne is the cause where a value is that of a record whose key is nearly the same.
func takenForOne(e *expected, due []*expected, p values.Pair) (cause, fix string) {
	own := exchange.KeyText(e.record.key)
	for _, o := range due {
		other := exchange.KeyText(o.record.key)
		if o != e && values.Text(o.Values[p.Field.APIName]) == values.Text(p.Stored) && o.record.id.APIName == e.record.id.APIName {
			if how := values.AlikeKeys(own, other); how != "" {
				return fmt.Sprintf(takenForOneRecord, how),
					"compare identifiers exactly, or fail the record."
			}
		}
	}
	return "", ""
}

// differenceOf describes what became of a value.
func differenceOf(r *record, p values.Pair) difference {
	what := values.Classify(p)
	sent, stored := values.Apart(p.Sent, p.Stored)
	d := difference{
		record: r, field: p.Field.APIName, class: what.Class, pair: p, symptom: "value of " + p.Field.APIName, actual: "it is " + foreign.Clip(stored, 160),
		expected: fmt.Sprintf("%s of %s stored as %s", p.Field.APIName, foreign.Clip(string(r.key), 60), foreign.Clip(sent, 160)),
	}
	if what.How != "" {
		d.actual += ": " + what.How
	}
	d.cause, d.fix = hookShows(p)
	if r.odd.key && what.Class == values.OtherRecord {
		d.cause, d.fix = keysMerged.text, keysMerged.fix
	}
	switch {
	case what.Class == values.Older:
		d.symptom = symptomOldValue
	case p.Stored == nil:
		d.symptom, d.actual = "no value of "+p.Field.APIName, what.How
	case string(p.Stored) == "null":
		d.symptom = "no value of " + p.Field.APIName
	}
	return d
}

// pair is a value of a record as it was sent and as it is shown.
func (sc *scenario) pair(e *expected, name string, got observed) values.Pair {
	f, ok := e.record.object.field(name)
	if !ok {
		f = newField(name)
	}
	p := values.Pair{Field: f, Sent: e.Values[name], Stored: got.fields[name], Beside: e.record.values}
	if before, ok := sc.before[e.record.place()]; ok && e.Changes > 0 {
		p.Before = before.fields[name]
	}
	return p
}

// fieldDiffers reports whether a field is not as it was sent, and notes what is lost
// and may be.
func (sc *scenario) fieldDiffers(e *expected, name string, got observed) bool {
	p := sc.pair(e, name, got)
	if sc.hides(e.record.object.APIName, name) {
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

func shown(o observed) string {
	parts := lists.Of(slices.Sorted(maps.Keys(o.fields)), func(name string) string { return name + "=" + foreign.Clip(string(o.fields[name]), 40) })
	return foreign.Clip(strings.Join(parts, " "), 240)
}
