package server

import (
	"context"
	"errors"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// record makes a change of the store that must not be lost: a store that is
// locked or full may be free a little later, and a run that stands as working
// for ever would let all later ones be skipped. It gives up when the run goes on
// after a restart or in another process, or its sync is gone.
func (e *engine) record(ctx context.Context, run int64, change func(*store.Tx) error) error {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(e.s.background.Ctx, cancel)()
	defer context.AfterFunc(ctx, func() {
		if stopped(ctx) {
			cancel()
		}
	})()
	change = e.guarded(own, run, change)
	for wait := runs.FirstWait; ; wait = min(2*wait, runs.MostWait) {
		err := e.s.store.Update(own, change)
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, lease.ErrLost) || own.Err() != nil {
			return err
		}
		if err := e.wait(own, run, wait, err); err != nil {
			return err
		}
	}
}

// wait lets a run wait for the store.
func (e *engine) wait(ctx context.Context, run int64, wait time.Duration, why error) error {
	e.logOf(run).Error("sync run waits for the store", "error", why)
	e.lag(run)
	return e.s.clock.Sleep(ctx, wait)
}

// ownTrouble tells that a run has failed of nothing but the service's own store, or of
// something that may pass while that was away: a restart of the database ends the
// connections of a source in it, too. before is store.Outages at the beginning.
func (e *engine) ownTrouble(o executor.Outcome, before int64) bool {
	if o.Status != api.RunFailed || o.Canceled {
		return false
	}
	return runs.Passing(o.Cause) || o.Transient && e.s.store.Outages() != before
}

// lag says that a run waits for the store: nobody has to wait for its end.
func (e *engine) lag(run int64) {
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
func (e *engine) show(run int64, at executor.Progress) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if working := e.working[run]; working != nil {
		working.at = &at
	}
}

// shown is a run with the sums of this moment (spec 2.9): what is stored of one
// that works is a little older.
func (e *engine) shown(run *store.SyncRun) api.SyncRun {
	out := syncRunOf(run)
	if out.Status != api.RunWorking {
		return e.s.dialect.Run(out)
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
	return e.s.dialect.Run(out)
}
