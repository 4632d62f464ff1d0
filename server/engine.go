package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/cluster/shelf"
	"github.com/destkit/destkit/server/internal/columns"
	"github.com/destkit/destkit/server/internal/planning"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// engine runs what is queued: it turns rows of the store into a job of the
// executor, and what the executor reports into the run that clients read.
type engine struct {
	s *Server

	mu       sync.Mutex
	working  map[int64]*workingRun // by the id of the run
	held     bool                  // nothing starts
	released chan struct{}         // closed when it may again
	turn     chan struct{}         // of the one who holds
	expected expectedRuns
	progress progressBook
}

// workingRun is one run that has been started in this process.
type workingRun struct {
	cancel   context.CancelCauseFunc
	canceled bool
	syncID   int64         // 0 until the run has been read
	done     chan struct{} // closed at its end
	stuck    chan struct{} // closed when its end cannot be recorded yet
	at       *executor.Progress
	log      *slog.Logger // nil until the run has been read
	occupied *occupied    // nil where no other process could work on the sync
}

// errCanceledByClient ends a run that a client has cancelled.
var errCanceledByClient = errors.New("cancelled through the API")

func newEngine(s *Server) *engine {
	e := &engine{s: s, working: map[int64]*workingRun{}, turn: make(chan struct{}, 1)}
	e.progress.e = e
	return e
}

// resume starts the runs that a stopped process left behind.
func (e *engine) resume(ctx context.Context) error {
	if e.s.fleet != nil {
		return e.s.fleet.resume(ctx)
	}
	var left []*store.SyncRun
	err := e.s.store.View(ctx, func(tx *store.Tx) (err error) {
		left, err = tx.EveryActiveRun()
		return err
	})
	for _, run := range left {
		e.start(run.WorkspaceID, run.ID)
	}
	return err
}

// start runs a queued run beside the caller, unless it is started already. The
// clock waits for it. While the engine is held it stays in the store, where
// resume finds it.
func (e *engine) start(workspaceID, runID int64) {
	ctx, cancel := context.WithCancelCause(e.s.background.Ctx)
	working := e.enlist(runID, cancel, nil)
	if working == nil {
		cancel(nil)
		return
	}
	ctx, done := e.s.clock.Work(ctx, fmt.Sprintf("sync run %d", runID))
	e.s.background.Run(func() {
		defer done()
		defer cancel(nil)
		defer close(working.done)
		_, err := e.run(ctx, workspaceID, runID)
		log := e.logOf(runID)
		e.leave(runID)
		// Whoever held the runs may have given up while this one was on its way to its
		// end, and found it still at work then.
		if stopped(ctx) && e.s.background.Ctx.Err() == nil {
			e.start(workspaceID, runID)
		}
		// A run whose sync was deleted meanwhile has nowhere to be recorded.
		if err != nil && !stopped(ctx) && !errors.Is(err, store.ErrNotFound) {
			log.Error("sync run cannot be recorded", "error", err)
		}
	})
}

// enlist notes a run that is about to start; nil when it must not.
func (e *engine) enlist(runID int64, cancel context.CancelCauseFunc, o *occupied) *workingRun {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held || e.working[runID] != nil {
		return nil
	}
	working := &workingRun{cancel: cancel, done: make(chan struct{}), stuck: make(chan struct{}), occupied: o}
	e.working[runID] = working
	e.came(runID)
	return working
}

// leave forgets a run that has ended here.
func (e *engine) leave(runID int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.working, runID)
	e.progress.forget(runID)
	e.count()
}

// cancel ends a run of this process; it reports whether there was one.
func (e *engine) cancel(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	run, ok := e.working[runID]
	if ok && !run.canceled {
		run.canceled = true
		run.cancel(errCanceledByClient)
		// Who asks the clock to settle waits for the end of the run, also when it
		// slept as it was cancelled.
		_, done := e.s.clock.Work(e.s.background.Ctx, fmt.Sprintf("end of sync run %d", runID))
		e.s.background.Run(func() {
			defer done()
			select {
			case <-run.done:
			case <-run.stuck:
			}
		})
	}
	return ok
}

// isCanceled reports whether a client has cancelled a run that works here, be it told
// to stop as well.
func (e *engine) isCanceled(runID int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.working[runID] != nil && e.working[runID].canceled
}

// halt ends the runs of a sync that is gone, and waits for their end.
func (e *engine) halt(syncID int64) {
	for _, end := range e.calledOff(syncID) {
		<-end
	}
}

func (e *engine) calledOff(syncID int64) (ends []chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, run := range e.working {
		if run.syncID == syncID {
			run.cancel(errCanceledByClient)
			ends = append(ends, run.done)
		}
	}
	return ends
}

// run is one run from its first row to its last; again says that it was stopped,
// and goes on later.
func (e *engine) run(ctx context.Context, workspaceID, runID int64) (again bool, err error) {
	progress := &runProgress{e: e, ctx: context.WithoutCancel(ctx)}
	release, crowded := e.admit(ctx)
	defer release()
	if e.s.background.Ctx.Err() != nil || stopped(ctx) {
		return true, nil // it is still queued
	}
	for wait := runs.FirstWait; ; wait = min(2*wait, runs.MostWait) {
		y, run, err := e.take(ctx, workspaceID, runID, progress)
		if err != nil || run == nil {
			return false, err
		}
		if progress.run == nil {
			e.named(run)
			e.s.lifecycle.Started(context.WithoutCancel(ctx), y, run)
		}
		progress.run = run
		progress.step(executor.StepPlanning)
		before := e.s.store.Outages()
		outcome, audience := crowded, ""
		if crowded.Status == "" {
			outcome, audience = e.execute(ctx, y, run, progress)
		}
		if e.s.background.Ctx.Err() != nil || outcome.Status == api.RunWorking && !e.isCanceled(runID) {
			return true, nil // stopped: the run goes on later
		}
		// It goes on from where it stood, with the sync as it is then.
		if e.ownTrouble(outcome, before) && e.wait(ctx, runID, wait, outcome.Cause) == nil {
			continue
		}
		if stopped(ctx) && !e.isCanceled(runID) {
			return true, nil
		}
		if audience != "" {
			if y.MatchRate, err = e.matchRate(y, run, audience); err != nil {
				e.logOf(runID).Warn("match rate cannot be measured", "error", err)
			}
		}
		if stopped(ctx) { // and cancelled: its end is recorded all the same
			ctx = context.WithoutCancel(ctx)
		}
		e.writeBack(ctx, y, run)
		return false, e.finish(ctx, y, run, outcome, progress)
	}
}

// take marks a queued run as working. A run that was cancelled meanwhile is nil.
func (e *engine) take(ctx context.Context, workspaceID, runID int64, progress *runProgress) (y *store.Sync, run *store.SyncRun, err error) {
	err = e.record(ctx, runID, func(tx *store.Tx) error {
		if run, err = tx.SyncRun(workspaceID, runID); err != nil {
			return err
		}
		if run.Run.Status != api.RunQueued && run.Run.Status != api.RunWorking {
			run = nil
			return nil
		}
		if y, err = tx.Sync(workspaceID, run.SyncID); err != nil {
			return err
		}
		if progress.doomed, err = e.s.fleet.canceled(tx, runID); err != nil {
			return err
		}
		run.Run.Status = api.RunWorking
		return tx.SaveSyncRun(run)
	})
	return y, run, err
}

// execute resolves the job and hands it to the executor. audience is the type of
// the destination when the object is an audience.
func (e *engine) execute(ctx context.Context, y *store.Sync, run *store.SyncRun, progress *runProgress) (o executor.Outcome, audience string) {
	seen := &progress.schema
	*seen = columns.Watch{Enforce: true}
	ctx = destination.ForRun(ctx, y.ID, run.ID)
	job, done, err := e.s.planning.Job(ctx, y, run, &progress.to, seen)
	if err != nil && stopped(ctx) {
		return executor.Outcome{Status: api.RunWorking}, ""
	}
	if err != nil {
		seen.Unplanned(y)
		seen.Log(e.logOf(run.ID))
		return planning.Failure(err), ""
	}
	defer done()
	progress.planned, progress.generated = true, mapping.Generated(&y.Config, job.DestinationObject, job.Columns)
	seen.Describe(y, job.DestinationObject, progress.generated)
	seen.Log(e.logOf(run.ID))
	job.MappingReason = seen.BackfillReason()
	job.Report, job.Allowed, job.Log = progress.report, e.allowed(run.ID), e.logOf(run.ID)
	e.s.planning.Resend(job, progress.to)
	if is := job.DestinationObject.IsAudienceDestination; is != nil && *is {
		audience = job.DestinationType
	}
	return e.s.executor.Run(ctx, *job), audience
}

// ledgerFolder holds the ledger in a data directory.
const ledgerFolder = "ledger"

// books opens the ledger: in the data directory, or in the store that several
// processes share.
func (s *Server) books() (err error) {
	options := ledger.Options{Dir: s.below(ledgerFolder)}
	if s.store.Shared() {
		options.Dir, options.Shelf = "", shelf.New(s.store.Pool(), s.log)
	}
	if s.ledger, err = ledger.Open(options); err != nil {
		return fmt.Errorf("open ledger: %w", err)
	}
	return nil
}

// run lets syncs run: first those that were interrupted, then what falls due.
func (s *Server) run(ctx context.Context) error {
	options := executor.Options{
		Clock: s.clock, Ledger: s.ledger, Limiter: s.gate.Limiter, BatchTimeout: s.config.BatchTimeout, PlanTimeout: s.config.CallTimeout,
		Payloads: true, Log: s.log, Deviations: s.broken.Deviations(),
	}
	s.executor = executor.New(options)
	if s.fleet != nil {
		return s.fleet.begin(ctx)
	}
	if err := errors.Join(s.engine.resume(ctx), s.schedule.All(ctx), s.retention.Look(ctx)); err != nil {
		return err
	}
	s.lifecycle.Resume(ctx)
	s.mail.Resume(ctx)
	return nil
}
