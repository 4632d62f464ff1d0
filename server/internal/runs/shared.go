package runs

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// This file is what the engine does where several processes work: a run comes from
// the queue, and is worked on under a lease.

// Share lets other processes work on runs, too.
func (e *Engine) Share(p processes) { e.processes = p }

// Lease is the right of this process to work on a sync, which another one could take over.
type Lease interface {
	// Holds fails with lease.ErrLost in a change of the store when another has the right.
	Holds(ctx context.Context, tx *store.Tx) error
	// Sure waits until no other process can have the right, or for the end of ctx.
	Sure(ctx context.Context) error
	// End gives it back.
	End()
}

// errTakenOver stops a run whose lease another process has by now: it goes on there,
// and nothing more of it is recorded here.
var errTakenOver = fmt.Errorf("another process has taken over the run: %w", executor.ErrStop)

// Carry works on a run of a sync under a lease, which keep begins to keep: it calls lost
// when another process has it. again: the run was stopped here, and goes on elsewhere. It
// fails with store.ErrNotFound where the sync has no such run.
func (e *Engine) Carry(ctx context.Context, workspaceID, syncID, runID int64, l Lease, keep func(lost func())) (again bool, err error) {
	own, cancel := context.WithCancelCause(e.Work.Ctx)
	defer cancel(nil)
	// First and last: whoever waits for the clock must not find it quiet while the run
	// is no more expected and not yet at work, nor between its end and the next one.
	own, done := e.Clock.Work(own, fmt.Sprintf("sync run %d", runID))
	defer done()
	working := e.enlist(runID, cancel, l)
	if working == nil {
		return true, nil // held since it was looked at
	}
	defer close(working.done)
	defer e.leave(runID)
	defer e.Lifecycle.Unwatched(runID)
	defer context.AfterFunc(ctx, func() { cancel(executor.ErrStop) })()
	keep(func() { cancel(errTakenOver) })
	again, err = e.run(own, workspaceID, syncID, runID)
	switch {
	case errors.Is(context.Cause(own), errTakenOver):
		return false, nil
	case err != nil && stopped(own):
		return true, nil
	}
	return again, err
}

// guarded makes a change about a run that works here conditional on its lease:
// lease.ErrLost when the run goes on elsewhere.
func (e *Engine) guarded(ctx context.Context, runID int64, change func(*store.Tx) error) func(*store.Tx) error {
	l := e.leaseOf(runID)
	if l == nil {
		return change
	}
	return func(tx *store.Tx) error {
		if err := l.Holds(ctx, tx); err != nil {
			return err
		}
		return change(tx)
	}
}

func (e *Engine) leaseOf(runID int64) Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[runID]; working != nil {
		return working.lease
	}
	return nil
}

// allowed is asked before each call of a run. A process that stood still may have
// lost the lease without knowing it, and would send what is old by now.
func (e *Engine) allowed(runID int64) func(context.Context) error {
	if l := e.leaseOf(runID); l != nil {
		return l.Sure
	}
	return nil
}

// vacate gives the sync of a run free that has ended.
func (e *Engine) vacate(runID int64) {
	if l := e.leaseOf(runID); l != nil {
		l.End()
	}
}

// Unheld waits until runs may start.
func (e *Engine) Unheld(ctx context.Context) error {
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

// Expect notes a run that was queued and will start here.
func (e *Engine) Expect(ctx context.Context, run *store.SyncRun) {
	e.mu.Lock()
	if e.expected.runs == nil {
		e.expected.runs = map[int64]bool{}
	}
	if e.working[run.ID] == nil {
		e.expected.runs[run.ID] = true
		e.count()
	}
	e.mu.Unlock()
	e.ExpectIfActive(ctx, run.WorkspaceID, run.ID) // it may have come and gone before it was noted
}

// ExpectIfActive takes a run off the list that is neither queued nor at work by now.
func (e *Engine) ExpectIfActive(ctx context.Context, workspaceID, runID int64) {
	err := e.Shared.Store.View(ctx, func(tx *store.Tx) error {
		now, err := tx.SyncRun(workspaceID, runID)
		if err == nil && (now.Run.Status == api.RunQueued || now.Run.Status == api.RunWorking) {
			return nil
		}
		return errors.Join(err, store.ErrNotFound)
	})
	if err != nil {
		e.mu.Lock()
		e.came(runID)
		e.mu.Unlock()
	}
}

// ExpectActive notes every run that is to be worked on, and no other.
func (e *Engine) ExpectActive(ctx context.Context) error {
	left, err := e.forgetOver(ctx)
	for _, run := range left {
		e.processes.Launched(ctx, run)
	}
	return err
}

// ForgetOver takes the runs off the list that are over, or gone with another world: no
// job may be left that would.
func (e *Engine) ForgetOver(ctx context.Context) error {
	e.mu.Lock()
	expected := len(e.expected.runs)
	e.mu.Unlock()
	if expected == 0 {
		return nil
	}
	_, err := e.forgetOver(ctx)
	return err
}

func (e *Engine) forgetOver(ctx context.Context) (active []*store.SyncRun, err error) {
	e.mu.Lock()
	over := maps.Clone(e.expected.runs) // what is noted from here on may be younger than what is read
	e.mu.Unlock()
	if active, err = e.active(ctx); err != nil {
		return nil, err
	}
	for _, run := range active {
		delete(over, run.ID)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range over {
		e.came(id)
	}
	return active, nil
}

// ExpectNothing: other processes may take what waits.
func (e *Engine) ExpectNothing() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.expected.runs)
	e.count()
}

// came takes a run off the list; the lock is held.
func (e *Engine) came(runID int64) {
	delete(e.expected.runs, runID)
	e.count()
}

// count tells the clock; the lock is held.
func (e *Engine) count() {
	wanted := len(e.expected.runs) > 0 && len(e.working) < e.Workers
	switch {
	case wanted && e.expected.busy == nil:
		e.expected.busy = e.Clock.Busy("queued sync runs")
	case !wanted && e.expected.busy != nil:
		e.expected.busy()
		e.expected.busy = nil
	}
}

// Load is how many runs work here.
func (e *Engine) Load() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return int64(len(e.working))
}

// Working are the runs that work here, each with its sync; 0 until that has been read.
func (e *Engine) Working() map[int64]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	syncs := make(map[int64]int64, len(e.working))
	for id, run := range e.working {
		syncs[id] = run.syncID
	}
	return syncs
}

// Ends are closed when a run that works here has ended, and when its end cannot be
// recorded yet; nil for any other run.
func (e *Engine) Ends(runID int64) (done, stuck <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[runID]; working != nil {
		return working.done, working.stuck
	}
	return nil, nil
}
