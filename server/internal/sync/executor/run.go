package executor

import (
	"context"
	"errors"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// run is one run under way, made of values with a subject each.
type run struct {
	*terms
	progress   progress
	booking    booking
	comparison comparison
	sending    sending
	reading    reading
}

// newRun is a run that has not started.
func (e *Executor) newRun(job Job, cancel context.CancelCauseFunc) *run {
	t := &terms{options: &e.options, job: job}
	r := &run{terms: t}
	r.progress = progress{tell: job.Report, count: r.counters, cancel: cancel}
	r.booking = booking{terms: t, progress: &r.progress, full: job.Full, reason: job.FullReason}
	r.comparison = comparison{terms: t, progress: &r.progress, booking: &r.booking, removals: spool{scratch: e.options.Scratch}}
	r.sending.terms, r.sending.progress, r.sending.booking = t, &r.progress, &r.booking
	r.sending.calls = caller{e: e}
	r.sending.room.runs, r.sending.room.wides = e.runs, e.wide
	r.reading = reading{terms: t, progress: &r.progress, booking: &r.booking, comparison: &r.comparison, sending: &r.sending}
	return r
}

// work is the run step by step.
func (r *run) work(ctx context.Context) error {
	defer r.comparison.removals.close()
	if err := r.prepare(); err != nil {
		return err
	}
	if err := r.sending.pace(ctx); err != nil {
		return err
	}
	if err := r.booking.begin(); err != nil {
		return err
	}
	defer func() { _ = r.booking.log.Close() }() // nothing, once it is finished
	err := r.move(ctx)
	if err == nil {
		err = r.sending.responses.none()
	}
	if stopped(ctx, err) {
		return err // the log stays open for the one who resumes
	}
	r.enter(StepRecording)
	return errors.Join(err, r.booking.finish(err))
}

// move reads, compares and sends.
func (r *run) move(ctx context.Context) error {
	refused := r.newSpool()
	defer func() { _ = refused.close() }()
	first := r.sending.phase(r.operation.wire, 1, refused)
	if err := r.sending.beginSwap(ctx); err != nil {
		return err
	}
	defer func() { _ = r.sending.endSwap() }()
	r.comparison.anew = r.sending.swap != nil
	r.enter(StepReading)
	if err := r.reading.measure(ctx); err != nil {
		return err
	}
	if err := r.reading.readAll(ctx, first); err != nil {
		return err
	}
	if err := r.sending.retry(ctx, r.operation.wire, refused); err != nil {
		return err
	}
	if err := r.comparison.emptied(); err != nil {
		return err
	}
	if r.sending.swap != nil {
		return r.sending.commitSwap(ctx, &r.comparison.removals)
	}
	if r.comparison.removals.count == 0 || r.options.Deviations.keeps(&r.comparison) {
		return nil
	}
	r.enter(StepDeleting)
	again := r.newSpool()
	defer func() { _ = again.close() }()
	// Upserts precede deletes, so that no key is without a record in between.
	if err := r.sending.sendSpool(ctx, &r.comparison.removals, r.sending.phase(rpc.OperationDelete, 1, again)); err != nil {
		return err
	}
	return r.sending.retry(ctx, rpc.OperationDelete, again)
}

// enter names the next step.
func (r *run) enter(step string) {
	r.comparison.publish()
	r.progress.enter(step)
}

// stopped reports whether the run goes on later: it was stopped, or the
// clock that it waits on is gone.
func stopped(ctx context.Context, err error) bool {
	return err != nil && (errors.Is(context.Cause(ctx), ErrStop) || errors.Is(err, ErrStop) || errors.Is(err, clock.ErrClosed))
}

// counters are sums: of the comparison, and of the ledger for sent records.
// The lock of the progress is held.
func (r *run) counters(step string, found tally) Counters {
	c := Counters{
		SourceRecords: found.rows, SourceUpdates: found.updates, SourceDeletes: found.deletes,
		SourceInvalids: found.invalids, Invalid: found.invalids,
	}
	if r.booking.log == nil || r.booking.skipping { // nothing is sent then
		return c
	}
	sums, open, spared := r.sending.traffic.sums(r.booking.log)
	// Open records are on their way, and count as failed there in case the run does
	// not come back.
	c.Updated, c.Failed = sums.Updated, max(sums.Failed-open, 0)
	c.Processed = c.Updated + c.Failed
	r.options.Deviations.miscount(&r.sending.traffic, &c)
	if r.booking.resumed && step == StepRecording {
		// The comparison no longer finds records acknowledged before the
		// interruption, and the log has every record once.
		c.SourceDeletes = sums.Deleted + spared
		c.SourceUpdates = c.Processed - c.SourceDeletes
	}
	return c
}

// outcome puts the end of the run into words.
func (r *run) outcome(ctx context.Context, err error) Outcome {
	r.comparison.publish()
	o := Outcome{
		Status: api.RunCompleted, Counters: r.progress.counters(), FullSync: r.booking.full, FullReason: r.booking.reason,
		Samples: r.comparison.samples, Calls: r.sending.traffic.calls.Load(), Merged: r.booking.merged,
	}
	if r.stream != nil {
		o.Position = r.stream.last
	}
	var f *Failure
	switch {
	case err == nil:
		return o
	case stopped(ctx, err):
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
	o.Status, o.Code, o.Message, o.Detail, o.Transient = api.RunFailed, f.Code, f.Message, f.Detail, f.Transient && !r.options.Deviations.NoAnotherRun
	return o
}
