package executor

import (
	"errors"
	"sync/atomic"

	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// batchFailures is how many calls of one batch may fail one after another before it
// is not split any further. A single bad record among any number needs one failure
// per halving, so this finds several; a destination that refuses all does not get
// two calls for every record.
const batchFailures = 40

// runFailures is how many times batchFailures calls of a whole run may fail, for each
// batch that is on its way at once, before the run does: nothing gets through.
// timeoutFailures is for how many calls one counts that took all the time they had.
const (
	runFailures     = 3
	timeoutFailures = 10
)

// responses are what the calls of a run have brought so far.
type responses struct {
	consecutiveFailures atomic.Int64          // calls that failed since one succeeded
	usable              atomic.Bool           // some call brought a reply that could be used
	fault               atomic.Pointer[error] // why the last of the others brought none
}

// succeeded notes a reply that can be used.
func (r *responses) succeeded() {
	r.consecutiveFailures.Store(0)
	r.usable.Store(true)
}

// failed notes a call that brought none, and reports whether that is about its batch.
func (r *responses) failed(err error) bool {
	r.fault.Store(&err)
	var call *destination.CallError
	switch {
	case !errors.As(err, &call), call.Status == statusThrottled:
		return false
	case call.Outcome == destination.OutcomeTimeout:
		r.consecutiveFailures.Add(timeoutFailures)
	default:
		r.consecutiveFailures.Add(1)
	}
	return true
}

// exhausted reports whether nothing gets through any more, with so many batches at once.
func (r *responses) exhausted(places int) bool {
	return r.consecutiveFailures.Load() >= batchFailures*max(runFailures, int64(places))
}

// none is the failure of a run that came to its end without one reply that could be used. This
// distinguishes a destination that breaks the protocol, or refuses everything, from one that
// refuses records (spec 7.2), also where there was little to send.
func (r *responses) none() error {
	fault := r.fault.Load()
	if fault == nil || r.usable.Load() {
		return nil
	}
	return ofCall(*fault)
}

// traffic counts what a run has put on its way.
type traffic struct {
	calls atomic.Int64
	// Records that were put on their way, and those that have arrived at the end
	// of it. Those in between are counted as failed by the ledger so far.
	started, finished atomic.Int64
	failedDeletes     atomic.Int64 // deletes that were refused to the end
	refusals          atomic.Int64 // for Deviations alone: records that are sent again
}

// sums are those of the log, with the records on their way, which count as
// failed there, and the deletes that were refused to the end.
func (t *traffic) sums(log *ledger.Run) (sums ledger.Counters, open, spared int64) {
	// In this order: a batch that comes or goes meanwhile counts as under way, and
	// is never shown as failed.
	over := t.finished.Load()
	sums = log.Counters()
	return sums, t.started.Load() - over, t.failedDeletes.Load()
}
