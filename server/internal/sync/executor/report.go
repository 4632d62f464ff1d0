package executor

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/api"
)

// enter names the next step.
func (r *run) enter(step string) {
	r.publish()
	r.mu.Lock()
	r.step = step
	r.mu.Unlock()
	r.report()
}

// publish hands what the comparison counted to the reports, from its goroutine.
func (r *run) publish() {
	r.mu.Lock()
	r.shown = r.tally
	r.mu.Unlock()
}

// report tells the caller how far the run is.
func (r *run) report() {
	if r.job.Report == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.job.Report(Progress{r.step, r.counters()})
}

// counters are sums: of the comparison, and of the ledger for what was sent.
// The lock is held.
func (r *run) counters() Counters {
	c := Counters{
		SourceRecords: r.shown.rows, SourceUpdates: r.shown.updates, SourceDeletes: r.shown.deletes,
		SourceInvalids: r.shown.invalids, Invalid: r.shown.invalids,
	}
	if r.log == nil || r.skipping { // nothing is sent then
		return c
	}
	sums, open, spared := r.traffic.sums(r.log)
	ofLedger(&c, sums, open)
	r.e.options.Deviations.miscount(r, &c)
	if r.resumed && r.step == StepRecording {
		// The comparison no longer finds what was acknowledged before the
		// interruption, and the log has every record once.
		c.SourceDeletes = sums.Deleted + spared
		c.SourceUpdates = c.Processed - c.SourceDeletes
	}
	return c
}

// outcome puts the end of the run into words.
func (r *run) outcome(ctx context.Context, err error) Outcome {
	r.publish()
	r.mu.Lock()
	o := Outcome{
		Status: api.RunCompleted, Counters: r.counters(), FullSync: r.full, FullReason: r.reason,
		Samples: r.samples, Calls: r.traffic.calls.Load(), Merged: r.merged,
	}
	r.mu.Unlock()
	if r.stream != nil {
		o.Position = r.stream.last
	}
	var f *Failure
	switch {
	case err == nil:
		return o
	case r.stopped(ctx, err):
		o.Status = api.RunWorking
		return o
	case errors.As(err, &f):
	case ctx.Err() != nil:
		f = failed(CodeCanceled, err, "the run was cancelled; what the destination had acknowledged stays")
		o.Canceled = true
	default:
		f = failed(CodeInternal, err, "%v", err)
	}
	o.Cause = f
	o.Status, o.Code, o.Message, o.Detail, o.Transient = api.RunFailed, f.Code, f.Message, f.Detail, f.Transient && !r.e.options.Deviations.NoAnotherRun
	return o
}
