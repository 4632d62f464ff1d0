package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/clock"
	"github.com/destkit/destkit/server/mapping"
	"github.com/destkit/destkit/server/store"
)

// schedule starts runs when they fall due on the service's clock (facts B4:
// UTC; continuous is every minute), and after another sync has completed.
type schedule struct {
	s *Server

	mu     sync.Mutex
	timers map[int64]*clock.Timer // by the id of the sync
}

func newSchedule(s *Server) *schedule { return &schedule{s: s, timers: map[int64]*clock.Timer{}} }

// all schedules every sync of the store, as at a start.
func (p *schedule) all(ctx context.Context) error { return p.some(ctx, p.put) }

// since is all, with what fell due from that moment on: nobody may have been there
// to start it.
func (p *schedule) since(ctx context.Context, from time.Time) error {
	return p.some(ctx, func(y *store.Sync) {
		p.s.live.begin(y)
		if from.Before(y.UpdatedAt) { // it may not have had the schedule before
			p.arm(y, y.UpdatedAt)
		} else {
			p.arm(y, from)
		}
	})
}

// changed schedules a sync that may have been changed in another process. A timer
// that is right stays, and so does one that is due: it starts its run or finds that
// there is none to start.
func (p *schedule) changed(y *store.Sync) {
	p.s.live.begin(y)
	p.check(y)
}

// changedAll is changed for every sync, about none of which anything is known.
func (p *schedule) changedAll(ctx context.Context) error {
	return p.some(ctx, func(y *store.Sync) {
		if !p.s.live.waits(y.ID) {
			p.s.live.begin(y)
		}
		p.check(y)
	})
}

func (p *schedule) check(y *store.Sync) {
	now := p.s.clock.Now()
	p.mu.Lock()
	timer := p.timers[y.ID]
	p.mu.Unlock()
	if timer == nil || timer.When().After(now) && !timer.When().Equal(nextRun(&y.Config, now)) {
		p.arm(y, now)
	}
}

// again schedules by a clock that was set. What is overdue by it runs as it is.
func (p *schedule) again(ctx context.Context) error {
	now := p.s.clock.Now()
	return p.some(ctx, func(y *store.Sync) {
		p.mu.Lock()
		timer := p.timers[y.ID]
		p.mu.Unlock()
		if timer != nil && timer.When().After(now) {
			p.put(y)
		}
	})
}

// some calls put for every sync.
func (p *schedule) some(ctx context.Context, put func(*store.Sync)) error {
	const at = 500
	for after := int64(0); ; {
		var some []*store.Sync
		err := p.s.store.View(ctx, func(tx *store.Tx) (err error) {
			some, err = tx.EverySync(after, at)
			for _, y := range some {
				err = errors.Join(err, p.s.retries.resume(tx, y))
			}
			return err
		})
		if err != nil || len(some) == 0 {
			return err
		}
		for _, y := range some {
			put(y)
			after = y.ID
		}
	}
}

// put schedules the next run of a sync that was created or changed.
func (p *schedule) put(y *store.Sync) {
	if !p.s.leads() {
		return // the leader hears of it
	}
	p.s.live.begin(y)
	p.arm(y, p.s.clock.Now())
}

// arm sets the timer of a sync to the first moment of its schedule after now.
func (p *schedule) arm(y *store.Sync, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if timer := p.timers[y.ID]; timer != nil {
		timer.Stop()
		delete(p.timers, y.ID)
	}
	next := nextRun(&y.Config, now)
	if next.IsZero() {
		return
	}
	workspaceID, id := y.WorkspaceID, y.ID
	p.timers[y.ID] = p.s.clock.At(next, "schedule of sync", func(ctx context.Context) { p.due(ctx, workspaceID, id, next) })
}

// drop stops the timer of a sync that is gone.
func (p *schedule) drop(id int64) {
	p.s.live.forget(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if timer := p.timers[id]; timer != nil {
		timer.Stop()
		delete(p.timers, id)
	}
}

// forget stops all timers, those of live syncs and retries too: another process has
// them now.
func (p *schedule) forget() {
	p.mu.Lock()
	ids := slices.Collect(maps.Keys(p.timers))
	p.mu.Unlock()
	for _, id := range ids {
		p.drop(id)
	}
	p.s.live.forgetAll()
	p.s.retries.forgetAll()
}

// firedSetting holds the last moment of the schedule of a sync that has started a
// run, where several processes might each start one.
func firedSetting(syncID int64) string { return fmt.Sprintf("schedule of sync %d", syncID) }

// first tells whether no process has started the run of this moment, or of a later
// one, and notes it.
func (p *schedule) first(tx *store.Tx, id int64, at time.Time) (bool, error) {
	if p.s.fleet == nil {
		return true, nil
	}
	text, err := tx.Setting(firedSetting(id))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if last, err := time.Parse(time.RFC3339, text); err == nil && !at.After(last) {
		return false, nil
	}
	return true, tx.SetSetting(firedSetting(id), at.UTC().Format(time.RFC3339))
}

// forgetFired lets schedules start again what they have started: the clock may have
// been set back.
func (p *schedule) forgetFired(ctx context.Context) error {
	if p.s.fleet == nil {
		return nil
	}
	var ids []int64
	if err := p.some(ctx, func(y *store.Sync) { ids = append(ids, y.ID) }); err != nil {
		return err
	}
	return p.s.store.Update(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			if err := tx.DeleteSetting(firedSetting(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

// due starts the run of a sync and schedules the one after.
func (p *schedule) due(ctx context.Context, workspaceID, id int64, at time.Time) {
	if !p.s.leads() {
		return
	}
	var y *store.Sync
	run := &store.SyncRun{WorkspaceID: workspaceID, SyncID: id}
	err := p.s.store.Update(ctx, func(tx *store.Tx) (err error) {
		if y, err = tx.Sync(workspaceID, id); err != nil {
			return err
		}
		if nextRun(&y.Config, at.Add(-time.Second)) != at {
			return nil // changed meanwhile
		}
		if first, err := p.first(tx, id, at); err != nil || !first {
			return err
		}
		return p.s.queue(tx, run, false, dueReason(&y.Config))
	})
	if errors.Is(err, store.ErrNotFound) {
		return
	}
	if err != nil {
		p.s.log.Error("scheduled run cannot be queued", "sync", id, "error", err)
		return
	}
	p.s.launch(run)
	p.put(y)
}

// after queues runs of the syncs that run when this one has completed, in the change
// that ends its run: so none is lost with the process. Launch them afterwards.
func (p *schedule) after(tx *store.Tx, parent *store.Sync) (queued []*store.SyncRun, err error) {
	all, _, err := tx.Syncs(parent.WorkspaceID, store.Page{Ascending: true})
	if err != nil {
		return nil, err
	}
	for _, y := range all {
		if y.Config.Paused || sequenceParent(&y.Config) != parent.ID {
			continue
		}
		run := &store.SyncRun{WorkspaceID: y.WorkspaceID, SyncID: y.ID}
		if err := p.s.queue(tx, run, false, api.TriggerReason{UITag: "Sequence", UIDetail: "Another sync has completed"}); err != nil {
			return nil, err
		}
		queued = append(queued, run)
	}
	return queued, nil
}

// dueReason is why a run has fallen due.
func dueReason(config *api.SyncConfig) api.TriggerReason {
	if config.Mode.Type == api.ModeLive {
		return api.TriggerReason{UITag: "Live", UIDetail: "Live: a streaming database is read every minute"}
	}
	return api.TriggerReason{UITag: "Scheduled", UIDetail: "Scheduled: " + config.Mode.Triggers.Schedule.Frequency}
}

// nextRun is the first moment after now at which a schedule falls due; zero
// when none does.
func nextRun(config *api.SyncConfig, now time.Time) time.Time {
	if config.Paused || config.Mode == nil {
		return time.Time{}
	}
	if config.Mode.Type == api.ModeLive {
		if config.SourceAttributes.Object.Type == api.ObjectTopic {
			return time.Time{} // messages start its runs
		}
		return now.UTC().Truncate(time.Minute).Add(time.Minute)
	}
	if config.Mode.Triggers == nil || config.Mode.Triggers.Schedule == nil {
		return time.Time{}
	}
	at := config.Mode.Triggers.Schedule
	number := func(p *int64) int {
		if p == nil {
			return 0
		}
		return int(*p)
	}
	now = now.UTC()
	day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	// Facts B4: hour is 0 to 24; at 24 a day ends and the next one begins.
	ofDay := time.Duration(number(at.Hour))*time.Hour + time.Duration(number(at.Minute))*time.Minute
	every := func(start time.Time, step time.Duration) time.Time {
		for !start.After(now) {
			start = start.Add(step)
		}
		return start
	}
	switch at.Frequency {
	case api.FrequencyContinuous:
		return now.Truncate(time.Minute).Add(time.Minute)
	case api.FrequencyQuarterHourly:
		return now.Truncate(15 * time.Minute).Add(15 * time.Minute)
	case api.FrequencyHourly:
		return every(now.Truncate(time.Hour).Add(time.Duration(number(at.Minute))*time.Minute), time.Hour)
	case api.FrequencyDaily:
		return every(day.Add(ofDay).AddDate(0, 0, -1), 24*time.Hour)
	case api.FrequencyWeekly:
		// From the day before: hour 24 of it is still to come.
		for i := range 9 {
			on := day.AddDate(0, 0, i-1)
			if at.Day != nil && on.Weekday().String() == *at.Day && on.Add(ofDay).After(now) {
				return on.Add(ofDay)
			}
		}
	case api.FrequencyExpression:
		if at.CronExpression != nil {
			if cron, err := mapping.ParseCron(*at.CronExpression); err == nil {
				return cron.Next(now)
			}
		}
	}
	return time.Time{}
}
