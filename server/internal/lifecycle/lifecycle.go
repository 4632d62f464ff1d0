// Package lifecycle owns the notices of runs to people and webhooks: the events of
// a run, its alerts, the mailbox and the mail server, the calls of webhooks and
// their retries. What happens to a run is decided elsewhere.
package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/destination"
)

// The events of a run and of its alerts.
const (
	EventTriggered = "sync.triggered"
	EventStarted   = "sync.started"
	EventCompleted = "sync.completed"
	EventSuccess   = "sync.success"
	eventFailed    = "sync.failed"
	EventRaised    = "sync.alert.raised"
	EventResolved  = "sync.alert.resolved"
)

// Lifecycle notifies webhooks and people of the events of runs. It stores
// notices before sending; what it cannot store is logged: a run never fails
// because of its notices.
type Lifecycle struct {
	Parts
	webhooks *outbox

	mu    sync.Mutex
	watch map[int64][]*clock.Timer // of runs that may take too long, by run
}

// Parts are what the events of runs need of the service.
type Parts struct {
	Sending
	Gate    *destination.Gate // webhooks are called through it
	Mail    *Mailer
	Timeout time.Duration // of one call of a webhook
	// Called keeps one call of a webhook, which took so long in real time.
	Called func(organizationID int64, hook *store.Webhook, d *store.WebhookDelivery, took time.Duration)
}

func New(parts Parts) *Lifecycle {
	l := &Lifecycle{Parts: parts, watch: map[int64][]*clock.Timer{}}
	l.webhooks = &outbox{Sending: parts.Sending, name: "webhook", open: openDeliveries, send: l.deliver}
	return l
}

// Resume continues what a stopped process or a snapshot has left open. Runs that
// still work come back through started; runs whose process ended between their
// end and its notices are reported now.
func (l *Lifecycle) Resume(ctx context.Context) {
	type ending struct {
		sync *store.Sync
		run  *store.SyncRun
	}
	var untold []ending
	err := l.Shared.Store.View(ctx, func(tx *store.Tx) error {
		runs, err := tx.UntoldRuns()
		for _, run := range runs {
			y, err := store.Syncs.Read(tx, run.WorkspaceID, run.SyncID)
			if err != nil {
				return err
			}
			untold = append(untold, ending{y, run})
		}
		return err
	})
	if err != nil {
		l.Log.Error("runs whose end was not told cannot be read", "error", err)
	}
	for _, e := range untold {
		l.Ended(ctx, e.sync, e.run)
	}
	l.webhooks.look(ctx)
}

// Forget stops all timers, before another world takes the place of this one.
func (l *Lifecycle) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.watch {
		l.unwatch(id)
	}
	l.webhooks.forget()
}

// Queued reports that a run waits for a worker. A skipped run is not
// reported: nothing was triggered.
func (l *Lifecycle) Queued(ctx context.Context, run *store.SyncRun) {
	if run.Run.Status != api.RunQueued {
		return
	}
	asked := false
	err := l.Shared.Store.View(context.WithoutCancel(ctx), func(tx *store.Tx) (err error) {
		asked, err = asksFor(tx, run.WorkspaceID, EventTriggered)
		return err
	})
	if err == nil && !asked { // most of the time: no change that waits for its turn
		return
	}
	l.change(ctx, run, func(tx *store.Tx) error {
		return l.tell(tx, lifecycleBody{WorkspaceID: run.WorkspaceID, SyncID: run.SyncID, SyncRunID: run.ID, Event: EventTriggered})
	})
}

// Started reports that work on a run has started. A run that goes on
// after a restart is reported once.
func (l *Lifecycle) Started(ctx context.Context, y *store.Sync, run *store.SyncRun) {
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
		err = l.tell(tx, lifecycleBody{WorkspaceID: y.WorkspaceID, SyncID: y.ID, SyncRunID: run.ID, Event: EventStarted})
		if err != nil {
			return err
		}
		return l.alert(tx, occasion{sync: y, run: &run.Run, began: began, moment: runStarted})
	})
	if !began.IsZero() {
		l.watchRuntime(y, run, began)
	}
}

// Ended reports how a run has ended, and what that means for the alerts of its sync. run holds
// its final status and counters. Each end is reported once.
func (l *Lifecycle) Ended(ctx context.Context, y *store.Sync, run *store.SyncRun) {
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
		second := EventSuccess
		body.Event, body.Status = EventCompleted, "ok"
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

// change stores notices, and lets them be sent, even if the client has gone
// away in the meantime.
func (l *Lifecycle) change(ctx context.Context, run *store.SyncRun, change func(*store.Tx) error) {
	err := l.Shared.Store.Update(context.WithoutCancel(ctx), change)
	switch {
	case err == nil:
		l.webhooks.wakeForNews(context.WithoutCancel(ctx))
	case !errors.Is(err, store.ErrNotFound): // deleted meanwhile: nothing to report
		RunLog(l.Log, run).Error("what happens to a run cannot be told", "error", err)
	}
}

// RunLog is the log of a run that may work anywhere.
func RunLog(log *slog.Logger, run *store.SyncRun) *slog.Logger {
	return log.With("run", run.ID, "sync", run.SyncID, "workspace", run.WorkspaceID)
}

// Routes are those of the control API that show the notices to people and webhooks.
func (l *Lifecycle) Routes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("GET", "/mailbox", "?organization=&workspace=&to=&kind=&limit= lists the e-mails of the service, sent or not, newest first", l.controlMailbox),
		call.Route("DELETE", "/mailbox", "?organization= empties it", l.controlEmptyMailbox),
		call.Route("GET", "/webhook_deliveries", "?organization=&workspace=&webhook=&sync=&sync_run=&event=&status=&limit= lists the calls of webhooks, newest first: status is open, delivered or failed", l.controlDeliveries),
	}
}
