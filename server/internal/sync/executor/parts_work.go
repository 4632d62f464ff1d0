package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// pieces are the parts of a run as the one sees them who has cut it: what they
// reported last, by their numbers, as they wrote and as they deleted.
type pieces struct {
	write, remove []PartReport
	merged        bool // their logs are read by now, and count instead
}

// errOther ends the parts beside one that has failed.
var errOther = errors.New("another part of the run has failed")

// moveParts is move for a run that is cut. done is false where the run has to be
// made as a whole: its parts know that their rows cannot be cut so.
func (r *run) moveParts(ctx context.Context) (done bool, err error) {
	parts, err := r.cut(ctx)
	if len(r.log.Parts()) > 0 {
		r.join()
	}
	if err != nil || len(parts) == 0 {
		return err != nil, err
	}
	if err := r.keepMoment(ctx); err != nil {
		return !errors.Is(err, source.ErrNoSnapshot), r.butMoved(err)
	}
	r.takeParts(len(parts))
	err = r.workParts(ctx, r.partJobs(parts, len(parts), false), r.pieces.write)
	r.leaveMoment()
	switch {
	case errors.Is(err, errUnordered):
		return false, r.unite(ctx, true)
	case errors.Is(err, source.ErrNoSnapshot):
		return false, errors.Join(r.butMoved(err), r.unite(ctx, false))
	case err != nil:
		return true, err
	}
	if err := r.bookInvalid(); err != nil {
		return true, err
	}
	if err := r.emptied(); err != nil {
		return true, err
	}
	of := len(parts)
	parts = slices.DeleteFunc(parts, func(p ledger.Part) bool { return r.pieces.write[p.Number-1].Deletes == 0 })
	if len(parts) == 0 {
		return true, nil
	}
	r.enter(StepDeleting)
	// Upserts precede deletes, so that no key is without a record in between: a key may
	// have moved from one part to another.
	return true, r.workParts(ctx, r.partJobs(parts, of, true), r.pieces.remove)
}

// takeParts begins to count by the reports of parts. What their logs have from
// before an interruption counts at once.
func (r *run) takeParts(n int) {
	was := r.log.Sums()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pieces = &pieces{write: make([]PartReport, n), remove: make([]PartReport, n)}
	for i := range min(n, len(was)) {
		r.pieces.write[i].ofLog(was[i])
	}
}

// ofLog takes over what a log counts.
func (p *PartReport) ofLog(sums ledger.Counters) {
	p.Updated, p.Deleted, p.Failed = sums.Updated, sums.Deleted, sums.Failed
}

// unite goes on with the run as a whole, whose rows are sorted on disk where they do
// not come in the order of their keys. Verdicts still go to the logs of the parts,
// where those of before stand.
func (r *run) unite(ctx context.Context, unsorted bool) error {
	r.mu.Lock()
	r.pieces = nil
	r.mu.Unlock()
	r.tally, r.samples, r.unsorted = tally{}, nil, unsorted
	r.resumed = true
	return r.restart(ctx)
}

// workParts has parts worked on, and returns when all of them have ended.
func (r *run) workParts(ctx context.Context, jobs []PartJob, into []PartReport) error {
	own, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	for i := range jobs { // what it reports from now on is of this step
		into[jobs[i].Number-1].Ended = false
	}
	tell := func(p PartReport) {
		if err := r.hear(own, p, into); err != nil {
			stop(err)
		}
	}
	var err error
	if to := r.e.options.Parts; to == nil {
		err = r.workHere(own, jobs, tell)
	} else if err = r.log.Lend(); err == nil {
		err = to.Work(own, r.job, jobs, tell)
	}
	r.mu.Lock()
	ended := slices.Clone(into)
	r.tally, r.samples = r.pieces.found()
	r.mu.Unlock()
	for i := range ended {
		r.resumed = r.resumed || ended[i].Resumed
		if ended[i].Answered {
			r.answered.Store(true)
		}
		if f := ended[i].Fault; f != nil {
			fault := error(f)
			r.fault.Store(&fault)
		}
	}
	switch {
	case errors.Is(err, ErrStop):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(context.Cause(own), source.ErrNoSnapshot):
		return context.Cause(own)
	}
	return outcomeOf(jobs, ended, err)
}

// hear takes over the report of a part. The error is why none of them need go on.
func (r *run) hear(ctx context.Context, p PartReport, into []PartReport) (err error) {
	if p.Number < 1 || p.Number > len(into) {
		return nil
	}
	r.mu.Lock()
	opened := p.Opened != 0 && p.Opened != into[p.Number-1].Opened
	into[p.Number-1] = p
	r.step = r.pieces.step(r.step)
	r.mu.Unlock()
	switch {
	case p.Ended && !p.well():
		err = errOther
	case opened && r.moment != nil:
		err = r.moment.Holds(ctx)
	}
	r.report()
	return err
}

// outcomeOf is why not all parts came to a good end. A failure comes before what
// it did to others.
func outcomeOf(jobs []PartJob, ended []PartReport, err error) error {
	open, unordered, moved := 0, false, false
	for i := range jobs {
		p := &ended[jobs[i].Number-1]
		if p.Failure != nil {
			return p.Failure
		}
		if p.closed {
			return clock.ErrClosed
		}
		unordered, moved = unordered || p.Unordered, moved || p.Moved
		if !p.well() && open == 0 {
			open = p.Number
		}
	}
	switch {
	case unordered:
		return errUnordered
	case moved:
		return source.ErrNoSnapshot
	case err != nil:
		f := failed(CodeInternal, err, "let several workers send the run: %v", err)
		f.Transient = true
		return f
	case open > 0:
		f := failed(CodeInternal, nil, "part %d of %d of the run did not come to its end", open, len(ended))
		f.Transient = true
		return f
	}
	return nil
}

// workHere lets the parts work in this process.
func (r *run) workHere(ctx context.Context, jobs []PartJob, tell func(PartReport)) error {
	logs := make([]*ledger.Run, len(jobs))
	for i := range jobs {
		var err error
		if logs[i], err = r.log.Part(jobs[i].Number); err != nil {
			return failed(CodeState, err, "open the log of a part: %v", err)
		}
	}
	var left atomic.Int64
	var working sync.WaitGroup
	left.Store(int64(len(jobs)))
	ready := make(chan struct{})
	var resume func()
	beside := newSiblings(jobs)
	for i := range jobs {
		own, done := r.e.options.Clock.Work(ctx, fmt.Sprintf("part %d of sync %d", jobs[i].Number, r.job.Sync))
		working.Go(func() {
			defer done()
			<-ready
			r.e.runPart(own, r.job, jobs[i], logs[i], r.gate, beside.of(jobs[i].Number), tell)
			beside.ended(jobs[i].Number)
			if left.Add(-1) == 0 { // before done: the clock never passes for quiet
				resume()
			}
		})
	}
	resume = r.e.options.Clock.Pause(ctx)
	close(ready)
	working.Wait()
	return nil
}

// steps in their order.
var steps = []string{StepPlanning, StepReading, StepSending, StepRetrying, StepDeleting, StepRecording}

// step is that of the part that is behind all others; now where none works.
func (p *pieces) step(now string) string {
	least := len(steps)
	for _, reports := range [][]PartReport{p.write, p.remove} {
		for i := range reports {
			if at := slices.Index(steps, reports[i].Step); at >= 0 && !reports[i].Ended {
				least = min(least, at)
			}
		}
	}
	if least == len(steps) {
		return now
	}
	return steps[least]
}

// found sums up what the parts have found; samples come in the order of keys.
func (p *pieces) found() (sum tally, first []Sample) {
	for i := range p.write {
		w := &p.write[i]
		sum.rows += w.Rows
		sum.valid += w.Valid
		sum.invalids += w.Invalids
		sum.updates += w.Updates
		sum.deletes += w.Deletes
		sum.missing += w.Missing
		first = append(first, w.Samples[:min(len(w.Samples), samples-len(first))]...)
	}
	return sum, first
}

// sums are the counters of the logs, and what of them is on its way.
func (p *pieces) sums() (sums ledger.Counters, open, spared, calls int64) {
	for i := range p.write {
		w, d := &p.write[i], &p.remove[i]
		calls += w.Calls + d.Calls
		spared += w.Spared + d.Spared
		if d.Number > 0 { // later, and of the same log
			w = d
		}
		sums.Updated += w.Updated
		sums.Deleted += w.Deleted
		sums.Failed += w.Failed
		open += w.Open
	}
	return sums, open, spared, calls
}

// emptied refuses what would delete everything: the whole source counts, not
// that of a part.
func (r *run) emptied() error {
	if r.job.Config.Operation == api.OperationMirror && r.tally.valid == 0 && r.tally.missing > 0 && !r.allowsEmpty() {
		return failed(CodeEmptySource, nil, "the source has no valid record, and this mirror would remove everything that it has sent: set advanced_configuration.%s to true if that is meant", mapping.AllowEmptySource)
	}
	return nil
}
