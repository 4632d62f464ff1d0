package judge

import (
	"cmp"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

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

// lostChange is a change that was acknowledged and not made.
type lostChange struct {
	*Scenario // with a separate sync run
	*write.Expected
	fields []string                   // that have their old values
	before map[string]json.RawMessage // what a read-back showed before the change
}

// kept are the fields that a read-back still shows with their old values.
func (c *lostChange) kept(now write.Observed) []string {
	return lists.Where(c.fields, func(name string) bool { return model.OrNull(now.Fields[name]) == model.OrNull(c.before[name]) })
}

// whyOld distinguishes late writes, plans kept for a sync, refused values and dropped updates.
func (sc *Scenario) whyOld() write.Cause {
	if !slices.ContainsFunc(sc.Unmet.Stale, func(d write.Difference) bool { return d.Class == values.Older }) {
		return write.Cause{} // the values themselves show it
	}
	c := &lostChange{Scenario: sc.apart(), Expected: sc.Model.Get(sc.Unmet.Stale[0].Record)}
	of := lists.Where(sc.Unmet.Stale, func(d write.Difference) bool { return d.Record.Place() == c.Record.Place() })
	c.fields = lists.Of(of, func(d write.Difference) string { return d.Field })
	c.before = sc.Before[c.Record.Place()].Fields
	look := []*write.Record{c.Record}
	gone := func(s map[string]write.Observed) bool { return len(c.kept(s[exchange.KeyText(c.Record.Key)])) == 0 }
	from := time.Now()
	seen, err := sc.Poll(c.Operation, look, gone)
	switch {
	case err != nil:
		return write.Cause{}
	case gone(seen):
		after := time.Since(from)
		for range 4 {
			if seen, err = sc.Observe(look); err != nil || !gone(seen) {
				return severalStores
			}
		}
		return notAwaited(after, "the new values were there")
	case seen[exchange.KeyText(c.Record.Key)].Count > 1:
		return sc.addsCopies(c.Record)
	}
	made := func(s map[string]write.Observed) bool { return len(s) == 1 && gone(s) }
	if held := sc.heldBack(sc.Object.Creating(), look, made); held.Text != "" {
		return held
	}
	if slices.Contains(sc.Unmet.Altered, c.Record.Place()) {
		return write.Cause{} // some of its values were neither sent nor there before
	}
	isNull := func(r *write.Record, field string) bool { return string(r.Values[field]) == "null" }
	if slices.ContainsFunc(sc.Unmet.Stale, func(d write.Difference) bool { return isNull(c.Record, d.Field) && !isNull(d.Record, d.Field) }) {
		return either("null in one record leaves the field out for the whole batch (the first record makes the statement)",
			"a batch is not written as a single record is", "the records with null alone, and then the others,")
	}
	return c.whyKept(sc.batchWith(c.Record))
}

// inBulk are the candidates where a batch of several records is not stored as one record is.
func inBulk(b *write.Batch) write.Cause {
	return either("a batch of "+quantity.Count(len(b.Records), "record")+" is not written as one of a single record is (a transaction that is not committed, a bulk statement)",
		"what an earlier batch of the same sync has left (its plan, its operation or its content)", "the whole batch in a separate sync")
}

// whyKept sends the change again in a separate sync, and then smaller and larger values.
func (c *lostChange) whyKept(b *write.Batch) write.Cause {
	got, ok := c.storedAs(c.Operation, c.Record)
	switch {
	case !ok:
		return either("a change is lost for what an earlier batch of its sync has left", "it is never made", c.Operation+" of one record in a separate sync (here it was not accepted)")
	case len(c.kept(got)) == 0 && b != nil && len(b.Records) > 1 && 2*len(c.fields) <= len(c.FieldsThatChange(c.Record)): // the others were changed
		return either(quantity.List(c.fields)+" of a record is not written, or into another one, where a batch has several (an id or a variable that they share)",
			"what an earlier batch of the same sync has left decides", "the whole batch in a separate sync")
	case len(c.kept(got)) == 0 && b != nil && len(b.Records) > 1:
		return inBulk(b)
	case len(c.kept(got)) == 0:
		return seenCause("keep nothing of a batch for the next one.", "the same change in a separate sync is made: what an earlier batch of the same sync has left (its plan, its operation or its content) decides instead of the call.")
	}
	if other := c.created(c.Object.Creating()); other != nil {
		if beside, ok := c.storedAs(c.Operation, c.Record, c.Changed(other, 1)); ok && len(c.kept(beside)) == 0 {
			return seenCause("write a batch of one record as any other.", "the same change is made when another record is in its batch, and not when it is alone: a batch of one record that is there is acknowledged and not written.")
		}
	}
	now := got.Fields
	var taken, tried [2][]string // of smaller and of larger values
	added := ""                  // an array that has more items than were sent
	for side := range taken {
		other, changes := c.onSide(now, 2*side-1)
		if len(changes) == 0 {
			continue
		}
		if got, ok = c.storedAs(c.Operation, other); !ok {
			continue
		}
		before := now
		now = got.Fields
		tried[side] = changes
		for _, name := range changes {
			f, _ := c.Object.Field(name)
			if same, _ := hook.SameValue(f, other.Values[name], now[name]); same {
				taken[side] = append(taken[side], name)
			} else if values.Classify(values.Pair{Field: f, Sent: other.Values[name], Stored: now[name], Before: before[name]}).Class == values.Added {
				added = name
			}
		}
	}
	if added != "" {
		return seenCause("remove the old items in the transaction that writes the new ones.", "the items of %s are added to those that are there, with other items as well: what was there before is never removed.", added)
	}
	if name := notIn(c.fields, slices.Concat(tried[0], tried[1])); name != "" && c.takesOther(name, now[name]) {
		for side := range taken {
			taken[side], tried[side] = append(taken[side], name), append(tried[side], name)
		}
	}
	return c.whichValues(taken, tried)
}

// takesOther reports whether a field without a third value is changed the other way, in a new record.
func (c *lostChange) takesOther(name string, stored json.RawMessage) bool {
	made, err := c.fresh(1, c.Object.Creating())
	if err != nil {
		return false
	}
	f, _ := c.Object.Field(name)
	isStored := func(operation string, value json.RawMessage) (is, ok bool) {
		got, ok := c.storedAs(operation, made[0].With(name, value))
		is, _ = hook.SameValue(f, stored, got.Fields[name])
		return is, ok
	}
	if is, ok := isStored(c.Object.Creating(), c.Record.Values[name]); is || !ok {
		return false
	}
	is, ok := isStored(c.Operation, stored)
	return is && ok
}

// notTaken are the value that was not taken and those without content that are not taken either.
func (c *lostChange) notTaken(name string) []string {
	f, _ := c.Object.Field(name)
	value := string(c.Record.Values[name])
	empty := []string{"null", map[string]string{rpc.TypeString: `""`, rpc.TypeInteger: "0", rpc.TypeDecimal: `"0"`, rpc.TypeFloat: "0", rpc.TypeBoolean: "false"}[f.Type]}
	if f.Array {
		empty[1] = "[]"
	}
	out := []string{foreign.Clip(value, 60)}
	if !slices.Contains(empty, value) {
		return out
	}
	for _, other := range empty {
		if other == value || other == "" || other == "null" && (f.Required || c.Object.NoNull(name)) {
			continue
		}
		if _, ok := c.storedAs(c.Operation, c.Changed(c.Record, 11)); !ok { // there is something to be emptied
			continue
		}
		got, ok := c.storedAs(c.Operation, c.Record.With(name, json.RawMessage(other)))
		if same, _ := hook.SameValue(f, json.RawMessage(other), got.Fields[name]); ok && !same && model.OrNull(got.Fields[name]) != "null" {
			out = append(out, other)
		}
	}
	return out
}

// whichValues is the cause that follows from which other values were taken.
func (c *lostChange) whichValues(taken, tried [2][]string) write.Cause {
	sides := [2]string{"smaller or earlier", "larger or later"}
	for side, other := range [2]int{1, 0} {
		name := notIn(tried[other], taken[other])
		switch {
		case name == "" || !slices.Contains(taken[side], name):
		case len(tried[other]) > 1 && len(taken[other]) == 0:
			return seenCause("write the values of the latest call, whatever is stored.", "the record is changed to %s values and not to %s ones, in every field: an old value (a time of change, a version) decides whether it is written.", sides[side], sides[other])
		default:
			return seenCause("write the values of the latest call, whatever is stored.", "%s is changed to a %s value and not to a %s one: the old value decides.", name, sides[side], sides[other])
		}
	}
	if all := slices.Concat(taken[0], taken[1]); len(all) > 0 {
		not := c.notTaken(all[0])
		why := "this value is not taken."
		switch value := string(c.Record.Values[all[0]]); {
		case len(not) == 1 && value == "null":
			why = "null is dropped, and the old value stays."
		case slices.Contains([]string{"null", "[]", `""`, "0", `"0"`, "false"}, value):
			why = "what is empty is dropped, and the old value stays."
		}
		if f, _ := c.Object.Field(all[0]); f.Array {
			return either("an empty "+all[0]+" is dropped, and the old value stays", "items of the longer list before are never removed", "a list of fewer items than before")
		}
		return seenCause("write what is sent, also null and what is empty.", "%s is changed to other values, in the same operation, and not to %s: %s", all[0], strings.Join(not, " or "), why)
	}
	bothTried := len(tried[0]) > 0 && len(tried[1]) > 0
	switch {
	// A field without a third value, as a flag, adds nothing where all others were tried in vain.
	case len(c.fields) == len(c.FieldsThatChange(c.Record)) && bothTried:
		return seenCause("write the new values, and acknowledge them when that is committed.", "%s of a record that is there is acknowledged and nothing is written, not later (%s) and not in another sync.", c.Operation, c.Opts.LateWait)
	case !bothTried || notIn(c.fields, slices.Concat(tried[0], tried[1])) != "":
		return either("the statement that changes a record leaves "+quantity.List(c.fields)+" out", "these values are not taken", c.Operation+" with other values")
	}
	return seenCause("name every mapped field in the statement that changes a record.", "the statement that changes a record leaves these fields out; the others were changed.")
}

// notIn is the first of the names that is not among the others, "" without one.
func notIn(names, others []string) string {
	return write.First(names, func(name string) bool { return !slices.Contains(others, name) })
}

// onSide gives fields of the record values that are smaller (-1) or larger (1) than those
// that are stored, where some are found; of what has no order, other ones.
func (c *lostChange) onSide(stored map[string]json.RawMessage, side int) (other *write.Record, changes []string) {
	other = c.Record
	for _, name := range c.fields {
		f, _ := c.Object.Field(name)
		is := func(value, of json.RawMessage) bool { same, _ := hook.SameValue(f, value, of); return same }
		for version := 7; version < 40; version++ {
			value := c.Changed(c.Record, version).Values[name]
			if is(value, stored[name]) || is(value, c.Record.Values[name]) { // the latter was not taken
				continue
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
	if f.Array || f.Type == rpc.TypeBoolean || model.OrNull(a) == "null" || model.OrNull(b) == "null" {
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
	}
	return cmp.Compare(strings.ToLower(one), strings.ToLower(other))
}
