package destination

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/wire"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// A cause that is stated is trusted, so it is stated only where observations leave
// one. When a check has failed twice, the second time alone, the judge sends what
// tells the candidates apart: it looks again later, sends one record alone, sends it
// in another sync, after a planning call, and looks into the other objects.

// diagnose replaces the possible cause of the findings about records that are not
// there, that have their old values, or whose batch is an error, by the observed one.
func (sc *scenario) diagnose() {
	if sc.object == nil || len(sc.batches) == 0 {
		return
	}
	sees := sc.readback != nil
	for _, q := range []struct {
		about func(symptom string) bool
		find  func() cause
		need  bool // what it needs is there
	}{
		{func(s string) bool { return s == symptomMissing }, sc.whyMissing, sees},
		{func(s string) bool { return s == symptomOldValue }, sc.whyOld, sees},
		{func(s string) bool { return s == symptomLeft }, sc.whyLeft, sees},
		{func(s string) bool { return s == symptomMissing }, sc.whyUnwitnessed, !sees},
		{func(s string) bool {
			return strings.HasPrefix(s, rpc.MethodSyncBatch+": ") && (strings.Contains(s, " error ") || strings.HasSuffix(s, " without JSON"))
		}, sc.whyFailed, true},
	} {
		if !q.need || !slices.ContainsFunc(sc.Symptoms(), q.about) {
			continue
		}
		if found := q.find(); found.text != "" {
			sc.ExplainAs(q.about, found.text, found.fix, found.observed)
			sc.Belongs(q.about, found.rule)
		}
	}
}

// cause is what a diagnosis says; the zero value: nothing beyond what the check says.
type cause struct {
	text     string
	fix      string // "": that of the check
	observed bool
	rule     string // the check that it is about, where that is another one
}

// seenCause is one that the calls of the run have left alone.
func seenCause(format string, args ...any) cause {
	return cause{text: fmt.Sprintf(format, args...), observed: true}
}

// either are candidates that the calls of the run do not tell apart, with the call
// that does.
func either(one, other, call string) cause {
	return cause{text: wire.EitherCause(one, other, call)}
}

// whyMissing distinguishes late writes, lost batches, remembered plans and objects.
func (sc *scenario) whyMissing() cause {
	if len(sc.unmet.lost) == 0 {
		return sc.whyOutpaced()
	}
	lost := recordsOf(sc.unmet.lost)
	if !slices.ContainsFunc(lost, func(r *record) bool { return !r.odd.key }) {
		if c := sc.whyKeysLost(sc.operationOf(lost[0]), lost); c.text != "" {
			return c
		}
		return keysMerged
	}
	operation := sc.operationOf(lost[0])
	if after, all := sc.appears(operation, lost); all {
		return sc.arrived(after, lost)
	}
	if operation == rpc.OperationDelete {
		return cause{}
	}
	if other := sc.whereElse(lost[0]); other != "" {
		return seenCause("the records are in object %q: the object of another call is used, not the one of the plan.", other)
	}
	if operation == rpc.OperationUpdate {
		return sc.whyGone()
	}
	if c := sc.heldBack(operation, lost); c.text != "" {
		return c
	}
	alone := sc.lone(operation, false)
	if alone == isStored {
		if c := sc.whyKeysLost(operation, lost); c.text != "" {
			return c
		}
		switch sc.sameValues(operation, lost[0]) {
		case isGone:
			return seenCause("another record is stored, and one with these values under a new identifier is not, both alone in a batch: the values that are sent, or the fields that are mapped, decide.")
		case unknown:
			return either("the values of these records", "what was sent before or together with them", "one of them with a new identifier (here it was not accepted)")
		}
	}
	switch {
	case alone == isStored && sc.refusedBeside(lost[0]):
		return seenCause("one refused record takes back the others: alone a record is stored, beside a refused one it is not, though it is acknowledged.")
	case alone == isStored && sc.severalSent(lost[0]):
		return sc.whyLostTogether(operation)
	case alone == isStored && sc.batchWith(lost[0]) != nil && len(sc.batchWith(lost[0]).records) > 1:
		return either("a batch of "+quantity.Count(len(sc.batchWith(lost[0]).records), "record")+" is not written as one of a single record is (a transaction that is not committed, a bulk statement)",
			"what an earlier batch of the same sync has left (its plan, its operation or its content)", "the whole batch in a sync of its own")
	case alone == isStored:
		return seenCause("a record that is sent in a sync of its own is stored: what an earlier batch of the same sync has left (its plan, its operation or its content) decides instead of the call.")
	case alone == isGone && sc.lone(operation, true) == isStored:
		return seenCause("a record is stored only right after list_fields of its object: the object of the latest planning call is used, not the one of the plan.")
	case alone == isGone:
		const many = 64
		if n := min(many, sc.largestBatch()); n > 1 {
			if there, ok := sc.together(operation, n); ok && there > n/2 {
				return seenCause("a record that is sent alone is acknowledged and not written; of %d that are sent together %d are there: what does not fill a chunk is dropped.", n, there)
			}
		}
		if _, stored := sc.storedBy.Load(sc.object.APIName + " " + operation); stored {
			return either("the "+operation+" of some records is dropped (others of this run are there)", "what was written before them decides", "the request below, sent again with other identifiers,")
		}
		return seenCause("%s is acknowledged and nothing is written: not alone, not later (%s), not after a planning call. The write is not made, not committed, or its error is swallowed.", operation, sc.opts.LateWait)
	}
	return either("the values of these records", "what stands beside them in their batch", "one of them alone in a batch (one record of the request below)")
}

func notAwaited(after time.Duration, what string) cause {
	return seenCause("the write is not awaited: %s after the reply %s.", exchange.Round(after), what)
}

// arrived is the cause where records are there that were not: they came late, or each of
// several processes shows its own.
func (sc *scenario) arrived(after time.Duration, records []*record) cause {
	for range 4 {
		if seen, err := sc.observe(records); err != nil {
			return cause{}
		} else if len(seen) < len(records) {
			return severalStores
		}
	}
	return notAwaited(after, "the records were there")
}

// severalStores is the cause where what was written is there in some looks only.
var severalStores = cause{
	text: "some looks find the records and later ones do not: processes that take turns keep records of their own, or something takes the records away again.",
	fix:  "keep records in one store that all processes share, not in their memory.", observed: true, rule: "DUR-001",
}

// overlapping reports whether a batch was sent while another one had no reply.
func overlapping(batches []*batch) bool {
	for i, b := range batches {
		for _, o := range batches[i+1:] {
			if b.reply.Started.Before(o.reply.Started.Add(o.reply.Total)) && o.reply.Started.Before(b.reply.Started.Add(b.reply.Total)) {
				return true
			}
		}
	}
	return false
}

// whyLostTogether distinguishes batches that lose records from records that are lost
// for what was sent before them or beside them.
func (sc *scenario) whyLostTogether(operation string) cause {
	lost := sc.unmet.lost[0].record
	n := len(sc.batchAt(lost).records)
	there, ok := sc.together(operation, n)
	switch {
	case ok && there < n:
		return seenCause("records of a batch are lost: %s; a record that was sent alone is stored.", sc.whichLost())
	case ok && sc.sentBefore(lost) && sc.staysDeleted(operation, lost):
		return seenCause("new records are stored, and these stay deleted, also with other values in a sync of their own: a mark of the delete (a flag, a list of deleted keys) is never taken away.")
	case ok && sc.sentBefore(lost):
		return seenCause("new records are stored, and these, which were sent before, are not: what is remembered of an earlier batch decides instead of the call.")
	case ok && overlapping(sc.latest):
		return seenCause("a batch of %s is stored when no other runs beside it: batches at the same time take back each other's writes.", quantity.Count(n, "record"))
	case ok:
		return cause{} // it is neither their values nor their number: what the check does besides decides
	}
	return either("the values of these records", fmt.Sprintf("their number (%d in a batch)", n), "the request below again, with other identifiers,")
}

// whyGone looks whether an update takes away the record that it is for.
func (sc *scenario) whyGone() cause {
	creates := rpc.OperationInsert
	if !sc.object.accepts(creates) {
		creates = rpc.OperationUpsert
	}
	if !sc.object.accepts(creates) {
		return cause{}
	}
	other, b := sc.tries(creates, 1, false)
	if b == nil || !b.succeeded(b.records[0]) {
		return cause{}
	}
	created, err := other.observe(b.records)
	if err != nil || len(created) == 0 {
		return cause{} // the finding about creating says it
	}
	again := other.changed(b.records[0], 7)
	update, err := other.writeOne(rpc.OperationUpdate, forOperation(rpc.OperationUpdate, []*record{again}), plan{})
	if err != nil || !update.succeeded(again) {
		return cause{}
	}
	switch left, err := other.observe([]*record{again}); {
	case err != nil:
		return cause{}
	case len(left) == 0:
		return seenCause("a record that was there is gone after an acknowledged update of it.")
	}
	return either("the batch that created them", "the update", "a read-back between the two")
}

// whyUnwitnessed looks again later, without a read-back: a record that an update did
// not find may be on its way.
func (sc *scenario) whyUnwitnessed() cause {
	if len(sc.unmet.unwitnessed) == 0 {
		return cause{}
	}
	wait, inVain := sc.lateWaitOf(sc.operationOf(sc.unmet.unwitnessed[0]))
	if elapse(sc.ctx, wait) != nil {
		return cause{}
	}
	again := make([]*record, len(sc.unmet.unwitnessed))
	for i, r := range sc.unmet.unwitnessed {
		again[i] = sc.changed(r, witnessVersion+1).updateable()
	}
	b, err := sc.writeOne(rpc.OperationUpdate, again[:min(len(again), sc.largestBatch())], plan{})
	if err != nil || !b.answered() {
		return cause{}
	}
	found := func(r *record) bool { return b.succeeded(r) && !sc.skipped(b, r) }
	if slices.ContainsFunc(b.records, found) {
		for range 2 {
			r := b.records[slices.IndexFunc(b.records, found)]
			if b, err = sc.writeOne(rpc.OperationUpdate, []*record{r}, plan{}); err != nil || !found(r) {
				return severalStores
			}
		}
		return notAwaited(wait, "an update found the record")
	}
	inVain()
	return either("the write is not made", "not committed, or its error swallowed", "a look into the destination while the request below is sent again")
}

// staysDeleted reports whether a record that was deleted and sent again is not there with
// other values either, in a sync of its own.
func (sc *scenario) staysDeleted(operation string, r *record) bool {
	if !slices.ContainsFunc(sc.batches, func(b *batch) bool {
		return b.operation == rpc.OperationDelete && slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() && b.succeeded(o) })
	}) {
		return false
	}
	apart := sc.apart()
	other := forOperation(operation, []*record{sc.changed(r, 7)})
	b, err := apart.writeOne(operation, other, plan{})
	if err != nil || !b.succeeded(other[0]) {
		return false
	}
	seen, err := apart.observe(other)
	return err == nil && len(seen) == 0
}

// sentBefore reports whether a record was in more than one batch.
func (sc *scenario) sentBefore(r *record) bool {
	n := 0
	for _, b := range sc.batches {
		if slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() }) {
			n++
		}
	}
	return n > 1
}

// whyFailed finds out whether a batch that is answered by an error is taken right after a
// planning call, and else whether its size decides.
func (sc *scenario) whyFailed() cause {
	if slices.ContainsFunc(sc.All(), func(f engine.Finding) bool { return f.Quote != nil && f.Quote.Cause }) {
		return cause{} // the endpoint says it
	}
	i := slices.IndexFunc(sc.latest, func(b *batch) bool { return !b.answered() })
	if i < 0 {
		return cause{}
	}
	b := sc.latest[i]
	if !sc.hasResults(nil) || sc.otherObject() != nil && !sc.hasResults(sc.otherObject()) {
		for _, o := range []*object{sc.object, sc.otherObject(), sc.object} { // and not by chance
			if sc.hasResults(o) != (o == sc.object) {
				return cause{}
			}
		}
		c := seenCause("the same batch is taken right after list_fields of its object, and not after another call: the object of the latest planning call is used, not the one of the plan.")
		c.rule = "STA-002"
		return c
	}
	asLarge := func(o *batch) bool {
		return o.answered() && len(o.records) >= len(b.records) && o.operation == b.operation
	}
	if len(b.records) == 1 || slices.ContainsFunc(sc.batches, asLarge) {
		return cause{}
	}
	return sc.whyFailedTogether(b)
}

// whyFailedTogether sends fewer of the records of a batch that was answered by an error.
func (sc *scenario) whyFailedTogether(b *batch) cause {
	taken, refused := 0, len(b.records)
	const halvings, most = 3, 500 // records that are sent again come out of the budget of the run
	for n, left := 1, halvings; n < refused && n > taken && left >= 0 && (n == 1 || len(b.records) <= most); n, left = (taken+refused)/2, left-1 {
		fewer, err := sc.writeOne(b.operation, b.records[:n], plan{})
		switch {
		case err != nil:
			return cause{}
		case fewer.answered():
			taken = n
		case n == 1:
			return cause{
				text: "it is not the size of the batch: one of its records alone, with the same fields, is answered in the same way, and a record with other fields is taken.",
				fix:  "look at what the endpoint does with a record that maps these fields and no others; its log has the error.",
			}
		default:
			refused = n
		}
	}
	return cause{text: fmt.Sprintf("a limit for the size of a batch: of these records, %d in a batch are taken and %d are not (a body of %s).", taken, refused, quantity.Count(len(b.reply.Request)*refused/len(b.records), "byte"))}
}

// refusedBeside reports whether the batch of a record had a refused one in it.
func (sc *scenario) refusedBeside(r *record) bool {
	b := sc.batchAt(r)
	return b != nil && slices.ContainsFunc(b.records, b.failed)
}

func (sc *scenario) severalSent(r *record) bool {
	b := sc.batchAt(r)
	return b != nil && len(b.records) > 1
}

// batchAt is the last batch that named the place of a record.
func (sc *scenario) batchAt(r *record) *batch {
	for _, b := range slices.Backward(sc.batches) {
		if slices.ContainsFunc(b.records, func(o *record) bool { return o.place() == r.place() }) {
			return b
		}
	}
	return nil
}

// whichLost describes the places of the lost records in their batch.
func (sc *scenario) whichLost() string {
	b := sc.batchAt(sc.unmet.lost[0].record)
	var places []string
	for i, r := range b.records {
		if slices.ContainsFunc(sc.unmet.lost, func(e *expected) bool { return e.record.place() == r.place() }) {
			places = append(places, fmt.Sprint(i+1))
		}
	}
	switch {
	case len(places) == len(b.records):
		return fmt.Sprintf("all %d of a batch", len(places))
	case len(places) > 6:
		return fmt.Sprintf("%d of the %d of a batch, from the %s. on", len(places), len(b.records), places[0])
	}
	return fmt.Sprintf("number %s of the %d of a batch", strings.Join(places, ", "), len(b.records))
}
