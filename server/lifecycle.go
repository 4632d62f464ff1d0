package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// The events of a run and of its alerts.
const (
	eventTriggered = "sync.triggered"
	eventStarted   = "sync.started"
	eventCompleted = "sync.completed"
	eventSuccess   = "sync.success"
	eventFailed    = "sync.failed"
	eventRaised    = "sync.alert.raised"
	eventResolved  = "sync.alert.resolved"
)

// lifecycle tells webhooks and people what happens to runs. What it tells is
// stored before it is sent; what it cannot store is logged: a run never fails
// because nobody could be told.
type lifecycle struct {
	s        *Server
	webhooks *outbox

	mu    sync.Mutex
	watch map[int64][]*clock.Timer // of runs that may take too long, by run
}

func newLifecycle(s *Server) *lifecycle {
	l := &lifecycle{s: s, watch: map[int64][]*clock.Timer{}}
	l.webhooks = &outbox{s: s, name: "webhook", open: openDeliveries, send: l.deliver}
	return l
}

// resume goes on with what a stopped process, or the world of a snapshot, has
// left open. Runs that still work come back through started; those whose process
// ended between their end and the telling of it are told now.
func (l *lifecycle) resume(ctx context.Context) {
	type ending struct {
		sync *store.Sync
		run  *store.SyncRun
	}
	var untold []ending
	err := l.s.store.View(ctx, func(tx *store.Tx) error {
		runs, err := tx.UntoldRuns()
		for _, run := range runs {
			y, err := tx.Sync(run.WorkspaceID, run.SyncID)
			if err != nil {
				return err
			}
			untold = append(untold, ending{y, run})
		}
		return err
	})
	if err != nil {
		l.s.log.Error("runs whose end was not told cannot be read", "error", err)
	}
	for _, e := range untold {
		l.ended(ctx, e.sync, e.run)
	}
	l.webhooks.look(ctx)
}

// forget stops all timers, before another world takes the place of this one.
func (l *lifecycle) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.watch {
		l.unwatch(id)
	}
	l.webhooks.forget()
}

// unwatched forgets the timers of a run that this process works on no more. Whoever
// goes on with it watches it.
func (l *lifecycle) unwatched(runID int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unwatch(runID)
}

// queued tells that a run waits to be worked on. A skipped run is told to
// nobody: nothing was triggered.
func (l *lifecycle) queued(ctx context.Context, run *store.SyncRun) {
	if run.Run.Status != api.RunQueued {
		return
	}
	asked := false
	err := l.s.store.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		asked, err = asksFor(tx, run.WorkspaceID, eventTriggered)
		return err
	})
	if err == nil && !asked { // most of the time: no change that waits for its turn
		return
	}
	l.change(ctx, run, func(tx *store.Tx) error {
		return l.tell(tx, lifecycleBody{WorkspaceID: run.WorkspaceID, SyncID: run.SyncID, SyncRunID: run.ID, Event: eventTriggered})
	})
}

// started tells that work on a run has begun. A run that goes on after a
// restart is told once.
func (l *lifecycle) started(ctx context.Context, y *store.Sync, run *store.SyncRun) {
	var began time.Time
	l.change(ctx, run, func(tx *store.Tx) error {
		first, err := tx.SetRunStarted(run.ID)
		if err != nil {
			return err
		}
		kept, err := tx.SyncRun(run.WorkspaceID, run.ID)
		if err != nil {
			return err
		}
		if began = kept.StartedAt; !first {
			return nil
		}
		err = l.tell(tx, lifecycleBody{WorkspaceID: y.WorkspaceID, SyncID: y.ID, SyncRunID: run.ID, Event: eventStarted})
		if err != nil {
			return err
		}
		return l.alert(tx, occasion{sync: y, run: &run.Run, began: began, moment: runStarted})
	})
	if !began.IsZero() {
		l.watchRuntime(y, run, began)
	}
}

// ended tells how a run has ended, and what that means for the alerts of its
// sync. run holds its final status and counters. Each end is told once.
func (l *lifecycle) ended(ctx context.Context, y *store.Sync, run *store.SyncRun) {
	l.mu.Lock()
	l.unwatch(run.ID)
	l.mu.Unlock()
	l.change(ctx, run, func(tx *store.Tx) error {
		first, err := tx.SetRunTold(run.ID)
		if err != nil || !first {
			return err
		}
		kept, err := tx.SyncRun(run.WorkspaceID, run.ID)
		if err != nil {
			return err
		}
		body := lifecycleBody{WorkspaceID: y.WorkspaceID, SyncID: y.ID, SyncRunID: run.ID}
		second := eventSuccess
		body.Event, body.Status = eventCompleted, "ok"
		if run.Run.Status != api.RunCompleted {
			body.Status, second = "emergency", eventFailed
		}
		if err := l.tell(tx, body); err != nil {
			return err
		}
		body.Event, body.Status = second, ""
		if err := l.tell(tx, body); err != nil {
			return err
		}
		if err := l.alert(tx, occasion{sync: y, run: &run.Run, began: kept.StartedAt, moment: runEnded}); err != nil {
			return err
		}
		return tx.PruneWebhookDeliveries(y.WorkspaceID, tx.Now().Add(-keptDeliveries))
	})
}

// change stores what is to be told, and lets it be sent. A client that has gone
// away in the meantime changes nothing.
func (l *lifecycle) change(ctx context.Context, run *store.SyncRun, change func(*store.Tx) error) {
	err := l.s.store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return l.webhooks.tell(tx)
	})
	switch {
	case err == nil:
		l.webhooks.wakeForNews(context.WithoutCancel(ctx))
	case !errors.Is(err, store.ErrNotFound): // deleted meanwhile: nobody to tell of
		l.s.runLog(run).Error("what happens to a run cannot be told", "error", err)
	}
}
