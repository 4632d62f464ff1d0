package judge

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// whyOld distinguishes late writes, plans that are kept for a sync, values that are not
// taken, and updates that are dropped.
func (sc *Scenario) whyOld() write.Cause {
	if !slices.ContainsFunc(sc.Unmet.Stale, func(d write.Difference) bool { return d.Class == values.Older }) {
		return write.Cause{} // the values themselves say it
	}
	e := sc.Model.Get(sc.Unmet.Stale[0].Record)
	var fields []string
	for _, d := range sc.Unmet.Stale {
		if d.Record.Place() == e.Record.Place() {
			fields = append(fields, d.Field)
		}
	}
	before := sc.Before[e.Record.Place()].Fields
	kept := func(s map[string]write.Observed) []string {
		now := s[exchange.KeyText(e.Record.Key)].Fields
		return slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return OrNull(now[name]) != OrNull(before[name]) })
	}
	from := time.Now()
	gone := func(s map[string]write.Observed) bool { return len(kept(s)) == 0 }
	seen, err := sc.Poll(e.Operation, []*write.Record{e.Record}, gone)
	switch {
	case err != nil:
		return write.Cause{}
	case gone(seen):
		after := time.Since(from)
		for range 4 {
			if seen, err = sc.Observe([]*write.Record{e.Record}); err != nil || !gone(seen) {
				return severalStores
			}
		}
		return notAwaited(after, "the new values were there")
	}
	made := func(s map[string]write.Observed) bool { return len(s) == 1 && gone(s) }
	if c := sc.heldBack(sc.Object.Creating(), []*write.Record{e.Record}, made); c.Text != "" {
		return c
	}
	if slices.Contains(sc.Unmet.Altered, e.Record.Place()) {
		return write.Cause{} // some of its values were neither sent nor there before
	}
	return sc.whyKept(e, fields, kept)
}

// whyKept sends the change again in a sync of its own, where nothing of an earlier batch
// is left, and then other values for its fields: smaller and larger ones.
func (sc *Scenario) whyKept(e *write.Expected, fields []string, kept func(map[string]write.Observed) []string) write.Cause {
	apart := sc.apart()
	change := func(r *write.Record) (map[string]write.Observed, bool) {
		b, err := apart.WriteOne(e.Operation, write.ForOperation(e.Operation, []*write.Record{r}), write.Plan{})
		if err != nil || !b.Succeeded(b.Records[0]) {
			return nil, false
		}
		seen, err := apart.Observe([]*write.Record{r})
		return seen, err == nil
	}
	seen, ok := change(e.Record)
	if !ok {
		return either("a change is lost for what an earlier batch of its sync has left", "it is never made", e.Operation+" of one record in a sync of its own (here it was not accepted)")
	}
	if b := sc.batchWith(e.Record); len(kept(seen)) == 0 && b != nil && len(b.Records) > 1 {
		return either("a batch of "+quantity.Count(len(b.Records), "record")+" is not written as one of a single record is (a transaction that is not committed, a bulk statement)",
			"what an earlier batch of the same sync has left (its plan, its operation or its content)", "the whole batch in a sync of its own")
	}
	if len(kept(seen)) == 0 {
		return seenCause("the same change in a sync of its own is made: what an earlier batch of the same sync has left (its plan, its operation or its content) decides instead of the call.")
	}
	if there, sent := apart.inCompany(e); sent && len(kept(there)) == 0 {
		return seenCause("the same change is made when another record stands in its batch, and not when it is alone: a batch of one record that is there is acknowledged and not written.")
	}
	now := seen[exchange.KeyText(e.Record.Key)].Fields
	var taken, tried [2][]string // of smaller and of larger values
	added := ""                  // an array that has more items than were sent
	for side := range taken {
		other, changes := sc.onSide(e.Record, fields, now, 2*side-1)
		if len(changes) == 0 {
			continue
		}
		if seen, ok = change(other); !ok {
			continue
		}
		before := now
		now = seen[exchange.KeyText(e.Record.Key)].Fields
		tried[side] = changes
		for _, name := range changes {
			f, _ := other.Object.Field(name)
			if same, _ := hook.SameValue(f, other.Values[name], now[name]); same {
				taken[side] = append(taken[side], name)
			} else if values.Classify(values.Pair{Field: f, Sent: other.Values[name], Stored: now[name], Before: before[name]}).Class == values.Added {
				added = name
			}
		}
	}
	if added != "" {
		return seenCause("the items of %s are added to those that are there, with other items as well: what was there before is never removed.", added)
	}
	if name := notIn(fields, slices.Concat(tried[0], tried[1])); name != "" && apart.takesOther(e, name, now[name]) {
		taken[0], tried[0] = append(taken[0], name), append(tried[0], name)
		taken[1], tried[1] = append(taken[1], name), append(tried[1], name)
	}
	return apart.whichValues(e, fields, taken, tried, change)
}

// inCompany sends a change together with that of another record, and looks at it.
func (sc *Scenario) inCompany(e *write.Expected) (seen map[string]write.Observed, ok bool) {
	made, err := sc.Make(1, sc.Object.Creating(), rpc.Field{}, &write.Sending{})
	if err != nil {
		return nil, false
	}
	if b, err := sc.WriteOne(sc.Object.Creating(), made, write.Plan{}); err != nil || !b.Succeeded(made[0]) {
		return nil, false
	}
	b, err := sc.WriteOne(e.Operation, write.ForOperation(e.Operation, []*write.Record{e.Record, sc.Changed(made[0], 1)}), write.Plan{})
	if err != nil || !b.Succeeded(e.Record) {
		return nil, false
	}
	seen, err = sc.Observe([]*write.Record{e.Record})
	return seen, err == nil
}

// takesOther reports whether a field that has no third value is changed the other way: in
// a new record, from the value that was sent to the one that is stored.
func (sc *Scenario) takesOther(e *write.Expected, name string, stored json.RawMessage) bool {
	made, err := sc.Make(1, sc.Object.Creating(), rpc.Field{}, &write.Sending{})
	if err != nil {
		return false
	}
	r := made[0].With(name, e.Record.Values[name])
	for _, step := range []struct {
		operation string
		record    *write.Record
		is        bool
	}{{sc.Object.Creating(), r, false}, {e.Operation, r.With(name, stored), true}} {
		b, err := sc.WriteOne(step.operation, write.ForOperation(step.operation, []*write.Record{step.record}), write.Plan{})
		if err != nil || !b.Succeeded(b.Records[0]) {
			return false
		}
		seen, err := sc.Observe([]*write.Record{r})
		f, _ := r.Object.Field(name)
		if same, _ := hook.SameValue(f, stored, seen[exchange.KeyText(r.Key)].Fields[name]); err != nil || same != step.is {
			return false
		}
	}
	return true
}

// notTaken are the values of a field without content that are not taken either, with the
// one that was not.
func (sc *Scenario) notTaken(r *write.Record, name string, change func(*write.Record) (map[string]write.Observed, bool)) []string {
	f, _ := r.Object.Field(name)
	value := string(r.Values[name])
	empty := []string{"null", map[string]string{rpc.TypeString: `""`, rpc.TypeInteger: "0", rpc.TypeDecimal: `"0"`, rpc.TypeFloat: "0", rpc.TypeBoolean: "false"}[f.Type]}
	if f.Array {
		empty[1] = "[]"
	}
	out := []string{foreign.Clip(value, 60)}
	if !slices.Contains(empty, value) {
		return out
	}
	for _, other := range empty {
		if other == value || other == "" || other == "null" && (f.Required || r.Object.NoNull(name)) {
			continue
		}
		if _, ok := change(sc.Changed(r, 11)); !ok { // there is something to be emptied
			continue
		}
		seen, ok := change(r.With(name, json.RawMessage(other)))
		if same, _ := hook.SameValue(f, json.RawMessage(other), seen[exchange.KeyText(r.Key)].Fields[name]); ok && !same && OrNull(seen[exchange.KeyText(r.Key)].Fields[name]) != "null" {
			out = append(out, other)
		}
	}
	return out
}

// whichValues is the cause that follows from which other values were taken.
func (sc *Scenario) whichValues(e *write.Expected, fields []string, taken, tried [2][]string, change func(*write.Record) (map[string]write.Observed, bool)) write.Cause {
	sides := [2]string{"smaller or earlier", "larger or later"}
	for side, other := range [2]int{1, 0} {
		name := notIn(tried[other], taken[other])
		if name != "" && slices.Contains(taken[side], name) && len(tried[other]) > 1 && len(taken[other]) == 0 {
			return seenCause("the record is changed to %s values and not to %s ones, in every field: an old value (a time of change, a version) decides whether it is written.", sides[side], sides[other])
		}
		if name != "" && slices.Contains(taken[side], name) {
			return seenCause("%s is changed to a %s value and not to a %s one: the old value decides.", name, sides[side], sides[other])
		}
	}
	if all := slices.Concat(taken[0], taken[1]); len(all) > 0 {
		not := sc.notTaken(e.Record, all[0], change)
		why := "this value is not taken."
		switch value := string(e.Record.Values[all[0]]); {
		case len(not) == 1 && value == "null":
			why = "null is dropped, and the old value stays."
		case slices.Contains([]string{"null", "[]", `""`, "0", `"0"`, "false"}, value):
			why = "what is empty is dropped, and the old value stays."
		}
		if f, _ := e.Record.Object.Field(all[0]); f.Array {
			return either("an empty "+all[0]+" is dropped, and the old value stays", "items of the longer list before are never removed", "a list of fewer items than before")
		}
		return seenCause("%s is changed to other values, in the same operation, and not to %s: %s", all[0], strings.Join(not, " or "), why)
	}
	// A field without a third value, as a flag, adds nothing where all others were tried in vain.
	if len(fields) == len(sc.FieldsThatChange(e.Record)) && len(tried[0]) > 0 && len(tried[1]) > 0 {
		return seenCause("%s of a record that is there is acknowledged and nothing is written, not later (%s) and not in another sync.", e.Operation, sc.Opts.LateWait)
	}
	if untried := notIn(fields, slices.Concat(tried[0], tried[1])); untried != "" || len(tried[0]) == 0 || len(tried[1]) == 0 {
		return either("the statement that changes a record leaves "+quantity.List(fields)+" out", "these values are not taken", e.Operation+" with other values")
	}
	return seenCause("the statement that changes a record leaves these fields out; the others were changed.")
}

// notIn is the first of the names that is not among the others, "" without one.
func notIn(names, others []string) string {
	for _, name := range names {
		if !slices.Contains(others, name) {
			return name
		}
	}
	return ""
}

// onSide gives fields of a record values that are smaller (-1) or larger (1) than those
// that are stored, where some are found; of what has no order, other ones.
func (sc *Scenario) onSide(r *write.Record, fields []string, stored map[string]json.RawMessage, side int) (other *write.Record, changes []string) {
	other = r
	for _, name := range fields {
		f, _ := r.Object.Field(name)
		for version := 7; version < 40; version++ {
			value := sc.Changed(r, version).Values[name]
			if same, _ := hook.SameValue(f, value, stored[name]); same {
				continue
			}
			if same, _ := hook.SameValue(f, value, r.Values[name]); same {
				continue // the one that was not taken
			}
			if order := compare(f, value, stored[name]); order == side || order == 0 {
				other, changes = other.With(name, value), append(changes, name)
				break
			}
		}
	}
	return other, changes
}

// compare orders two values of a field; 0 where they have no order.
func compare(f rpc.Field, a, b json.RawMessage) int {
	if f.Array || OrNull(a) == "null" || OrNull(b) == "null" {
		return 0
	}
	one, other := exchange.KeyText(a), exchange.KeyText(b)
	switch f.Type {
	case rpc.TypeInteger, rpc.TypeDecimal, rpc.TypeFloat:
		x, ok := new(big.Float).SetString(one)
		y, okay := new(big.Float).SetString(other)
		if ok && okay {
			return x.Cmp(y)
		}
		return 0
	case rpc.TypeBoolean:
		return 0
	}
	return cmp.Compare(strings.ToLower(one), strings.ToLower(other))
}
