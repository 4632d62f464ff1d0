package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// What a read-back shows next to what was expected: copies, records that a delete has
// left, and values that no call has sent.

// because gives the findings from a place on the cause that the evidence at hand leads to.
func (sc *Scenario) because(from int, c write.Cause) {
	for i := range sc.All()[from:] {
		if f := &sc.All()[from+i]; c.Text != "" && (f.Quote == nil || !f.Quote.Cause) {
			f.Cause = c.Text + strings.TrimPrefix(f.Cause, sc.Check().Cause)
			if c.Fix != "" {
				f.Fix = c.Fix
			}
		}
	}
}

// symptomCopies is that of records which are there more than once.
const symptomCopies = "copies"

// brokenByCopies adds a finding about n copies of a record.
func (sc *Scenario) brokenByCopies(r *write.Record, n int) {
	from := len(sc.All())
	sc.BrokenAs(symptomCopies, sc.operationOf(r), "one record "+string(r.Key), fmt.Sprintf("%s of it", quantity.Count(n, "copy")), sc.ReplyFor(r))
	sent := slices.DeleteFunc(slices.Clone(sc.Batches), func(b *write.Batch) bool {
		return !slices.ContainsFunc(b.Records, func(o *write.Record) bool { return o.Place() == r.Place() })
	})
	if overlapping(sent) {
		return
	}
	sc.because(from, write.Cause{
		Text: fmt.Sprintf("%s adds a copy of a record that is there: the statement does not look for it, or looks at another field, and no unique index of the identifier keeps the copy out.", sc.operationOf(r)),
		Fix:  "create a unique index on each identifier, and write with one statement that creates or changes (ON CONFLICT, MERGE).",
	})
}

// ownValue is the cause of a field that no call has named and that changed: the time of
// the change in it was set by the destination.
func ownValue(f rpc.Field, stored string) write.Cause {
	at, ok := values.Moment(stored)
	if f.Type != rpc.TypeDateTime && f.Type != rpc.TypeDate || !ok || time.Since(at).Abs() > 26*time.Hour {
		return write.Cause{}
	}
	return write.Cause{
		Text: "the destination sets " + f.APIName + " by itself, to the time of the change: a trigger, ON UPDATE CURRENT_TIMESTAMP or the code.",
		Fix:  "do not declare a field that the destination keeps as createable or updateable, or leave it as it is where it is not mapped.",
	}
}

// ofOthers is the cause of a change to records that the batch did not name: those of all,
// or of some.
func (sc *Scenario) ofOthers(records []*write.Record, gone int, seen map[string]write.Observed) write.Cause {
	taken, others := 0, 0
	for _, r := range records {
		if sc.inLatest(r) {
			continue
		}
		others++
		if got := seen[exchange.KeyText(r.Key)]; got.Count > 0 && sc.hasLatestValues(r, got) {
			taken++
		}
	}
	switch {
	case others < 2:
		return write.Cause{}
	case taken == others:
		return write.Cause{Text: "every record gets the values of the one that was sent: the condition of the statement (WHERE) does not hold its identifier.",
			Fix: "compare the column of the active identifier with a bound parameter, and test that another row is not changed."}
	case gone == others:
		return write.Cause{Text: "all other records are gone: each run, or each batch, empties the table before it writes.", Fix: "remove only what a delete names."}
	}
	return write.Cause{}
}

// hasLatestValues reports whether a record has, in each field that it has not kept, the
// value of a record of the last batch.
func (sc *Scenario) hasLatestValues(r *write.Record, got write.Observed) bool {
	n := 0
	for name, raw := range sc.Before[r.Place()].Fields {
		now := OrNull(got.Fields[name])
		if name == r.ID.APIName || OrNull(raw) == now {
			continue
		}
		f, _ := r.Object.Field(name)
		of := func(o *write.Record) bool {
			same, _ := hook.SameValue(f, o.Values[name], []byte(now))
			return o.Values[name] != nil && same
		}
		if !slices.ContainsFunc(sc.Latest, func(b *write.Batch) bool { return slices.ContainsFunc(b.Records, of) }) {
			return false
		}
		n++
	}
	return n > 0
}

// whyLeft looks why records are there after their delete was acknowledged: later, after
// other calls, or in no case gone.
func (sc *Scenario) whyLeft() write.Cause {
	left := sc.Unmet.Left
	if len(left) == 0 {
		return write.Cause{}
	}
	from := time.Now()
	none := func(s map[string]write.Observed) bool { return len(s) == 0 }
	seen, err := sc.Poll(rpc.OperationDelete, left, none)
	switch {
	case err != nil:
		return write.Cause{}
	case none(seen):
		c := notAwaited(time.Since(from), "the records were gone")
		c.Rule = ofDeletes
		return c
	}
	if c := sc.heldBack(sc.Object.Creating(), left, none); c.Observed {
		return c
	} else if c.Text != "" {
		return write.Cause{
			Text: "the records are gone only after other batches were written: the delete is not committed, and stays in an open transaction (or a buffer) that a later call ends.",
			Fix:  "commit before the reply, on every path, and give a connection back without an open transaction.", Rule: ofDeletes,
		}
	}
	if seen, err = sc.Observe(left); err == nil && !slices.ContainsFunc(left, func(r *write.Record) bool { return !sc.emptied(r, seen) }) {
		return seenCause("delete empties the fields of a record, and leaves the record under its identifier.")
	}
	return write.Cause{}
}

// emptied reports whether a record had values before its last batch and has none now, its
// identifiers aside.
func (sc *Scenario) emptied(r *write.Record, seen map[string]write.Observed) bool {
	filled := func(o write.Observed) bool {
		for name, raw := range o.Fields {
			if f, known := r.Object.Field(name); known && write.BothWays(f) && !f.Identifier && OrNull(raw) != "null" {
				return true
			}
		}
		return false
	}
	return filled(sc.Before[r.Place()]) && !filled(seen[exchange.KeyText(r.Key)])
}

// whyOutpaced tells a write that comes late from calls at the same time that take back
// each other's.
func (sc *Scenario) whyOutpaced() write.Cause {
	blind := sc.Unmet.Outpaced
	if len(blind) == 0 {
		return write.Cause{}
	}
	operation := sc.operationOf(blind[0])
	if after, all := sc.Appears(operation, blind); all {
		return sc.arrived(after, blind)
	}
	if c := sc.heldBack(operation, blind, thereAll(blind)); c.Observed {
		return c
	}
	other := sc.apart()
	for range 2 {
		made, err := other.Make(1, operation, rpc.Field{}, &write.Sending{})
		if err != nil {
			return write.Cause{}
		}
		l, err := other.RunLane(operation, sc.Parallel.Witness, made[0])
		if err != nil || l.Witness == nil || sc.Skipped(l.Witness, l.Witness.Records[0]) != (sc.Parallel.Witness == rpc.OperationInsert) {
			return write.Cause{}
		}
	}
	return seenCause("a record that is sent when no other call runs is found at once, and of those that are sent in parallel some are lost, also later: calls at the same time overwrite each other's writes (what is read, changed and written whole).")
}

// heldCalls is how many batches are sent to see whether they end what an earlier one has
// left open, as a pool has a few connections, and heldRecords how large the first one is,
// to fill a buffer.
const heldCalls, heldRecords = 13, 16

// The checks that a write is there with its reply, and that a delete is carried out.
const ofWrites, ofDeletes = "DUR-001", "SEM-009"

// thereAll reports whether all of the records are seen.
func thereAll(records []*write.Record) func(map[string]write.Observed) bool {
	return func(seen map[string]write.Observed) bool { return len(seen) == len(records) }
}

// heldBack looks whether what was acknowledged is carried out only when others were
// written behind it, and whether that holds for a new record as well.
func (sc *Scenario) heldBack(operation string, records []*write.Record, done func(map[string]write.Observed) bool) write.Cause {
	key := fmt.Sprint(sc.Object.APIName, sc.operationOf(records[0]), sc.Before[records[0].Place()].Count > 0)
	fill := func(look []*write.Record, done func(map[string]write.Observed) bool) bool {
		for i := range heldCalls {
			n := max(1, heldRecords-i*heldRecords) // the first one is large
			if _, b := sc.tries(operation, min(n, sc.LargestBatch()), false); b == nil || !b.Answered() {
				return false
			}
			if seen, err := sc.Observe(look); err != nil || done(seen) {
				return err == nil
			}
		}
		sc.j.atOnce.Store(key, true)
		return false
	}
	if _, known := sc.j.atOnce.Load(key); known || !fill(records, done) {
		return write.Cause{}
	}
	for range 3 { // one of them may be the last that fits
		other, b := sc.tries(operation, 1, false)
		if b == nil || !b.Succeeded(b.Records[0]) {
			break
		}
		there := thereAll(b.Records)
		switch seen, err := other.Poll(operation, b.Records, there); {
		case err != nil:
			return write.Cause{}
		case !there(seen) && fill(b.Records, there):
			return write.Cause{
				Text: fmt.Sprintf("a record is there only when others were written behind it, and not %s after its reply: writes stay in a buffer until it is full, or in an open transaction.", sc.Opts.LateWait),
				Fix:  "flush and commit before the reply.", Observed: true, Rule: ofWrites,
			}
		}
	}
	return either("writes stay in a buffer, or in an open transaction, until others come", "they come later than "+sc.Opts.LateWait.String()+" after the reply", "one record alone, and a look some seconds later,")
}

// whyKeysLost looks whether the lost records have a character in their identifiers that no
// other has: a new identifier with it is lost, and one with a letter in its place is not.
func (sc *Scenario) whyKeysLost(operation string, lost []*write.Record) write.Cause {
	var own, others []string
	for _, b := range sc.Latest {
		for _, r := range b.Records {
			text := exchange.KeyText(r.Key)
			if slices.ContainsFunc(lost, func(o *write.Record) bool { return o.Place() == r.Place() }) {
				own = append(own, text)
			} else {
				others = append(others, text)
			}
		}
	}
	if len(own) == 0 {
		return write.Cause{}
	}
	for _, other := range slices.Concat(own[1:], others) {
		if how := values.AlikeKeys(own[0], other); how != "" {
			return write.Cause{Text: fmt.Sprintf(takenForOneRecord, how), Fix: "compare identifiers exactly, or fail the record."}
		}
	}
	mark := values.SpecialIn(own[0], others)
	if mark == 0 || len(others) == 0 || lost[0].ID.Type != rpc.TypeString {
		return write.Cause{}
	}
	for _, try := range []struct {
		text string
		want fate
	}{{string(mark) + "a", isGone}, {"xa", isStored}} {
		other := sc.apart()
		made, err := other.Make(1, operation, lost[0].ID, &write.Sending{})
		if err != nil {
			return write.Cause{}
		}
		r := made[0].With(lost[0].ID.APIName, values.Quote(exchange.KeyText(made[0].Key)+try.text))
		b, err := other.WriteOne(operation, []*write.Record{r}, write.Plan{})
		if err != nil || !b.Succeeded(r) || other.fateOf(r) != try.want {
			return write.Cause{}
		}
	}
	return write.Cause{
		Text: fmt.Sprintf("records with a %q in their identifier are lost, and others are stored: the identifier is put into a URL, a path, a pattern or a statement, where this character has a meaning.", mark),
		Fix:  "escape the identifier for what it is put into, or give it as a parameter.", Observed: true,
	}
}
