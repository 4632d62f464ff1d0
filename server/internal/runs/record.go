package runs

import (
	"context"
	"errors"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// record makes a change of the store that must not be lost: a store that is
// locked or full may be free a little later, and a run that stays marked as
// working would make all later ones be skipped. It gives up when the run goes on
// after a restart, or its sync is gone.
func (e *Engine) record(ctx context.Context, run int64, change func(*store.Tx) error) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(e.Work.Ctx, cancel)()
	defer context.AfterFunc(ctx, func() {
		if stopped(ctx) {
			cancel()
		}
	})()
	for wait := FirstWait; ; wait = min(2*wait, MostWait) {
		err := e.Shared.Store.Update(own, change)
		if err == nil || errors.Is(err, store.ErrNotFound) || own.Err() != nil {
			return err
		}
		if err := e.wait(own, run, wait, err); err != nil {
			return err
		}
	}
}

// wait lets a run wait for the store.
func (e *Engine) wait(ctx context.Context, run int64, wait time.Duration, why error) error {
	e.logOf(run).Error("sync run waits for the store", "error", why)
	e.lag(run)
	return e.Clock.Sleep(ctx, wait)
}

// ownTrouble reports whether a run has failed of nothing but the service's own store.
func ownTrouble(o executor.Outcome) bool {
	return o.Status == api.RunFailed && !o.Canceled && store.Passing(o.Cause)
}

// lag notes that a run waits for the store: no one has to wait for its end.
func (e *Engine) lag(run int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	working := e.working[run]
	if working == nil {
		return
	}
	select {
	case <-working.stuck:
	default:
		close(working.stuck)
	}
}

// show keeps how far a run is, for those who ask.
func (e *Engine) show(run int64, at executor.Progress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[run]; working != nil {
		working.at = &at
	}
}

// Shown is a run with the sums of this moment (spec 2.9): the stored sums of a
// working one are a little older.
func (e *Engine) Shown(run *store.SyncRun) api.SyncRun {
	out := syncRunOf(run)
	if out.Status != api.RunWorking {
		return e.Shared.Dialect.Run(out)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[run.ID]; working != nil && working.at != nil {
		at := *working.at
		out.CurrentStep = &at.Step
		if at.Counters != (executor.Counters{}) { // before that they are not known
			countersOf(&out, at.Counters)
		}
	}
	return e.Shared.Dialect.Run(out)
}

// syncRunOf shows a run (spec 2.9).
func syncRunOf(run *store.SyncRun) api.SyncRun {
	shown := run.Run
	shown.ID, shown.SyncID = run.ID, run.SyncID
	shown.CreatedAt, shown.UpdatedAt = api.Time{Time: run.CreatedAt}, api.Time{Time: run.UpdatedAt}
	return shown
}
