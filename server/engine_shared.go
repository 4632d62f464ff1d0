package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/cluster/jobs"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// This file is what the engine does where several processes work: a run comes from
// the queue, and is worked on under a lease.

// carry works on a run under the lease of o, which is kept as long as keeping
// lasts. again: the run was stopped here, and goes on elsewhere.
func (e *engine) carry(ctx context.Context, job jobs.Run, o *occupied, keeping context.Context) (again bool, err error) {
	own, cancel := context.WithCancelCause(e.s.background.Ctx)
	defer cancel(nil)
	// First and last: whoever waits for the clock must not find it quiet while the run
	// is no more expected and not yet at work, nor between its end and the next one.
	own, done := e.s.clock.Work(own, fmt.Sprintf("sync run %d", job.ID))
	defer done()
	working := e.enlist(job.ID, cancel, o)
	if working == nil {
		return true, nil // held since it was looked at
	}
	defer close(working.done)
	defer e.leave(job.ID)
	defer e.s.lifecycle.Unwatched(job.ID)
	defer context.AfterFunc(ctx, func() { cancel(executor.ErrStop) })()
	f := o.f
	f.work.Go(func() { f.watch(keeping, job.ID) })
	f.work.Go(func() {
		f.keep(keeping, o.t, f.pulse.runKeep)
		if o.t.isLost() {
			f.lost.Add(1)
			f.s.log.Warn("another process has taken over a run", "run", job.ID, "sync", job.SyncID, "workspace", job.WorkspaceID)
			cancel(errLeaseLost)
		}
	})
	again, err = e.run(own, job.WorkspaceID, job.ID)
	switch {
	case errors.Is(context.Cause(own), errLeaseLost):
		return false, nil
	case err != nil && stopped(own):
		return true, nil
	}
	return again, err
}

// guarded makes a change about a run that works here conditional on its lease:
// lease.ErrLost when the run goes on elsewhere.
func (e *engine) guarded(ctx context.Context, runID int64, change func(*store.Tx) error) func(*store.Tx) error {
	o := e.occupiedBy(runID)
	if o == nil {
		return change
	}
	return func(tx *store.Tx) error {
		if err := lease.Holds(ctx, tx.PostgreSQL(), o.t.lease); err != nil {
			return err
		}
		return change(tx)
	}
}

func (e *engine) occupiedBy(runID int64) *occupied {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[runID]; working != nil {
		return working.occupied
	}
	return nil
}

// allowed is asked before each call of a run. A process that stood still may have
// lost the lease without knowing it, and would send what is old by now.
func (e *engine) allowed(runID int64) func(context.Context) error {
	if o := e.occupiedBy(runID); o != nil {
		return o.t.sure
	}
	return nil
}

// vacate gives the sync of a run free that has ended.
func (e *engine) vacate(runID int64) {
	if o := e.occupiedBy(runID); o != nil {
		o.end()
	}
}

// unheld waits until runs may start.
func (e *engine) unheld(ctx context.Context) error {
	for {
		e.mu.Lock()
		held, released := e.held, e.released
		e.mu.Unlock()
		if !held {
			return ctx.Err()
		}
		select {
		case <-released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// expectedRuns are runs that wait in the queue while this process is alone: they will
// start here. The clock does not pass for quiet meanwhile, as it does not where a run
// starts at once; but as long as every worker is taken it has to move, since they may
// be waiting for it.
type expectedRuns struct {
	runs map[int64]bool
	busy func()
}

// expect notes a run that was queued.
func (e *engine) expect(ctx context.Context, run *store.SyncRun) {
	f := e.s.fleet
	if f == nil || f.company.Load() > 0 || e.s.config.Workers == 0 || f.drained.Load() {
		return
	}
	e.mu.Lock()
	if e.expected.runs == nil {
		e.expected.runs = map[int64]bool{}
	}
	if e.working[run.ID] == nil {
		e.expected.runs[run.ID] = true
		e.count()
	}
	e.mu.Unlock()
	// It may have come and gone before it was noted.
	err := e.s.store.View(ctx, func(tx *store.Tx) error {
		now, err := tx.SyncRun(run.WorkspaceID, run.ID)
		if err == nil && (now.Run.Status == api.RunQueued || now.Run.Status == api.RunWorking) {
			return nil
		}
		return errors.Join(err, store.ErrNotFound)
	})
	if err != nil {
		e.mu.Lock()
		e.came(run.ID)
		e.mu.Unlock()
	}
}

// expectActive notes every run that is to be worked on.
func (e *engine) expectActive(ctx context.Context) error {
	var left []*store.SyncRun
	err := e.s.store.View(ctx, func(tx *store.Tx) (err error) {
		left, err = tx.EveryActiveRun()
		return err
	})
	for _, run := range left {
		e.expect(ctx, run)
	}
	return err
}

// expectNothing: other processes may take what waits.
func (e *engine) expectNothing() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.expected.runs)
	e.count()
}

// came takes a run off the list; the lock is held.
func (e *engine) came(runID int64) {
	delete(e.expected.runs, runID)
	e.count()
}

// count tells the clock; the lock is held.
func (e *engine) count() {
	wanted := len(e.expected.runs) > 0 && len(e.working) < e.s.config.Workers
	switch {
	case wanted && e.expected.busy == nil:
		e.expected.busy = e.s.clock.Busy("queued sync runs")
	case !wanted && e.expected.busy != nil:
		e.expected.busy()
		e.expected.busy = nil
	}
}

// load is how many runs work here.
func (e *engine) load() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return int64(len(e.working))
}
