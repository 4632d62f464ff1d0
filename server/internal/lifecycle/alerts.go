package lifecycle

import (
	"context"
	"slices"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// occasion is a moment in a run at which its alerts are looked at.
type occasion struct {
	sync   *store.Sync
	run    *api.SyncRun
	began  time.Time // when work on the run began; zero when it never did
	moment runMoment
}

type runMoment int

const (
	runStarted runMoment = iota
	runLate              // a limit of the runtime has passed
	runEnded
)

// alertsOf are the alerts of a sync. Only a sync without alerts, not even an
// empty list, has those of the deprecated fields (spec 2.6), identified by
// negative ids.
func alertsOf(config *api.SyncConfig) []api.Alert {
	if config.AlertAttributes != nil {
		return config.AlertAttributes
	}
	alerts := mapping.DefaultAlerts(config)
	for i := range alerts {
		id := int64(-1)
		if alerts[i].Type != api.AlertFailure {
			id = -2
		}
		alerts[i].ID = &id
	}
	return alerts
}

// alert holds an occasion against every alert of its sync, and sends notices
// of changes.
func (l *Lifecycle) alert(tx *store.Tx, o occasion) error {
	open, err := tx.OpenAlerts(o.sync.ID)
	if err != nil {
		return err
	}
	alerts := withPause(alertsOf(&o.sync.Config), o)
	for i := range alerts {
		if alerts[i].ID == nil {
			continue // never stored: no one could say what it was
		}
		found, err := l.find(tx, o, &alerts[i])
		if err != nil {
			return err
		}
		if err := l.follow(tx, o, &alerts[i], found, violationOf(open, &alerts[i])); err != nil {
			return err
		}
	}
	// A violation of an alert that was taken away ends without a word.
	for _, violation := range open {
		kept := func(a api.Alert) bool { return a.ID != nil && *a.ID == violation.AlertID && a.Type == violation.Type }
		if o.moment == runEnded && !slices.ContainsFunc(alerts, kept) {
			if err := store.OpenAlerts.Delete(tx, o.sync.ID, violation.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// pausedAlert is the id of the alert of a sync that has paused itself.
const pausedAlert = -3

// withPause adds the alert of a sync that paused itself because the columns of its
// source changed: that policy implies a notice, even without an alert for failed
// runs.
func withPause(alerts []api.Alert, o occasion) []api.Alert {
	failure := func(a api.Alert) bool { return a.Type == api.AlertFailure }
	if o.moment != runEnded || api.Value(o.run.ErrorCode) != api.ErrorSchemaChanged || slices.ContainsFunc(alerts, failure) {
		return alerts
	}
	return append(slices.Clone(alerts), api.Alert{ID: api.Ptr[int64](pausedAlert), Type: api.AlertFailure, SendFor: api.SendEveryTime})
}

// violationOf is the open violation of an alert; nil when nothing is.
func violationOf(open []*store.OpenAlert, alert *api.Alert) *store.OpenAlert {
	for _, violation := range open {
		if violation.AlertID == *alert.ID && violation.Type == alert.Type {
			return violation
		}
	}
	return nil
}

// follow opens, repeats or resolves a violation.
func (l *Lifecycle) follow(tx *store.Tx, o occasion, alert *api.Alert, found finding, open *store.OpenAlert) error {
	switch {
	case found.verdict == violated && open == nil:
		open = &store.OpenAlert{SyncID: o.sync.ID, AlertID: *alert.ID, Type: alert.Type, LastRunID: o.run.ID}
		if err := l.replace(tx, open); err != nil {
			return err
		}
		if err := l.notice(tx, o, alert, found, open.ID, true); err != nil || !found.passing {
			return err
		}
		return store.OpenAlerts.Delete(tx, o.sync.ID, open.ID)
	case found.verdict == violated && alert.SendFor == api.SendEveryTime && open.LastRunID != o.run.ID:
		open.LastRunID = o.run.ID
		if err := store.OpenAlerts.Save(tx, open); err != nil {
			return err
		}
		return l.notice(tx, o, alert, found, open.ID, true)
	case found.verdict == fulfilled && open != nil:
		if err := store.OpenAlerts.Delete(tx, o.sync.ID, open.ID); err != nil {
			return err
		}
		return l.notice(tx, o, alert, found, open.ID, false)
	}
	return nil
}

// replace stores a new violation in the place of one that the alert had while
// it was of another type.
func (l *Lifecycle) replace(tx *store.Tx, fresh *store.OpenAlert) error {
	open, err := tx.OpenAlerts(fresh.SyncID)
	if err != nil {
		return err
	}
	for _, old := range open {
		if old.AlertID == fresh.AlertID {
			if err := store.OpenAlerts.Delete(tx, old.SyncID, old.ID); err != nil {
				return err
			}
		}
	}
	return store.OpenAlerts.Create(tx, fresh)
}

// notice notifies webhooks of a change, and people by e-mail. Webhooks get
// every resolve; should_send_recovery is about the e-mail.
func (l *Lifecycle) notice(tx *store.Tx, o occasion, alert *api.Alert, found finding, instance int64, raised bool) error {
	body := lifecycleBody{
		WorkspaceID: o.sync.WorkspaceID, SyncID: o.sync.ID, SyncRunID: o.run.ID, Event: EventRaised,
		alertBody: &alertBody{
			InstanceID: instance, Type: alert.Type, Message: found.message, Details: found.details,
			FollowupURL: followupURL(l.Shared.BaseURL, o.run.ID),
		},
	}
	if !raised {
		body.Event = EventResolved
	}
	if err := l.tell(tx, body); err != nil {
		return err
	}
	if !raised && !alert.ShouldSendRecovery {
		return nil
	}
	return l.mailNotice(tx, o.sync, body)
}

// watchRuntime looks at a run again when a limit of its runtime passes, so that
// no one waits for the end of a run that hangs.
func (l *Lifecycle) watchRuntime(y *store.Sync, run *store.SyncRun, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// The timers before go on until there are others: a clock that is advanced meanwhile
	// would pass them by.
	before := l.watch[run.ID]
	delete(l.watch, run.ID)
	defer stopAll(before)
	alerts := alertsOf(&y.Config)
	for i := range alerts {
		limit, ok := runtimeLimit(&alerts[i], occasion{sync: y, run: &run.Run, began: began})
		if !ok {
			continue
		}
		timer := l.Clock.At(limit, "runtime alert", func(ctx context.Context) { l.late(ctx, run.WorkspaceID, run.ID) })
		l.watch[run.ID] = append(l.watch[run.ID], timer)
	}
}

// unwatch stops the timers of a run; the lock is held.
func (l *Lifecycle) unwatch(runID int64) {
	stopAll(l.watch[runID])
	delete(l.watch, runID)
}

func stopAll(timers []*clock.Timer) {
	for _, timer := range timers {
		timer.Stop()
	}
}

// late looks at a run that may take too long. The sync may have been changed
// since the run began.
func (l *Lifecycle) late(ctx context.Context, workspaceID, runID int64) {
	run := &store.SyncRun{WorkspaceID: workspaceID}
	run.ID = runID
	l.change(ctx, run, func(tx *store.Tx) error {
		kept, err := tx.SyncRun(workspaceID, runID)
		if err != nil || kept.Run.Status != api.RunWorking && kept.Run.Status != api.RunQueued {
			return err
		}
		y, err := store.Syncs.Read(tx, workspaceID, kept.SyncID)
		if err != nil {
			return err
		}
		return l.alert(tx, occasion{sync: y, run: &kept.Run, began: kept.StartedAt, moment: runLate})
	})
}
