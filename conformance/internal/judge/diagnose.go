package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
)

// A cause that is stated is trusted, so it is stated only where observations leave
// one. When a check has failed twice, the second time alone, the judge sends what
// tells the candidates apart: it looks again later, sends one record alone, sends it
// in another sync, after a planning call, and looks into the other objects.

// diagnose replaces the possible cause of the findings about records that are not
// there, that have their old values, or whose batch is an error, by the observed one.
func (sc *Scenario) diagnose() {
	if sc.Object == nil || len(sc.Batches) == 0 {
		return
	}
	sees := sc.Readback != nil
	for _, q := range []struct {
		about func(symptom string) bool
		find  func() write.Cause
		need  bool // what it needs is there
	}{
		{func(s string) bool { return s == write.SymptomMissing }, sc.whyMissing, sees},
		{func(s string) bool { return s == symptomOldValue }, sc.whyOld, sees},
		{func(s string) bool { return s == symptomLeft }, sc.whyLeft, sees},
		{func(s string) bool { return s == write.SymptomMissing }, sc.whyUnwitnessed, !sees},
		{func(s string) bool {
			return strings.HasPrefix(s, rpc.MethodSyncBatch+": ") && (strings.Contains(s, " error ") || strings.HasSuffix(s, " without JSON"))
		}, sc.whyFailed, true},
	} {
		if !q.need || !slices.ContainsFunc(sc.Symptoms(), q.about) {
			continue
		}
		if found := q.find(); found.Text != "" {
			sc.ExplainAs(q.about, found.Text, found.Fix, found.Observed)
			sc.Belongs(q.about, found.Rule)
		}
	}
}

// seenCause is one that the calls of the run have left alone.
func seenCause(format string, args ...any) write.Cause {
	return write.Cause{Text: fmt.Sprintf(format, args...), Observed: true}
}

// either are candidates that the calls of the run do not tell apart, with the call
// that does.
func either(one, other, call string) write.Cause {
	return write.Cause{Text: wire.EitherCause(one, other, call)}
}

// whyMissing distinguishes late writes, lost batches, remembered plans and objects.
func (sc *Scenario) whyMissing() write.Cause {
	if len(sc.Unmet.Lost) == 0 {
		return sc.whyOutpaced()
	}
	lost := write.RecordsOf(sc.Unmet.Lost)
	if !slices.ContainsFunc(lost, func(r *write.Record) bool { return !r.Odd.Key }) {
		if c := sc.whyKeysLost(sc.operationOf(lost[0]), lost); c.Text != "" {
			return c
		}
		return keysMerged
	}
	operation := sc.operationOf(lost[0])
	if after, all := sc.Appears(operation, lost); all {
		return sc.arrived(after, lost)
	}
	if operation == rpc.OperationDelete {
		return write.Cause{}
	}
	if other := sc.whereElse(lost[0]); other != "" {
		return seenCause("the records are in object %q: the object of another call is used, not the one of the plan.", other)
	}
	if operation == rpc.OperationUpdate {
		return sc.whyGone()
	}
	if c := sc.heldBack(operation, lost, thereAll(lost)); c.Text != "" {
		return c
	}
	alone := sc.lone(operation, false)
	if alone == isStored {
		if c := sc.whyKeysLost(operation, lost); c.Text != "" {
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
	case alone == isStored && sc.batchWith(lost[0]) != nil && len(sc.batchWith(lost[0]).Records) > 1:
		return either("a batch of "+quantity.Count(len(sc.batchWith(lost[0]).Records), "record")+" is not written as one of a single record is (a transaction that is not committed, a bulk statement)",
			"what an earlier batch of the same sync has left (its plan, its operation or its content)", "the whole batch in a sync of its own")
	case alone == isStored:
		return seenCause("a record that is sent in a sync of its own is stored: what an earlier batch of the same sync has left (its plan, its operation or its content) decides instead of the call.")
	case alone == isGone && sc.lone(operation, true) == isStored:
		return seenCause("a record is stored only right after list_fields of its object: the object of the latest planning call is used, not the one of the plan.")
	case alone == isGone:
		const many = 64
		if n := min(many, sc.LargestBatch()); n > 1 {
			if there, ok := sc.together(operation, n); ok && there > n/2 {
				return seenCause("a record that is sent alone is acknowledged and not written; of %d that are sent together %d are there: what does not fill a chunk is dropped.", n, there)
			}
		}
		if _, stored := sc.j.storedBy.Load(sc.Object.APIName + " " + operation); stored {
			return either("the "+operation+" of some records is dropped (others of this run are there)", "what was written before them decides", "the request below, sent again with other identifiers,")
		}
		return seenCause("%s is acknowledged and nothing is written: not alone, not later (%s), not after a planning call. The write is not made, not committed, or its error is swallowed.", operation, sc.Opts.LateWait)
	}
	return either("the values of these records", "what stands beside them in their batch", "one of them alone in a batch (one record of the request below)")
}

func notAwaited(after time.Duration, what string) write.Cause {
	return seenCause("the write is not awaited: %s after the reply %s.", exchange.Round(after), what)
}

// arrived is the cause where records are there that were not: they came late, or each of
// several processes shows its own.
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

// severalStores is the cause where what was written is there in some looks only.
var severalStores = write.Cause{
	Text: "some looks find the records and later ones do not: processes that take turns keep records of their own, or something takes the records away again.",
	Fix:  "keep records in one store that all processes share, not in their memory.", Observed: true, Rule: ofWrites,
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

// whyLostTogether distinguishes batches that lose records from records that are lost
// for what was sent before them or beside them.
func (sc *Scenario) whyLostTogether(operation string) write.Cause {
	lost := sc.Unmet.Lost[0].Record
	n := len(sc.BatchAt(lost).Records)
	there, ok := sc.together(operation, n)
	switch {
	case ok && there < n:
		return seenCause("records of a batch are lost: %s; a record that was sent alone is stored.", sc.whichLost())
	case ok && sc.sentBefore(lost) && sc.staysDeleted(operation, lost):
		return seenCause("new records are stored, and these stay deleted, also with other values in a sync of their own: a mark of the delete (a flag, a list of deleted keys) is never taken away.")
	case ok && sc.sentBefore(lost):
		return seenCause("new records are stored, and these, which were sent before, are not: what is remembered of an earlier batch decides instead of the call.")
	case ok && overlapping(sc.Latest):
		return seenCause("a batch of %s is stored when no other runs beside it: batches at the same time take back each other's writes.", quantity.Count(n, "record"))
	case ok:
		return write.Cause{} // it is neither their values nor their number: what the check does besides decides
	}
	return either("the values of these records", fmt.Sprintf("their number (%d in a batch)", n), "the request below again, with other identifiers,")
}

// whyGone looks whether an update takes away the record that it is for.
func (sc *Scenario) whyGone() write.Cause {
	creates := rpc.OperationInsert
	if !sc.Object.Accepts(creates) {
		creates = rpc.OperationUpsert
	}
	if !sc.Object.Accepts(creates) {
		return write.Cause{}
	}
	other, b := sc.tries(creates, 1, false)
	if b == nil || !b.Succeeded(b.Records[0]) {
		return write.Cause{}
	}
	created, err := other.Observe(b.Records)
	if err != nil || len(created) == 0 {
		return write.Cause{} // the finding about creating says it
	}
	again := other.Changed(b.Records[0], 7)
	update, err := other.WriteOne(rpc.OperationUpdate, write.ForOperation(rpc.OperationUpdate, []*write.Record{again}), write.Plan{})
	if err != nil || !update.Succeeded(again) {
		return write.Cause{}
	}
	switch left, err := other.Observe([]*write.Record{again}); {
	case err != nil:
		return write.Cause{}
	case len(left) == 0:
		return seenCause("a record that was there is gone after an acknowledged update of it.")
	}
	return either("the batch that created them", "the update", "a read-back between the two")
}

// whyUnwitnessed looks again later, without a read-back: a record that an update did
// not find may be on its way.
func (sc *Scenario) whyUnwitnessed() write.Cause {
	if len(sc.Unmet.Unwitnessed) == 0 {
		return write.Cause{}
	}
	wait, inVain := sc.LateWaitOf(sc.operationOf(sc.Unmet.Unwitnessed[0]))
	if line.Elapse(sc.Ctx, wait) != nil {
		return write.Cause{}
	}
	again := make([]*write.Record, len(sc.Unmet.Unwitnessed))
	for i, r := range sc.Unmet.Unwitnessed {
		again[i] = sc.Changed(r, write.WitnessVersion+1).Updateable()
	}
	b, err := sc.WriteOne(rpc.OperationUpdate, again[:min(len(again), sc.LargestBatch())], write.Plan{})
	if err != nil || !b.Answered() {
		return write.Cause{}
	}
	found := func(r *write.Record) bool { return b.Succeeded(r) && !sc.Skipped(b, r) }
	if slices.ContainsFunc(b.Records, found) {
		for range 2 {
			r := b.Records[slices.IndexFunc(b.Records, found)]
			if b, err = sc.WriteOne(rpc.OperationUpdate, []*write.Record{r}, write.Plan{}); err != nil || !found(r) {
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
func (sc *Scenario) staysDeleted(operation string, r *write.Record) bool {
	if !slices.ContainsFunc(sc.Batches, func(b *write.Batch) bool {
		return b.Operation == rpc.OperationDelete && slices.ContainsFunc(b.Records, func(o *write.Record) bool { return o.Place() == r.Place() && b.Succeeded(o) })
	}) {
		return false
	}
	apart := sc.apart()
	other := write.ForOperation(operation, []*write.Record{sc.Changed(r, 7)})
	b, err := apart.WriteOne(operation, other, write.Plan{})
	if err != nil || !b.Succeeded(other[0]) {
		return false
	}
	seen, err := apart.Observe(other)
	return err == nil && len(seen) == 0
}

// sentBefore reports whether a record was in more than one batch.
func (sc *Scenario) sentBefore(r *write.Record) bool {
	n := 0
	for _, b := range sc.Batches {
		if slices.ContainsFunc(b.Records, func(o *write.Record) bool { return o.Place() == r.Place() }) {
			n++
		}
	}
	return n > 1
}

// whyFailed finds out whether a batch that is answered by an error is taken right after a
// planning call, and else whether its size decides.
func (sc *Scenario) whyFailed() write.Cause {
	if slices.ContainsFunc(sc.All(), func(f engine.Finding) bool { return f.Quote != nil && f.Quote.Cause }) {
		return write.Cause{} // the endpoint says it
	}
	i := slices.IndexFunc(sc.Latest, func(b *write.Batch) bool { return !b.Answered() })
	if i < 0 {
		return write.Cause{}
	}
	b := sc.Latest[i]
	if !sc.hasResults(nil) || sc.otherObject() != nil && !sc.hasResults(sc.otherObject()) {
		for _, o := range []*write.Object{sc.Object, sc.otherObject(), sc.Object} { // and not by chance
			if sc.hasResults(o) != (o == sc.Object) {
				return write.Cause{}
			}
		}
		c := seenCause("the same batch is taken right after list_fields of its object, and not after another call: the object of the latest planning call is used, not the one of the plan.")
		c.Rule = "STA-002"
		return c
	}
	asLarge := func(o *write.Batch) bool {
		return o.Answered() && len(o.Records) >= len(b.Records) && o.Operation == b.Operation
	}
	if len(b.Records) == 1 || slices.ContainsFunc(sc.Batches, asLarge) {
		return write.Cause{}
	}
	return sc.whyFailedTogether(b)
}

// whyFailedTogether sends fewer of the records of a batch that was answered by an error.
func (sc *Scenario) whyFailedTogether(b *write.Batch) write.Cause {
	taken, refused := 0, len(b.Records)
	const halvings, most = 3, 500 // records that are sent again come out of the budget of the run
	for n, left := 1, halvings; n < refused && n > taken && left >= 0 && (n == 1 || len(b.Records) <= most); n, left = (taken+refused)/2, left-1 {
		fewer, err := sc.WriteOne(b.Operation, b.Records[:n], write.Plan{})
		switch {
		case err != nil:
			return write.Cause{}
		case fewer.Answered():
			taken = n
		case n == 1:
			return write.Cause{
				Text: "it is not the size of the batch: one of its records alone, with the same fields, is answered in the same way, and a record with other fields is taken.",
				Fix:  "look at what the endpoint does with a record that maps these fields and no others; its log has the error.",
			}
		default:
			refused = n
		}
	}
	return write.Cause{Text: fmt.Sprintf("a limit for the size of a batch: of these records, %d in a batch are taken and %d are not (a body of %s).", taken, refused, quantity.Count(len(b.Reply.Request)*refused/len(b.Records), "byte"))}
}

// refusedBeside reports whether the batch of a record had a refused one in it.
func (sc *Scenario) refusedBeside(r *write.Record) bool {
	b := sc.BatchAt(r)
	return b != nil && slices.ContainsFunc(b.Records, b.Failed)
}

func (sc *Scenario) severalSent(r *write.Record) bool {
	b := sc.BatchAt(r)
	return b != nil && len(b.Records) > 1
}

// whichLost describes the places of the lost records in their batch.
func (sc *Scenario) whichLost() string {
	b := sc.BatchAt(sc.Unmet.Lost[0].Record)
	var places []string
	for i, r := range b.Records {
		if slices.ContainsFunc(sc.Unmet.Lost, func(e *write.Expected) bool { return e.Record.Place() == r.Place() }) {
			places = append(places, fmt.Sprint(i+1))
		}
	}
	switch {
	case len(places) == len(b.Records):
		return fmt.Sprintf("all %d of a batch", len(places))
	case len(places) > 6:
		return fmt.Sprintf("%d of the %d of a batch, from the %s. on", len(places), len(b.Records), places[0])
	}
	return fmt.Sprintf("number %s of the %d of a batch", strings.Join(places, ", "), len(b.Records))
}
