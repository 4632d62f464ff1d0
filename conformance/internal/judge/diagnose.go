package judge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// A stated cause is trusted, so it is stated only where observations leave one. When a check has
// failed twice, the second time alone, the judge sends probes that distinguish the candidates.

// diagnose replaces the possible cause of missing records, old values and failed batches by the observed one.
func (sc *Scenario) diagnose() {
	if sc.Object == nil || len(sc.Batches) == 0 {
		return
	}
	sees := sc.Readback != nil
	for _, q := range []struct {
		about func(symptom string) bool
		find  func() write.Cause
		need  bool // its requirements are met
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
			sc.Explain(q.about, found.Text, found.Fix, found.Observed)
			sc.Belongs(q.about, found.Rule)
		}
	}
}

// whyMissing distinguishes late writes, lost batches, remembered plans and objects.
func (sc *Scenario) whyMissing() write.Cause {
	if len(sc.Unmet.Lost) == 0 {
		return sc.whyOutpaced()
	}
	lost := write.RecordsOf(sc.Unmet.Lost)
	operation := sc.operationOf(lost[0])
	if !slices.ContainsFunc(lost, func(r *write.Record) bool { return !r.Odd.Key }) {
		if c := sc.whyKeysLost(lost); c.Text != "" {
			return c
		}
		return keysMerged
	}
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
		return write.Cause{} // what has created them can be the reason as well
	}
	if c := sc.heldBack(operation, lost, thereAll(lost)); c.Text != "" {
		return c
	}
	switch stored, ok := sc.together(operation, 1, nil); {
	case !ok:
		return either("the values of these records", "what stands beside them in their batch", "one of them alone in a batch (one record of the request below)")
	case stored == 1:
		return sc.whyTheseLost(operation, lost)
	}
	return sc.whyNoneStored(operation)
}

// whyTheseLost is the cause where another record, alone in a separate sync, is stored.
func (sc *Scenario) whyTheseLost(operation string, lost []*write.Record) write.Cause {
	if c := sc.whyKeysLost(lost); c.Text != "" {
		return c
	}
	switch there, ok := sc.sameValues(operation, lost[0]); {
	case !ok:
		return either("the values of these records", "what was sent before or together with them", "one of them with a new identifier (here it was not accepted)")
	case !there:
		return seenCause("another record is stored, and one with these values under a new identifier is not, both alone in a batch: the values that are sent, or the fields that are mapped, decide.")
	}
	last, first := sc.BatchAt(lost[0]), sc.batchWith(lost[0])
	switch {
	case last != nil && slices.ContainsFunc(last.Records, last.Failed):
		return seenCause("one refused record takes back the others: alone a record is stored, beside a refused one it is not, though it is acknowledged.")
	case last != nil && len(last.Records) > 1:
		return sc.whyLostTogether(operation, last)
	case first != nil && len(first.Records) > 1:
		return inBulk(first)
	}
	return seenCause("a record that is sent in a sync of its own is stored: what an earlier batch of the same sync has left (its plan, its operation or its content) decides instead of the call.")
}

// whyNoneStored is the cause where no record that is sent alone is stored.
func (sc *Scenario) whyNoneStored(operation string) write.Cause {
	if stored, _ := sc.together(operation, 1, sc.Object); stored == 1 {
		return seenCause("a record is stored only right after list_fields of its object: the object of the latest planning call is used, not the one of the plan.")
	}
	if n := min(64, sc.LargestBatch()); n > 1 {
		if there, ok := sc.together(operation, n, nil); ok && there > n/2 {
			return seenCause("a record that is sent alone is acknowledged and not written; of %d that are sent together %d are there: what does not fill a chunk is dropped.", n, there)
		}
	}
	if _, stored := sc.j.storedBy.Load(sc.Object.APIName + " " + operation); stored {
		return either("the "+operation+" of some records is dropped (others of this run are there)", "what was written before them decides", "the request below, sent again with other identifiers,")
	}
	return seenCause("%s is acknowledged and nothing is written: not alone, not later (%s), not after a planning call. The write is not made, not committed, or its error is swallowed.", operation, sc.Opts.LateWait)
}

// severalStores is the cause where only some looks show the written record.
var severalStores = write.Cause{
	Text: "some looks find the records and later ones do not: processes that take turns keep records of their own, or something takes the records away again.",
	Fix:  "keep records in one store that all processes share, not in their memory.", Observed: true, Rule: ofWrites,
}

// whyLostTogether decides whether the batch, an earlier one or a concurrent one loses the records.
func (sc *Scenario) whyLostTogether(operation string, b *write.Batch) write.Cause {
	lost, n := sc.Unmet.Lost[0].Record, len(b.Records)
	there, ok := sc.together(operation, n, nil)
	sentBefore := len(sc.batchesOf(lost)) > 1
	switch {
	case !ok:
		return either("the values of these records", fmt.Sprintf("their number (%d in a batch)", n), "the request below again, with other identifiers,")
	case there < n:
		return seenCause("records of a batch are lost: %s; a record that was sent alone is stored.", sc.whichLost(b))
	case sentBefore && sc.staysDeleted(operation, lost):
		return seenCause("new records are stored, and these stay deleted, also with other values in a sync of their own: a mark of the delete (a flag, a list of deleted keys) is never taken away.")
	case sentBefore:
		return seenCause("new records are stored, and these, which were sent before, are not: what is remembered of an earlier batch decides instead of the call.")
	case overlapping(sc.Latest):
		return seenCause("a batch of %s is stored when no other runs beside it: batches at the same time take back each other's writes.", quantity.Count(n, "record"))
	}
	return write.Cause{} // neither their values nor their number: the rest of the check decides
}

// whyUnwitnessed looks again later, without a read-back: the record may be on its way.
func (sc *Scenario) whyUnwitnessed() write.Cause {
	if len(sc.Unmet.Unwitnessed) == 0 {
		return write.Cause{}
	}
	wait, inVain := sc.LateWaitOf(sc.operationOf(sc.Unmet.Unwitnessed[0]))
	if line.Elapse(sc.Ctx, wait) != nil {
		return write.Cause{}
	}
	again := lists.Of(sc.Unmet.Unwitnessed, func(r *write.Record) *write.Record { return sc.Changed(r, write.WitnessVersion+1) })
	b := sc.tries(rpc.OperationUpdate, again[:min(len(again), sc.LargestBatch())]...)
	if b == nil || !b.Answered() {
		return write.Cause{}
	}
	found := func(r *write.Record) bool { return b.Succeeded(r) && !sc.Skipped(b, r) }
	if i := slices.IndexFunc(b.Records, found); i >= 0 {
		r := b.Records[i]
		for range 2 {
			if b = sc.tries(rpc.OperationUpdate, r); b == nil || !found(r) {
				return severalStores
			}
		}
		return notAwaited(wait, "an update found the record")
	}
	inVain()
	return either("the write is not made", "not committed, or its error swallowed", "a look into the destination while the request below is sent again")
}

// staysDeleted reports whether a deleted record that was sent again is not there with other values either.
func (sc *Scenario) staysDeleted(operation string, r *write.Record) bool {
	deleted := func(b *write.Batch) bool { return b.Operation == rpc.OperationDelete && b.Succeeded(r) }
	if !slices.ContainsFunc(sc.batchesOf(r), deleted) {
		return false
	}
	got, ok := sc.apart().storedAs(operation, sc.Changed(r, 7))
	return ok && got.Count == 0
}

// whyFailed finds out whether a planning call before a batch decides about its error, and else its size.
func (sc *Scenario) whyFailed() write.Cause {
	i := slices.IndexFunc(sc.Latest, func(b *write.Batch) bool { return !b.Answered() })
	if i < 0 || sc.Explained() {
		return write.Cause{} // all were answered, or the endpoint reports it
	}
	b := sc.Latest[i]
	other := write.First(sc.Catalog.Objects, func(o *write.Object) bool { return o.APIName != sc.Object.APIName })
	if !sc.hasResults(nil) || other != nil && !sc.hasResults(other) {
		for _, o := range []*write.Object{sc.Object, other, sc.Object} { // and not by chance
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
		fewer := sc.tries(b.Operation, b.Records[:n]...)
		switch {
		case fewer == nil:
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

// whichLost describes the places of the lost records in their batch.
func (sc *Scenario) whichLost(b *write.Batch) string {
	lost := write.RecordsOf(sc.Unmet.Lost)
	var places []string
	for i, r := range b.Records {
		if write.Holds(lost, r) {
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
