package server

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/cluster/parts"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// takenPart is a part that this process has taken.
type takenPart struct {
	*fleetParts
	part   executor.PartJob
	place  parts.Part // in the table
	beside executor.Beside
	cancel context.CancelCauseFunc
	until  atomic.Int64 // for so long it is ours, in nanoseconds since the claim
	begun  time.Time

	mu     sync.Mutex
	report *executor.PartReport // that was not written yet
}

// serve takes parts of the runs of others for as long as this process works.
func (p *fleetParts) serve() {
	failing := false
	for {
		for p.room() {
			c, err := p.claim(p.ctx, nil)
			if p.ctx.Err() == nil {
				p.f.warn(&failing, "no part of a run can be taken", store.Explained(err))
			}
			if c == nil {
				break
			}
			p.f.work.Go(func() { c.work(nil) })
		}
		select {
		case <-p.wake:
		case <-p.ctx.Done():
			return
		case <-time.After(p.f.pulse.look):
		}
	}
}

// room reports whether a worker is free.
func (p *fleetParts) room() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ctx.Err() == nil && !p.f.drained.Load() && !p.f.dead.Load() && p.f.s.engine.load()+p.here < int64(p.f.s.config.Workers)
}

// working is how many parts work here.
func (p *fleetParts) working() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.here
}

// claim takes a part that nobody has, that one or any; nil when there is none.
func (p *fleetParts) claim(ctx context.Context, which *parts.Part) (*takenPart, error) {
	c := &takenPart{fleetParts: p, begun: time.Now()}
	place, text, err := unbroken(ctx, p.f.pulse.run/3, func(ctx context.Context) (*parts.Part, []byte, error) { return p.table.Claim(ctx, which) })
	if err != nil || place == nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, p.told(p.table.Free(context.WithoutCancel(ctx), *place))
	}
	if c.place = *place; json.Unmarshal(text, &c.part) != nil || placeOf(&c.part) != c.place {
		return nil, p.refuse(ctx, c.place)
	}
	c.until.Store(int64(p.f.pulse.run))
	p.mu.Lock()
	p.here++
	p.mu.Unlock()
	return c, nil
}

// unbroken asks for something that is held from then on. A question that is broken off
// may have been answered all the same: nobody would know who holds it until it counts
// as lost.
func unbroken[A, B any](ctx context.Context, limit time.Duration, ask func(context.Context) (A, B, error)) (a A, b B, err error) {
	if ctx.Err() != nil {
		return a, b, context.Cause(ctx)
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return ask(asked)
}

// refuse ends a part that is none. The one who waits for it would take this process
// for lost, and have the same once more.
func (p *fleetParts) refuse(ctx context.Context, at parts.Part) error {
	failure := &executor.Failure{Code: executor.CodeInternal, Message: fmt.Sprintf(
		"part %d of the run cannot be read: process %s has another version than the one that has cut the run, or somebody else has written it", at.Number, p.f.id)}
	report := executor.PartReport{Number: at.Number, Ended: true, Failure: failure}
	if err := p.table.End(ctx, at, textOf(&report)); err != nil {
		return err
	}
	return fmt.Errorf("sync %d: %w", at.Sync, failure)
}

// work does the part, with a job that is open already or its own.
func (c *takenPart) work(open *executor.Job) {
	defer func() {
		c.fleetParts.mu.Lock()
		c.here--
		c.fleetParts.mu.Unlock()
	}()
	s := c.f.s
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	c.cancel = cancel
	ctx, done := s.clock.Work(ctx, fmt.Sprintf("part %d of sync run %d", c.part.Number, c.part.Run))
	defer done()
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var kept sync.WaitGroup
	kept.Go(func() { c.keep(keeping) })
	report := c.run(ctx, open)
	stop()
	kept.Wait()
	c.end(report)
}

// run opens the job and carries the part out.
func (c *takenPart) run(ctx context.Context, open *executor.Job) executor.PartReport {
	var job executor.Job
	if open != nil {
		job = *open
	} else {
		own, done, err := c.open(ctx)
		if err != nil {
			return c.unopened(ctx, err)
		}
		defer done()
		job = *own
		job.Allowed = c.sure
	}
	report := c.f.s.executor.RunPart(ctx, job, c.part, &c.beside, func(r executor.PartReport) {
		if r.Ended {
			return // that is said once, by end
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.report = &r
	})
	if f := report.Failure; f != nil && passingOfStore(f) {
		return c.unopened(ctx, f)
	}
	return report
}

// open resolves the job of the run, as for a run of this process.
func (c *takenPart) open(ctx context.Context) (job *executor.Job, done func(), err error) {
	var y *store.Sync
	var run *store.SyncRun
	err = c.f.s.store.View(ctx, func(tx *store.Tx) error {
		if run, err = tx.AnySyncRun(c.part.Run); err != nil {
			return err
		}
		y, err = tx.Sync(run.WorkspaceID, run.SyncID)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return c.f.s.engine.job(ctx, y, run, new(endpoint), new(schemaWatch))
}

// unopened is the report of a part that could not begin, or has failed of nothing but
// the store: that is made again after a moment, here or elsewhere.
func (c *takenPart) unopened(ctx context.Context, err error) executor.PartReport {
	report := executor.PartReport{Number: c.part.Number, Ended: true}
	if passingOfStore(err) {
		c.f.s.log.Warn("a part of a run waits for the store", "run", c.part.Run, "part", c.part.Number, "error", err)
		report.Stopped = true
		_ = pause(ctx, c.f.pulse.look)
	}
	if report.Stopped = report.Stopped || ctx.Err() != nil; report.Stopped {
		return report
	}
	o := planFailure(err)
	report.Failure = &executor.Failure{Code: o.Code, Message: o.Message, Detail: o.Detail, Transient: o.Transient}
	return report
}

// keep says now and then that the part is worked on, and how far it is.
func (c *takenPart) keep(ctx context.Context) {
	for pause(ctx, c.f.pulse.part) == nil {
		if c.f.dead.Load() {
			continue
		}
		before := time.Since(c.begun)
		var working []int
		var err error
		if !c.f.frozen.unless(func() { working, err = c.tell(ctx) }) {
			continue
		}
		switch {
		case err == nil && working == nil:
			c.cancel(errCalledOff)
			return
		case err == nil:
			c.beside.Tell(working)
			c.until.Store(int64(before + c.f.pulse.run))
		case time.Since(c.begun) > time.Duration(c.until.Load()):
			c.cancel(errCalledOff) // others take it for dead by now
			return
		}
	}
}

// tell says how far the part is; working is nil when nobody waits for it any more.
func (c *takenPart) tell(ctx context.Context) (working []int, err error) {
	c.mu.Lock()
	report := c.report
	c.report = nil
	c.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, c.f.pulse.run/3)
	defer cancel()
	return c.table.Keep(call, c.place, textOf(report))
}

// placeOf is where a part says that it stands in the table.
func placeOf(part *executor.PartJob) parts.Part {
	return parts.Part{Step: parts.Step{Sync: part.Sync, Fence: part.Fence, Deletes: part.Deletes}, Number: part.Number}
}

// textOf is a report as it travels; nil for none.
func textOf(report *executor.PartReport) []byte {
	if report == nil {
		return nil
	}
	return api.Raw(report)
}

// end writes down what became of the part. One that was stopped because this process
// ends is free for others: nothing of it is on its way any more.
func (c *takenPart) end(report executor.PartReport) {
	for time.Since(c.begun) < time.Duration(c.until.Load()) && !c.f.dead.Load() {
		ctx := context.WithoutCancel(c.f.ctx)
		var err error
		if report.Stopped {
			err = c.told(c.table.Free(ctx, c.place))
		} else {
			err = c.table.End(ctx, c.place, textOf(&report))
		}
		if err == nil {
			return
		}
		_ = pause(ctx, c.f.pulse.part)
	}
}

// sure is asked before each call: a process that stood still may have lost its part.
func (c *takenPart) sure(ctx context.Context) error {
	for time.Since(c.begun) >= time.Duration(c.until.Load()) {
		if err := pause(ctx, c.f.pulse.part); err != nil {
			return context.Cause(ctx)
		}
	}
	return ctx.Err()
}
