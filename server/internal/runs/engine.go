package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/statelock"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Engine works on queued runs: it turns rows of the store into a job of the executor,
// and the executor's reports into the run that clients read.
type Engine struct {
	Planning
	EngineParts

	mu       sync.Mutex
	working  map[int64]*workingRun // by the id of the run
	held     bool                  // nothing starts
	turn     chan struct{}         // of the one who holds
	progress progressBook
}

// EngineParts are what working on runs needs of the service, beyond what starting them
// does.
type EngineParts struct {
	Plans     *Planner
	Executor  func() *executor.Executor // there is one once the ledger is open
	Lifecycle *lifecycle.Lifecycle
	Schedule  *Schedule
	Live      *Live
	Retries   *Retries
	Retention *Retention
	Gate      *destination.Gate
	Lock      *statelock.Lock
	Files     *descriptors.Budget // of the runs that work
}

// workingRun is one run that has been started.
type workingRun struct {
	cancel   context.CancelCauseFunc
	canceled bool
	syncID   int64         // 0 until the run has been read
	done     chan struct{} // closed at its end
	stuck    chan struct{} // closed when its end cannot be recorded yet
	at       *executor.Progress
	log      *slog.Logger // nil until the run has been read
}

// errCanceledByClient ends a run that a client has cancelled.
var errCanceledByClient = errors.New("cancelled through the API")

// NewEngine works on nothing yet. It is complete after Assemble.
func NewEngine(p Planning) *Engine {
	e := &Engine{Planning: p, working: map[int64]*workingRun{}, turn: make(chan struct{}, 1)}
	e.progress.e = e
	return e
}

// Assemble gives it the parts that were made after it.
func (e *Engine) Assemble(p EngineParts) { e.EngineParts = p }

// Resume starts the runs that a stopped process left behind, or that were held.
func (e *Engine) Resume(ctx context.Context) error {
	left, err := store.Read(ctx, e.Shared.Store, (*store.Tx).EveryActiveRun)
	for _, run := range left {
		e.Start(run.WorkspaceID, run.ID)
	}
	return err
}

// Start runs a queued run in the background, unless it is started already. The
// clock waits for it. While the engine is held it stays in the store, where
// Resume finds it.
func (e *Engine) Start(workspaceID, runID int64) {
	ctx, cancel := context.WithCancelCause(e.Work.Ctx)
	working := e.enlist(runID, cancel)
	if working == nil {
		cancel(nil)
		return
	}
	ctx, done := e.Clock.Work(ctx, fmt.Sprintf("sync run %d", runID))
	e.Work.Run(func() {
		defer done()
		defer cancel(nil)
		defer close(working.done)
		err := e.run(ctx, workspaceID, runID)
		log := e.logOf(runID)
		e.leave(runID)
		// Whoever held the runs may have given up while this one was on its way to its
		// end, and found it still at work then.
		if stopped(ctx) && e.Work.Ctx.Err() == nil {
			e.Start(workspaceID, runID)
		}
		// A run whose sync was deleted meanwhile has nowhere to be recorded.
		if err != nil && !stopped(ctx) && !errors.Is(err, store.ErrNotFound) {
			log.Error("sync run cannot be recorded", "error", err)
		}
	})
}

// enlist notes a run that is about to start; nil when it must not.
func (e *Engine) enlist(runID int64, cancel context.CancelCauseFunc) *workingRun {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held || e.working[runID] != nil {
		return nil
	}
	working := &workingRun{cancel: cancel, done: make(chan struct{}), stuck: make(chan struct{})}
	e.working[runID] = working
	return working
}

// leave forgets a run that has ended here.
func (e *Engine) leave(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.working, runID)
	e.progress.forget(runID)
}

// Cancel ends a run that works; it reports whether there was one.
func (e *Engine) Cancel(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	run, ok := e.working[runID]
	if ok && !run.canceled {
		run.canceled = true
		run.cancel(errCanceledByClient)
		// Settle of the clock waits for the end of the run, also when it slept as
		// it was cancelled.
		_, done := e.Clock.Work(e.Work.Ctx, fmt.Sprintf("end of sync run %d", runID))
		e.Work.Run(func() {
			defer done()
			select {
			case <-run.done:
			case <-run.stuck:
			}
		})
	}
	return ok
}

// Ended is closed when a run that works has ended; nil for any other run.
func (e *Engine) Ended(runID int64) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[runID]; working != nil {
		return working.done
	}
	return nil
}

// isCanceled reports whether a client has cancelled a run that works here, even if it
// is being stopped as well.
func (e *Engine) isCanceled(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.working[runID] != nil && e.working[runID].canceled
}

// Halt ends the runs of a sync that is gone, and waits for their end.
func (e *Engine) Halt(syncID int64) {
	e.mu.Lock()
	var ends []chan struct{}
	for _, run := range e.working {
		if run.syncID == syncID {
			run.cancel(errCanceledByClient)
			ends = append(ends, run.done)
		}
	}
	e.mu.Unlock()
	for _, end := range ends {
		<-end
	}
}

// run is one run from its first row to its last. One that was stopped goes on later.
func (e *Engine) run(ctx context.Context, workspaceID, runID int64) error {
	progress := e.Progress(ctx, nil)
	release, crowded := e.admit(ctx)
	defer release()
	if e.Work.Ctx.Err() != nil || stopped(ctx) {
		return nil // it is still queued
	}
	for wait := FirstWait; ; wait = min(2*wait, MostWait) {
		y, run, err := e.take(ctx, workspaceID, runID)
		if err != nil || run == nil {
			return err
		}
		if progress.run == nil {
			e.named(run)
			e.Lifecycle.Started(context.WithoutCancel(ctx), y, run)
		}
		progress.run = run
		progress.step(executor.StepPlanning)
		outcome, audience := crowded, ""
		if crowded.Status == "" {
			outcome, audience = e.execute(ctx, y, run, progress)
		}
		if e.Work.Ctx.Err() != nil || outcome.Status == api.RunWorking && !e.isCanceled(runID) {
			return nil // stopped: the run goes on later
		}
		// It goes on from where it stood, with the sync as it is then.
		if ownTrouble(outcome) && e.wait(ctx, runID, wait, outcome.Cause) == nil {
			continue
		}
		if stopped(ctx) && !e.isCanceled(runID) {
			return nil
		}
		if audience != "" {
			if y.MatchRate, err = e.matchRate(y, run, audience); err != nil {
				e.logOf(runID).Warn("match rate cannot be measured", "error", err)
			}
		}
		if stopped(ctx) { // and cancelled: its end is recorded all the same
			ctx = context.WithoutCancel(ctx)
		}
		return e.Finish(ctx, y, run, outcome, progress)
	}
}

// take marks a queued run as working. A run that was cancelled meanwhile is nil.
func (e *Engine) take(ctx context.Context, workspaceID, runID int64) (y *store.Sync, run *store.SyncRun, err error) {
	told := func() {}
	err = e.record(ctx, runID, func(tx *store.Tx) error {
		if run, err = tx.SyncRun(workspaceID, runID); err != nil {
			return err
		}
		if run.Run.Status != api.RunQueued && run.Run.Status != api.RunWorking {
			run = nil
			return nil
		}
		if run.Run.Canceled && !e.isCanceled(runID) { // while it was stopped
			told, err = e.endCanceled(ctx, tx, run)
			run = nil
			return err
		}
		if y, err = store.Syncs.Read(tx, workspaceID, run.SyncID); err != nil {
			return err
		}
		run.Run.Status = api.RunWorking
		return store.SyncRuns.Save(tx, run)
	})
	if err == nil {
		told()
	}
	return y, run, err
}

// execute resolves the job and hands it to the executor. audience is the type of
// the destination when the object is an audience.
func (e *Engine) execute(ctx context.Context, y *store.Sync, run *store.SyncRun, progress *Progress) (o executor.Outcome, audience string) {
	seen := &progress.schema
	*seen = sources.ColumnWatch{Enforce: true}
	ctx = destination.ForRun(ctx, y.ID, run.ID)
	job, done, err := e.Plans.Job(ctx, y, run, &progress.to, seen)
	if err != nil && stopped(ctx) {
		return executor.Outcome{Status: api.RunWorking}, ""
	}
	if err != nil {
		seen.Unplanned(y)
		seen.Log(e.logOf(run.ID))
		return PlanFailure(err), ""
	}
	defer done()
	progress.planned, progress.generated = true, mapping.Generated(&y.Config, job.DestinationObject, job.Columns)
	seen.Describe(y, job.DestinationObject, progress.generated)
	seen.Log(e.logOf(run.ID))
	job.MappingReason = seen.BackfillReason()
	job.Report, job.Log = progress.Report, e.logOf(run.ID)
	e.Plans.Resend(job, progress.to)
	if is := job.DestinationObject.IsAudienceDestination; is != nil && *is {
		audience = job.DestinationType
	}
	return e.Executor().Run(ctx, *job), audience
}
