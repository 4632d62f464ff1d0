package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/foreign"
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
		return seenCause("take the object, as everything else, from the plan of the call.", "the records are in object %q: the object of another call is used, not the one of the plan.", other)
	}
	if operation == rpc.OperationUpdate {
		return write.Cause{} // what has created them can be the reason as well
	}
	if c := sc.heldBack(operation, lost, thereAll(lost)); c.Text != "" {
		return c
	}
	switch stored, ok := sc.together(operation, 1, nil); {
	case !ok:
		return either("the values of these records", "the other records of their batch", "one of them alone in a batch (one record of the request below)")
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
		return seenCause("store these values, or fail the record that has them.", "another record is stored, and one with these values under a new identifier is not, both alone in a batch: the values that are sent, or the fields that are mapped, decide%s.", inCommon(sc.ofSets(), lost))
	}
	last, first := sc.BatchAt(lost[0]), sc.batchWith(lost[0])
	switch {
	case last != nil && (len(last.Records) > 1 || overlapping(sc.Latest)):
		return sc.whyLostTogether(operation, last)
	case first != nil && len(first.Records) > 1:
		return inBulk(first)
	}
	return seenCause("keep nothing of a batch for the next one.", "a record that is sent in a separate sync is stored: what an earlier batch of the same sync has left (its plan, its operation or its content) decides instead of the call.")
}

// whyNoneStored is the cause where no record that is sent alone is stored.
func (sc *Scenario) whyNoneStored(operation string) write.Cause {
	if stored, _ := sc.together(operation, 1, sc.Object); stored == 1 {
		return seenCause("take the object, as everything else, from the plan of the call.", "a record is stored only right after list_fields of its object: the object of the latest planning call is used, not the one of the plan.")
	}
	if n := min(64, sc.LargestBatch()); n > 1 {
		if there, ok := sc.together(operation, n, nil); ok && there > n/2 {
			return seenCause("write what is left when the last chunk is not full.", "a record that is sent alone is acknowledged and not written; of %d that are sent together %d are there: what does not fill a chunk is dropped.", n, there)
		}
	}
	if _, stored := sc.j.storedBy.Load(sc.Object.APIName + " " + operation); stored {
		return either("the "+operation+" of some records is dropped (others of this run are there)", "what was written before them decides", "the request below, sent again with other identifiers,")
	}
	return seenCause("write and commit before the acknowledgement, and answer a failure where that fails.", "%s is acknowledged and nothing is written: not alone, not later (%s), not after a planning call. The write is not made, not committed, or its error is swallowed.", operation, sc.Opts.LateWait)
}

// severalStores is the cause where only some looks show the written record.
var severalStores = write.Cause{
	Text: "some looks find the records and later ones do not: processes that take turns keep separate records, or something takes the records away again.",
	Fix:  "keep records in one store that all processes share, not in their memory.", Observed: true, Rule: ofWrites,
}

// whyLostTogether decides whether the batch, an earlier one or a concurrent one loses the records.
func (sc *Scenario) whyLostTogether(operation string, b *write.Batch) write.Cause {
	lost, n := sc.Unmet.Lost[0].Record, len(b.Records)
	there, ok := sc.together(operation, n, nil)
	sentBefore := len(sc.batchesOf(lost)) > 1 && !overlapping(sc.batchesOf(lost))
	switch {
	case !ok:
		return either("the values of these records", fmt.Sprintf("their number (%d in a batch)", n), "the request below again, with other identifiers,")
	case there < n:
		return seenCause("write every record of a batch, also those of the last chunk, and answer a failure where a write fails.",
			"records of a batch are lost: %s; a record that was sent alone is stored.", sc.whichLost(b)).Of(map[bool]string{false: ofWrites}[sc.full])
	case !sentBefore && overlapping(sc.Latest) && slices.ContainsFunc(b.Records, b.Failed):
		return either("calls at the same time take back each other's writes", "one refused record takes back the others of its batch", "the request below, when no other call runs,")
	case !sentBefore && slices.ContainsFunc(b.Records, b.Failed):
		return seenCause("let a refused record take back its own write only: a savepoint or a transaction for each, which no later record shares.",
			"one refused record takes back the others (what they share is rolled back): as many new records are stored, and with a refused one in the batch they are not, though they are acknowledged.")
	case sentBefore && sc.staysDeleted(operation, lost):
		return seenCause("take the mark away when the record is written again.", "new records are stored, and these stay deleted, also with other values in a separate sync: a mark of the delete (a flag, a list of deleted keys) is never taken away.")
	case sentBefore:
		return seenCause("let each call write what it carries, whatever was sent before.", "new records are stored, and these, which were sent before, are not: the record that is there (removed, and not written again), or what is remembered of an earlier batch, decides instead of the call.")
	case overlapping(sc.Latest):
		return seenCause("let each batch write its own rows in its own transaction, and keep what calls share out of it.",
			"a batch of %s is stored when no other runs at the same time: batches at the same time take back each other's writes.", quantity.Count(n, "record")).Of(ofParallel)
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
	if overlapping(sc.Latest) {
		return either("calls at the same time overwrite each other's writes", "the write is not made, not committed, or its error swallowed", "the request below, sent when no other call runs,")
	}
	if b := sc.batchesOf(sc.Unmet.Unwitnessed[0])[0]; slices.ContainsFunc(b.Records, b.Failed) {
		return write.Cause{} // its check names what a refusal beside it can do
	}
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
	changes := sc.Object.Creating() != "" && (b.Operation == rpc.OperationUpdate || b.Operation == rpc.OperationDelete)
	absent := func(r *write.Record) bool { return !sc.Model.Get(r).Exists }
	if changes && len(b.Records) > 1 && slices.ContainsFunc(b.Records, absent) && !sc.refusedForItself(write.Purpose{Operation: b.Operation}) {
		return write.Cause{
			Text: "one refused record fails its whole batch with an error: " + b.Operation + " of a record that is there is answered by a result.",
			Fix:  `answer {"identifier": …, "success": false, "error_message": …} for a record that is refused, and write the others.`,
		}
	}
	other := write.First(sc.Catalog.Objects, func(o *write.Object) bool { return o.APIName != sc.Object.APIName })
	if !sc.hasResults(nil) || other != nil && !sc.hasResults(other) {
		for _, o := range []*write.Object{sc.Object, other, sc.Object} { // and not by chance
			if sc.hasResults(o) != (o == sc.Object) {
				return write.Cause{}
			}
		}
		return seenCause("take the object, as everything else, from the plan of the call.",
			"the same batch is taken right after list_fields of its object, and not after another call: the object of the latest planning call is used, not the one of the plan.").Of("STA-002")
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

// whichLost describes the lost records of a batch: their places, and what else they have in common.
func (sc *Scenario) whichLost(b *write.Batch) string {
	lost := write.RecordsOf(sc.Unmet.Lost)
	var at []int
	for i, r := range b.Records {
		if write.Holds(lost, r) {
			at = append(at, i+1)
		}
	}
	n, all := len(at), len(b.Records)
	first, last, step := at[0], at[n-1], at[min(1, n-1)]-at[0]
	regular := n > 2 && last+step > all
	for i := range at {
		regular = regular && at[i] == first+step*i
	}
	which := fmt.Sprintf("%d (number %s)", n, foreign.Clip(strings.Trim(fmt.Sprint(at), "[]"), 30))
	switch {
	case n == all:
		which = "all"
	case n > 1 && last == n:
		which = fmt.Sprint("the first ", n)
	case n > 1 && first == all-n+1:
		which = fmt.Sprint("the last ", n)
	case regular:
		which = fmt.Sprintf("one in %d, from number %d on,", step, first)
	}
	return fmt.Sprintf("%s of the %d of a batch%s", which, all, inCommon(b.Records, lost))
}

// inCommon is what the broken records have in one field, and no other one has, where it parts three from three.
func inCommon(records, broken []*write.Record) string {
	n := len(lists.Where(records, func(r *write.Record) bool { return write.Holds(broken, r) }))
	for what, pattern := range map[string]string{"null": `^null$`, "an empty text or list": `^(""|\[\])$`, "characters beyond ASCII": `[^\x00-\x7f]`} {
		for _, f := range broken[0].Object.Fields {
			is := regexp.MustCompile(pattern)
			differs := func(r *write.Record) bool { return is.Match(r.Values[f.APIName]) != write.Holds(broken, r) }
			if min(n, len(records)-n) > 2 && !slices.ContainsFunc(records, differs) {
				return "; they alone have " + what + " in " + f.APIName
			}
		}
	}
	return ""
}
