package destination

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/values"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/hook"
	"github.com/destkit/destkit/internal/quantity"
)

// What a read-back shows next to what was expected: copies, records that a delete has
// left, and values that no call has sent.

// because gives the findings from a place on the cause that the evidence at hand leads to.
func (sc *scenario) because(from int, c cause) {
	for i := range sc.All()[from:] {
		if f := &sc.All()[from+i]; c.text != "" && (f.Quote == nil || !f.Quote.Cause) {
			f.Cause = c.text + strings.TrimPrefix(f.Cause, sc.Check().Cause)
			if c.fix != "" {
				f.Fix = c.fix
			}
		}
	}
}

// symptomCopies is that of records which are there more than once.
const symptomCopies = "copies"

// brokenByCopies adds a finding about n copies of a record.
func (sc *scenario) brokenByCopies(r *record, n int) {
	from := len(sc.All())
	sc.brokenAs(symptomCopies, sc.operationOf(r), "one record "+string(r.key), fmt.Sprintf("%s of it", quantity.Count(n, "copy")), sc.replyFor(r))
	sent := slices.DeleteFunc(slices.Clone(sc.batches), func(b *batch) bool {
		return !slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() })
	})
	if overlapping(sent) {
		return
	}
	sc.because(from, cause{
		text: fmt.Sprintf("%s adds a copy of a record that is there: the statement does not look for it, or looks at another field, and no unique index of the identifier keeps the copy out.", sc.operationOf(r)),
		fix:  "create a unique index on each identifier, and write with one statement that creates or changes (ON CONFLICT, MERGE).",
	})
}

// ownValue is the cause of a field that no call has named and that changed: the time of
// the change in it was set by the destination.
func ownValue(f rpc.Field, stored string) cause {
	at, ok := values.Moment(stored)
	if f.Type != rpc.TypeDateTime && f.Type != rpc.TypeDate || !ok || time.Since(at).Abs() > 26*time.Hour {
		return cause{}
	}
	return cause{
		text: "the destination sets " + f.APIName + " by itself, to the time of the change: a trigger, ON UPDATE CURRENT_TIMESTAMP or the code.",
		fix:  "do not declare a field that the destination keeps as createable or updateable, or leave it as it is where it is not mapped.",
	}
}

// ofOthers is the cause of a change to records that the batch did not name: those of all,
// or of some.
func (sc *scenario) ofOthers(records []*record, gone int, seen map[string]observed) cause {
	taken, others := 0, 0
	for _, r := range records {
		if sc.inLatest(r) {
			continue
		}
		others++
		if got := seen[exchange.KeyText(r.key)]; got.count > 0 && sc.hasLatestValues(r, got) {
			taken++
		}
	}
	switch {
	case others < 2:
		return cause{}
	case taken == others:
		return cause{text: "every record gets the values of the one that was sent: the condition of the statement (WHERE) does not hold its identifier.",
			fix: "compare the column of the active identifier with a bound parameter, and test that another row is not changed."}
	case gone == others:
		return cause{text: "all other records are gone: each run, or each batch, empties the table before it writes.", fix: "remove only what a delete names."}
	}
	return cause{}
}

// hasLatestValues reports whether a record has, in each field that it has not kept, the
// value of a record of the last batch.
func (sc *scenario) hasLatestValues(r *record, got observed) bool {
	n := 0
	for name, raw := range sc.before[r.place()].fields {
		now := orNull(got.fields[name])
		if name == r.id.APIName || orNull(raw) == now {
			continue
		}
		f, _ := r.object.field(name)
		of := func(o *record) bool {
			same, _ := hook.SameValue(f, o.values[name], []byte(now))
			return o.values[name] != nil && same
		}
		if !slices.ContainsFunc(sc.latest, func(b *batch) bool { return slices.ContainsFunc(b.records, of) }) {
			return false
		}
		n++
	}
	return n > 0
}

// whyLeft looks why records are there after their delete was acknowledged: later, after
// other calls, or in no case gone.
func (sc *scenario) whyLeft() cause {
	left := sc.unmet.left
	if len(left) == 0 {
		return cause{}
	}
	from := time.Now()
	none := func(s map[string]observed) bool { return len(s) == 0 }
	seen, err := sc.poll(rpc.OperationDelete, left, none)
	switch {
	case err != nil:
		return cause{}
	case none(seen):
		c := notAwaited(time.Since(from), "the records were gone")
		c.rule = ofDeletes
		return c
	}
	for range heldCalls {
		if _, b := sc.tries(sc.object.creating(), 1, false); b == nil {
			return cause{}
		}
	}
	if seen, err = sc.observe(left); err == nil && none(seen) {
		return cause{
			text: "the records are gone only after other batches were written: the delete is not committed, and stays in an open transaction (or a buffer) that a later call ends.",
			fix:  "commit before the reply, on every path, and give a connection back without an open transaction.", rule: ofDeletes,
		}
	}
	if err == nil && !slices.ContainsFunc(left, func(r *record) bool { return !sc.emptied(r, seen) }) {
		return seenCause("delete empties the fields of a record, and leaves the record under its identifier.")
	}
	return cause{}
}

// emptied reports whether a record had values before its last batch and has none now, its
// identifiers aside.
func (sc *scenario) emptied(r *record, seen map[string]observed) bool {
	filled := func(o observed) bool {
		for name, raw := range o.fields {
			if f, known := r.object.field(name); known && bothWays(f) && !f.Identifier && orNull(raw) != "null" {
				return true
			}
		}
		return false
	}
	return filled(sc.before[r.place()]) && !filled(seen[exchange.KeyText(r.key)])
}

// whyOutpaced tells a write that comes late from calls at the same time that take back
// each other's.
func (sc *scenario) whyOutpaced() cause {
	blind := sc.unmet.outpaced
	if len(blind) == 0 {
		return cause{}
	}
	operation := sc.operationOf(blind[0])
	if after, all := sc.appears(operation, blind); all {
		return sc.arrived(after, blind)
	}
	other := sc.apart()
	for range 2 {
		made, err := other.make(1, operation, rpc.Field{}, &sending{})
		if err != nil {
			return cause{}
		}
		l, err := other.runLane(operation, sc.parallel.witness, made[0])
		if err != nil || l.witness == nil || sc.skipped(l.witness, l.witness.records[0]) != (sc.parallel.witness == rpc.OperationInsert) {
			return cause{}
		}
	}
	return seenCause("a record that is sent when no other call runs is found at once, and of those that are sent in parallel some are lost, also later: calls at the same time overwrite each other's writes (what is read, changed and written whole).")
}

// heldCalls is how many batches are sent to see whether they end what an earlier one has
// left open: a pool has a few connections.
const heldCalls = 12

// ofDeletes is the check that a delete is carried out.
const ofDeletes = "SEM-009"

// heldBack looks whether a record comes only when others were written behind it.
func (sc *scenario) heldBack(operation string, lost []*record) cause {
	n := min(16, sc.largestBatch())
	fill := func(look []*record) bool {
		for sent := 0; sent < 16; sent += n {
			if _, ok := sc.together(operation, n); !ok {
				return false
			}
		}
		seen, err := sc.observe(look)
		return err == nil && len(seen) == len(look)
	}
	if !fill(lost) {
		return cause{}
	}
	for range 3 { // one of them may be the last that fits
		other, b := sc.tries(operation, 1, false)
		if b == nil || !b.succeeded(b.records[0]) {
			break
		}
		switch seen, err := other.poll(operation, b.records, func(s map[string]observed) bool { return len(s) == 1 }); {
		case err != nil:
			return cause{}
		case len(seen) == 0 && fill(b.records):
			return cause{
				text: fmt.Sprintf("a record is there only when others were written behind it, and not %s after its reply: writes stay in a buffer until it is full, or in an open transaction.", sc.opts.LateWait),
				fix:  "flush and commit before the reply.", observed: true,
			}
		}
	}
	return either("writes stay in a buffer, or in an open transaction, until others come", "they come later than "+sc.opts.LateWait.String()+" after the reply", "one record alone, and a look some seconds later,")
}

// whyKeysLost looks whether the lost records have a character in their identifiers that no
// other has: a new identifier with it is lost, and one with a letter in its place is not.
func (sc *scenario) whyKeysLost(operation string, lost []*record) cause {
	var own, others []string
	for _, b := range sc.latest {
		for _, r := range b.records {
			text := exchange.KeyText(r.key)
			if slices.ContainsFunc(lost, func(o *record) bool { return o.place() == r.place() }) {
				own = append(own, text)
			} else {
				others = append(others, text)
			}
		}
	}
	if len(own) == 0 {
		return cause{}
	}
	for _, other := range slices.Concat(own[1:], others) {
		if how := values.AlikeKeys(own[0], other); how != "" {
			return cause{text: fmt.Sprintf(takenForOneRecord, how), fix: "compare identifiers exactly, or fail the record."}
		}
	}
	mark := values.SpecialIn(own[0], others)
	if mark == 0 || len(others) == 0 || lost[0].id.Type != rpc.TypeString {
		return cause{}
	}
	for _, try := range []struct {
		text string
		want fate
	}{{string(mark) + "a", isGone}, {"xa", isStored}} {
		other := sc.apart()
		made, err := other.make(1, operation, lost[0].id, &sending{})
		if err != nil {
			return cause{}
		}
		r := made[0].with(lost[0].id.APIName, values.Quote(exchange.KeyText(made[0].key)+try.text))
		b, err := other.writeOne(operation, []*record{r}, plan{})
		if err != nil || !b.succeeded(r) || other.fateOf(r) != try.want {
			return cause{}
		}
	}
	return cause{
		text: fmt.Sprintf("records with a %q in their identifier are lost, and others are stored: the identifier is put into a URL, a path, a pattern or a statement, where this character has a meaning.", mark),
		fix:  "escape the identifier for what it is put into, or give it as a parameter.", observed: true,
	}
}
