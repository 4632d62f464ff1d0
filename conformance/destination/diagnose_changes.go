package destination

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// whyOld distinguishes late writes, plans that are kept for a sync, values that are not
// taken, and updates that are dropped.
func (sc *scenario) whyOld() cause {
	if !slices.ContainsFunc(sc.unmet.stale, func(d difference) bool { return d.class == values.Older }) {
		return cause{} // the values themselves say it
	}
	e := sc.model.get(sc.unmet.stale[0].record)
	var fields []string
	for _, d := range sc.unmet.stale {
		if d.record.place() == e.record.place() {
			fields = append(fields, d.field)
		}
	}
	before := sc.before[e.record.place()].fields
	kept := func(s map[string]observed) []string {
		now := s[exchange.KeyText(e.record.key)].fields
		return slices.DeleteFunc(slices.Clone(fields), func(name string) bool { return orNull(now[name]) != orNull(before[name]) })
	}
	from := time.Now()
	gone := func(s map[string]observed) bool { return len(kept(s)) == 0 }
	seen, err := sc.poll(e.Operation, []*record{e.record}, gone)
	switch {
	case err != nil:
		return cause{}
	case gone(seen):
		after := time.Since(from)
		for range 4 {
			if seen, err = sc.observe([]*record{e.record}); err != nil || !gone(seen) {
				return severalStores
			}
		}
		return notAwaited(after, "the new values were there")
	}
	if _, ok := sc.together(sc.object.creating(), min(16, sc.largestBatch())); ok {
		if seen, err = sc.observe([]*record{e.record}); err == nil && len(seen) == 1 && gone(seen) {
			return either("writes stay in a buffer, or in an open transaction, until others come", "they come later than "+sc.opts.LateWait.String()+" after the reply", "the change alone, and a look some seconds later,")
		}
	}
	if slices.Contains(sc.unmet.altered, e.record.place()) {
		return cause{} // some of its values were neither sent nor there before
	}
	return sc.whyKept(e, fields, kept)
}

// whyKept sends the change again in a sync of its own, where nothing of an earlier batch
// is left, and then other values for its fields: smaller and larger ones.
func (sc *scenario) whyKept(e *expected, fields []string, kept func(map[string]observed) []string) cause {
	apart := sc.apart()
	change := func(r *record) (map[string]observed, bool) {
		b, err := apart.writeOne(e.Operation, forOperation(e.Operation, []*record{r}), plan{})
		if err != nil || !b.succeeded(b.records[0]) {
			return nil, false
		}
		seen, err := apart.observe([]*record{r})
		return seen, err == nil
	}
	seen, ok := change(e.record)
	if !ok {
		return either("a change is lost for what an earlier batch of its sync has left", "it is never made", e.Operation+" of one record in a sync of its own (here it was not accepted)")
	}
	if b := sc.batchWith(e.record); len(kept(seen)) == 0 && b != nil && len(b.records) > 1 {
		return either("a batch of "+quantity.Count(len(b.records), "record")+" is not written as one of a single record is (a transaction that is not committed, a bulk statement)",
			"what an earlier batch of the same sync has left (its plan, its operation or its content)", "the whole batch in a sync of its own")
	}
	if len(kept(seen)) == 0 {
		return seenCause("the same change in a sync of its own is made: what an earlier batch of the same sync has left (its plan, its operation or its content) decides instead of the call.")
	}
	if there, sent := apart.inCompany(e); sent && len(kept(there)) == 0 {
		return seenCause("the same change is made when another record stands in its batch, and not when it is alone: a batch of one record that is there is acknowledged and not written.")
	}
	now := seen[exchange.KeyText(e.record.key)].fields
	var taken, tried [2][]string // of smaller and of larger values
	added := ""                  // an array that has more items than were sent
	for side := range taken {
		other, changes := sc.onSide(e.record, fields, now, 2*side-1)
		if len(changes) == 0 {
			continue
		}
		if seen, ok = change(other); !ok {
			continue
		}
		before := now
		now = seen[exchange.KeyText(e.record.key)].fields
		tried[side] = changes
		for _, name := range changes {
			f, _ := other.object.field(name)
			if same, _ := hook.SameValue(f, other.values[name], now[name]); same {
				taken[side] = append(taken[side], name)
			} else if values.Classify(values.Pair{Field: f, Sent: other.values[name], Stored: now[name], Before: before[name]}).Class == values.ItemsAdded {
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
func (sc *scenario) inCompany(e *expected) (seen map[string]observed, ok bool) {
	made, err := sc.make(1, sc.object.creating(), rpc.Field{}, &sending{})
	if err != nil {
		return nil, false
	}
	if b, err := sc.writeOne(sc.object.creating(), made, plan{}); err != nil || !b.succeeded(made[0]) {
		return nil, false
	}
	b, err := sc.writeOne(e.Operation, forOperation(e.Operation, []*record{e.record, sc.changed(made[0], 1)}), plan{})
	if err != nil || !b.succeeded(e.record) {
		return nil, false
	}
	seen, err = sc.observe([]*record{e.record})
	return seen, err == nil
}

// takesOther reports whether a field that has no third value is changed the other way: in
// a new record, from the value that was sent to the one that is stored.
func (sc *scenario) takesOther(e *expected, name string, stored json.RawMessage) bool {
	made, err := sc.make(1, sc.object.creating(), rpc.Field{}, &sending{})
	if err != nil {
		return false
	}
	r := made[0].with(name, e.record.values[name])
	for _, step := range []struct {
		operation string
		record    *record
		is        bool
	}{{sc.object.creating(), r, false}, {e.Operation, r.with(name, stored), true}} {
		b, err := sc.writeOne(step.operation, forOperation(step.operation, []*record{step.record}), plan{})
		if err != nil || !b.succeeded(b.records[0]) {
			return false
		}
		seen, err := sc.observe([]*record{r})
		f, _ := r.object.field(name)
		if same, _ := hook.SameValue(f, stored, seen[exchange.KeyText(r.key)].fields[name]); err != nil || same != step.is {
			return false
		}
	}
	return true
}

// notTaken are the values of a field without content that are not taken either, with the
// one that was not.
func (sc *scenario) notTaken(r *record, name string, change func(*record) (map[string]observed, bool)) []string {
	f, _ := r.object.field(name)
	value := string(r.values[name])
	empty := []string{"null", map[string]string{rpc.TypeString: `""`, rpc.TypeInteger: "0", rpc.TypeDecimal: `"0"`, rpc.TypeFloat: "0", rpc.TypeBoolean: "false"}[f.Type]}
	if f.Array {
		empty[1] = "[]"
	}
	out := []string{foreign.Clip(value, 60)}
	if !slices.Contains(empty, value) {
		return out
	}
	for _, other := range empty {
		if other == value || other == "" || other == "null" && (f.Required || r.object.noNull(name)) {
			continue
		}
		if _, ok := change(sc.changed(r, 11)); !ok { // there is something to be emptied
			continue
		}
		seen, ok := change(r.with(name, json.RawMessage(other)))
		if same, _ := hook.SameValue(f, json.RawMessage(other), seen[exchange.KeyText(r.key)].fields[name]); ok && !same && orNull(seen[exchange.KeyText(r.key)].fields[name]) != "null" {
			out = append(out, other)
		}
	}
	return out
}

// whichValues is the cause that follows from which other values were taken.
func (sc *scenario) whichValues(e *expected, fields []string, taken, tried [2][]string, change func(*record) (map[string]observed, bool)) cause {
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
		not := sc.notTaken(e.record, all[0], change)
		why := "this value is not taken."
		switch value := string(e.record.values[all[0]]); {
		case len(not) == 1 && value == "null":
			why = "null is dropped, and the old value stays."
		case slices.Contains([]string{"null", "[]", `""`, "0", `"0"`, "false"}, value):
			why = "what is empty is dropped, and the old value stays."
		}
		if f, _ := e.record.object.field(all[0]); f.Array {
			return either("an empty "+all[0]+" is dropped, and the old value stays", "items of the longer list before are never removed", "a list of fewer items than before")
		}
		return seenCause("%s is changed to other values, in the same operation, and not to %s: %s", all[0], strings.Join(not, " or "), why)
	}
	// A field without a third value, as a flag, adds nothing where all others were tried in vain.
	if len(fields) == len(sc.fieldsThatChange(e.record)) && len(tried[0]) > 0 && len(tried[1]) > 0 {
		return seenCause("%s of a record that is there is acknowledged and nothing is written, not later (%s) and not in another sync.", e.Operation, sc.opts.LateWait)
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
func (sc *scenario) onSide(r *record, fields []string, stored map[string]json.RawMessage, side int) (other *record, changes []string) {
	other = r
	for _, name := range fields {
		f, _ := r.object.field(name)
		for version := 7; version < 40; version++ {
			value := sc.changed(r, version).values[name]
			if same, _ := hook.SameValue(f, value, stored[name]); same {
				continue
			}
			if same, _ := hook.SameValue(f, value, r.values[name]); same {
				continue // the one that was not taken
			}
			if order := compare(f, value, stored[name]); order == side || order == 0 {
				other, changes = other.with(name, value), append(changes, name)
				break
			}
		}
	}
	return other, changes
}

// compare orders two values of a field; 0 where they have no order.
func compare(f rpc.Field, a, b json.RawMessage) int {
	if f.Array || orNull(a) == "null" || orNull(b) == "null" {
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

func (sc *scenario) fieldsThatChange(r *record) []string {
	var out []string
	for name := range r.values {
		if f, ok := r.object.field(name); ok && bothWays(f) && name != r.id.APIName {
			out = append(out, name)
		}
	}
	return out
}
