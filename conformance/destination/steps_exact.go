package destination

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
)

// storedExactly judges the values of what is there. In the scenarios about values
// a record that is not there is a finding too.
func (sc *scenario) storedExactly() error {
	sc.unanswered()
	if err := sc.held(); err != nil {
		return err
	}
	sc.statementsEnded()
	if err := sc.held(); err != nil {
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
		sc.brokenAs(d.symptom, sc.operationOf(d.record), d.expected, d.actual, sc.replyFor(d.record))
	}
	sc.Saw(conformance.SeenStored, len(due)-len(lost))
	for _, e := range due {
		if sc.differs(e, seen) {
			sc.Saw(conformance.SeenChanged, 1)
		}
	}
	return sc.held()
}

// statement is what a database says when a value has become part of a statement.
var statement = regexp.MustCompile(`(?i)syntax error|unterminated|unrecognized token|unclosed quotation|not properly terminated|SQLSTATE.{0,4}42`)

// statementsEnded looks at refusals: a value that ends a statement was not bound.
func (sc *scenario) statementsEnded() {
	for _, b := range sc.latest {
		for _, r := range b.records {
			if said := b.refusalOf(r); statement.MatchString(said) {
				sc.brokenAs("statement", b.operation, "the value stored as it is, or refused as a value", "it became part of a statement: "+foreign.Clip(said, 200), b.reply)
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
	expected, actual, symptom string
}

// differences compares the values of the records that are there.
func (sc *scenario) differences(due []*expected, seen map[string]observed) []difference {
	var out []difference
	for _, e := range due {
		got := seen[exchange.KeyText(e.record.key)]
		if got.count == 0 {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.values)) {
			if len(e.record.odd.fields) > 0 && !slices.ContainsFunc(e.record.odd.fields, func(f rpc.Field) bool { return f.APIName == name }) {
				continue // the row is about other fields
			}
			if d := sc.fieldDiffers(e, name, got); d != "" {
				symptom := "value of " + name
				if _, is := got.fields[name]; !is || string(got.fields[name]) == "null" {
					symptom = "no value of " + name
				}
				if before, ok := sc.before[e.record.place()]; ok && e.changes > 0 && string(before.fields[name]) == string(got.fields[name]) {
					symptom = symptomOldValue
				}
				out = append(out, difference{e.record, fmt.Sprintf("%s of %s stored as %s", name, foreign.Clip(string(e.record.key), 60), foreign.Clip(string(e.values[name]), 120)), d, symptom})
			}
		}
	}
	return out
}

func (sc *scenario) fieldDiffers(e *expected, name string, got observed) string {
	f, ok := e.record.object.field(name)
	if !ok {
		f = newField(name)
	}
	raw, ok := got.fields[name]
	if !ok {
		if string(e.values[name]) == "null" {
			return "" // hooks may leave null fields out
		}
		return "the field is missing"
	}
	same, note := hook.SameValue(f, e.values[name], raw)
	if note != "" {
		sc.note("%s: %s", name, note)
	}
	if same {
		return ""
	}
	return "it is " + foreign.Clip(string(raw), 120)
}

func shown(o observed) string {
	parts := lists.Of(slices.Sorted(maps.Keys(o.fields)), func(name string) string { return name + "=" + foreign.Clip(string(o.fields[name]), 40) })
	return foreign.Clip(strings.Join(parts, " "), 240)
}
