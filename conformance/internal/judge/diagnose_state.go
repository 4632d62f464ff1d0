package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// What a read-back shows next to what was expected, and the causes that it leads to.

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

// brokenBy is BrokenAs with the cause that the evidence at hand leads to.
func (sc *Scenario) brokenBy(c write.Cause, symptom, operation, expected, actual string, where ...*exchange.Reply) {
	from := len(sc.All())
	sc.BrokenAs(symptom, operation, expected, actual, where...)
	sc.because(from, c)
}

// brokenByCopies adds a finding about n copies of a record.
func (sc *Scenario) brokenByCopies(r *write.Record, n int) {
	sc.brokenBy(sc.addsCopies(r), symptomCopies, sc.operationOf(r), "one record "+string(r.Key), quantity.Count(n, "copy")+" of it", sc.ReplyFor(r))
}

// addsCopies is the cause of copies that batches one after the other have made.
func (sc *Scenario) addsCopies(r *write.Record) write.Cause {
	if overlapping(sc.batchesOf(r)) {
		return write.Cause{}
	}
	return write.Cause{
		Text: sc.operationOf(r) + " adds a copy of a record that is there: the statement does not look for it, looks at another field or at what comes later (a replica, an index of a search), and no unique index of the identifier keeps the copy out.",
		Fix:  "create a unique index on each identifier, and write with one statement that creates or changes (ON CONFLICT, MERGE).",
	}
}

// batchesOf are those that have named the place of a record.
func (sc *Scenario) batchesOf(r *write.Record) []*write.Batch {
	return lists.Where(sc.Batches, func(b *write.Batch) bool { return write.Holds(b.Records, r) })
}

// overlapping reports whether a batch was sent while another one had no reply.
func overlapping(batches []*write.Batch) bool {
	for i, b := range batches {
		for _, o := range batches[i+1:] {
			if b.Reply.Started.Before(o.Reply.Started.Add(o.Reply.Total)) && o.Reply.Started.Before(b.Reply.Started.Add(b.Reply.Total)) {
				return true
			}
		}
	}
	return false
}

// ownValue is the cause of a field that no call has named and that the destination sets to the time of the change.
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

// ofOthers is the cause of changes to records that the batch did not name; alike are those of keys that are nearly equal.
func (sc *Scenario) ofOthers(records []*write.Record, gone int, seen map[string]write.Observed, alike []write.Cause) write.Cause {
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
	case len(slices.Compact(alike)) == 1: // all of them in one way
		return alike[0]
	}
	return write.Cause{}
}

// hasLatestValues reports whether all changed fields of a record have values of the last batch.
func (sc *Scenario) hasLatestValues(r *write.Record, got write.Observed) bool {
	n := 0
	for name, raw := range sc.Before[r.Place()].Fields {
		now := model.OrNull(got.Fields[name])
		if name == r.ID.APIName || model.OrNull(raw) == now {
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

// whyLeft looks whether records go later or after other calls, when their delete was acknowledged.
func (sc *Scenario) whyLeft() write.Cause {
	left := sc.Unmet.Left
	if len(left) == 0 {
		return write.Cause{}
	}
	from := time.Now()
	none := func(s map[string]write.Observed) bool { return len(s) == 0 }
	switch seen, err := sc.Poll(rpc.OperationDelete, left, none); {
	case err != nil:
		return write.Cause{}
	case none(seen):
		return notAwaited(time.Since(from), "the records were gone").Of(ofDeletes)
	}
	switch c := sc.heldBack(sc.Object.Creating(), left, none); {
	case c.Observed:
		return c
	case c.Text == "":
		for i, r := range []*write.Record{left[0], write.OnlyIdentifier(nil, left[0])} { // each alone
			if got, ok := sc.storedAs(rpc.OperationDelete, r); !ok || (got.Count > 0) != (i == 0) {
				return c
			}
		}
		return write.Cause{
			Text: "a delete whose plan maps its identifier alone removes the record, and one whose plan maps further fields, of which a delete has no values, does not: they decide as well.",
			Fix:  "delete by the active identifier alone, whatever else the plan maps.", Observed: true,
		}
	}
	return write.Cause{
		Text: "the records are gone only after other batches were written: the delete is not committed, and stays in an open transaction (or a buffer) that a later call ends.",
		Fix:  "commit before the reply, on every path, and give a connection back without an open transaction.", Rule: ofDeletes,
	}
}

// whyOutpaced distinguishes a late write from concurrent calls that undo each other.
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
		r := other.created(operation)
		if r == nil {
			return write.Cause{}
		}
		w := other.tries(sc.Parallel.Witness, sc.Changed(r, write.WitnessVersion))
		if w == nil || sc.Skipped(w, r) != (sc.Parallel.Witness == rpc.OperationInsert) {
			return write.Cause{}
		}
	}
	return seenCause("let each write name the rows that it changes, in one statement or transaction; do not read, change and write back what calls share.",
		"a record that is sent when no other call runs is found at once, and of those that are sent in parallel some are lost, also later: calls at the same time overwrite each other's writes (what is read, changed and written whole).").Of(ofParallel)
}

// The checks that a write is there with its reply, that batches in parallel are stored, and that a delete is carried out.
const ofWrites, ofParallel, ofDeletes = "DUR-001", "PAR-002", "SEM-009"

// thereAll reports whether all of the records are seen.
func thereAll(records []*write.Record) func(map[string]write.Observed) bool {
	return func(seen map[string]write.Observed) bool { return len(seen) == len(records) }
}

// heldBack looks whether a write, also of a new record, is carried out only when others follow it.
func (sc *Scenario) heldBack(operation string, records []*write.Record, done func(map[string]write.Observed) bool) write.Cause {
	key := fmt.Sprint(sc.Object.APIName, sc.operationOf(records[0]), sc.Before[records[0].Place()].Count > 0)
	fill := func(look []*write.Record, done func(map[string]write.Observed) bool) bool {
		const calls, large = 13, 16 // more than a pool has connections, and as large as a buffer
		for i := range calls {
			n := max(1, large-i*large) // the first one is large
			if b := sc.apart().creates(operation, min(n, sc.LargestBatch()), nil); b == nil || !b.Answered() {
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
		other := sc.apart()
		r := other.created(operation)
		if r == nil {
			break
		}
		look := []*write.Record{r}
		there := thereAll(look)
		switch seen, err := other.Poll(operation, look, there); {
		case err != nil:
			return write.Cause{}
		case !there(seen) && fill(look, there):
			return write.Cause{
				Text: fmt.Sprintf("a record is there only when others were written behind it, and not %s after its reply: writes stay in a buffer until it is full, or in an open transaction.", sc.Opts.LateWait),
				Fix:  "flush and commit before the reply.", Observed: true, Rule: ofWrites,
			}
		}
	}
	return either("writes stay in a buffer, or in an open transaction, until others come", "they come later than "+sc.Opts.LateWait.String()+" after the reply", "one record alone, and a look some seconds later,")
}

// whyKeysLost looks whether a lost record has nearly the same identifier as another one.
func (sc *Scenario) whyKeysLost(lost []*write.Record) write.Cause {
	others := slices.Clone(lost[1:])
	for _, r := range write.Each(sc.Latest) {
		others = append(others, r)
	}
	for _, other := range others {
		if how := values.AlikeKeys(exchange.KeyText(lost[0].Key), exchange.KeyText(other.Key)); how != "" {
			c := alikeKeys(how)
			alone, _ := sc.apart().storedAs(sc.operationOf(lost[0]), lost[0])
			if beside, _ := sc.shows(other); alone.Count == 1 && beside.Count == 1 {
				c.Rule = ofWrites // both can be there: its batch has dropped it
			}
			return c
		}
	}
	return write.Cause{}
}

// seenCause is one that the calls of the run have left alone.
func seenCause(fix, format string, args ...any) write.Cause {
	return write.Cause{Text: fmt.Sprintf(format, args...), Fix: fix, Observed: true}
}

// either are candidates that the calls of the run do not distinguish, with the call that does.
func either(one, other, call string) write.Cause {
	return write.Cause{Text: wire.EitherCause(one, other, call)}
}

// notAwaited is the cause where a written record exists some time after the reply.
func notAwaited(after time.Duration, what string) write.Cause {
	return seenCause("await the write, and its commit, before the reply.", "the write is not awaited: %s after the reply %s.", exchange.Round(after), what)
}

// arrived is the cause where records came late, or each of several processes shows its own.
func (sc *Scenario) arrived(after time.Duration, records []*write.Record) write.Cause {
	for range 4 {
		if seen, err := sc.Observe(records); err != nil {
			return write.Cause{}
		} else if len(seen) < len(records) {
			return severalStores
		}
	}
	return notAwaited(after, "the records were there")
}
