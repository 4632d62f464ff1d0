package judge

import (
	"encoding/json"

	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// What is sent of one record after the other: the opposite values, arrays of other
// lengths, null and values by turns. The records of a batch are at different places of
// a sequence, so that one more batch makes all of its changes.

// opposed returns the record with the opposite of each value that can be changed.
func (sc *Scenario) opposed(r *write.Record) *write.Record {
	c := *r
	c.Turn++
	c.Values = make(map[string]json.RawMessage, len(r.Values))
	fixtures := sc.Opts.Fixtures[r.Object.APIName].Fields
	for name, raw := range r.Values {
		f, ok := r.Object.Field(name)
		fixed, is := fixtures[name]
		c.Values[name] = raw
		if !ok || !write.BothWays(f) || name == r.ID.APIName {
			continue
		}
		c.Values[name] = values.Opposite(f, r.Seed, c.Turn, raw, func(s values.Seed) json.RawMessage {
			switch {
			case is:
				return sc.Made.Expand(fixed, s, r.Key)
			case s%2 == 1 && f.Type == rpc.TypeString && !f.Array && r.Object.Lessons[name] == nil && values.Guessed(f) == nil:
				return sc.Made.Value(f, s, values.Word) // shorter than what names the field
			}
			return write.Learned(sc.Made, r.Object, f, s)
		})
	}
	return &c
}

// spread shares records among operations.
func spread(operations []string, records []*write.Record) []write.Set {
	var out []write.Set
	for i, op := range operations {
		from, to := i*len(records)/len(operations), (i+1)*len(records)/len(operations)
		if from < to {
			out = append(out, write.Set{Operation: op, Records: records[from:to]})
		}
	}
	return out
}

// noDeletedValues: what a record had is gone with it. Created again with fewer fields it
// has none of the old values in the others.
func (sc *Scenario) noDeletedValues() error {
	due := map[model.Place]bool{}
	for _, e := range sc.expectations(written) {
		due[e.Record.Place()] = true
	}
	if sc.Readback == nil || len(due) == 0 {
		return nil
	}
	keys := lists.Where(sc.Ledger.Settled(sc.Object.APIName), func(k model.Key) bool { return due[k.Place] })
	broken, err := sc.contradictions(keys, keys, map[model.Place]model.Sight{})
	if err != nil {
		return err
	}
	sc.reportBroken(lists.Where(broken, func(c model.Contradiction) bool { return c.Kind == model.Returned }), len(due))
	return sc.Held()
}

// noRepeatRefused: a change that was accepted is accepted again, though it changes nothing.
func (sc *Scenario) noRepeatRefused() error {
	if len(sc.Waves) < 2 {
		return line.Harness("the records were sent only once")
	}
	accepted := map[model.Place]bool{}
	for _, b := range sc.Waves[len(sc.Waves)-2] {
		for _, r := range b.Records {
			accepted[r.Place()] = b.Succeeded(r)
		}
	}
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if accepted[r.Place()] && b.Operation != rpc.OperationInsert && b.Refused(r) {
				sc.BrokenAs("refused "+write.Purpose{Operation: b.Operation, Existing: true}.String(), b.Operation, "the same "+b.Operation+" of "+foreign.Clip(string(r.Key), 60)+" accepted again", b.WhyOf(r), b.Reply)
			}
		}
	}
	sc.ExplainAs(func(string) bool { return true },
		"a change to the values that are there counts as none: the rows that a statement has changed are counted, not those that it has found.",
		"take a record that is found for updated, whatever the driver counts.", false)
	return sc.Held()
}

// noneRefusedNextToOld: in a batch with records that exist the new ones are taken, as new
// ones were before.
func (sc *Scenario) noneRefusedNextToOld() error {
	old, taken := map[model.Place]bool{}, 0
	for _, r := range sc.History[0].Records {
		old[r.Place()] = true
		if e := sc.Model.Get(r); e != nil && e.Exists {
			taken++
		}
	}
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			if taken > 0 && !old[r.Place()] && b.Failed(r) {
				sc.BrokenAs("refused next to existing records", b.Operation,
					foreign.Clip(string(r.Key), 60)+" taken, which is new, next to records that exist", b.WhyOf(r), b.Reply)
			}
		}
	}
	return sc.Held()
}
