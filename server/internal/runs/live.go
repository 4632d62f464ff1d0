package runs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// Live starts the runs of live syncs: one when messages come and
// none is active; those that come during a run are read by the next one. A run
// that has left something behind is followed by another one after a while.
type Live struct {
	Planning

	mu     sync.Mutex
	tries  map[int64]int // runs in a row that left something, by the id of the sync
	timers map[int64]*clock.Timer
}

func NewLive(parts Planning) *Live {
	return &Live{Planning: parts, tries: map[int64]int{}, timers: map[int64]*clock.Timer{}}
}

// The waits before a live sync retries the rest: doubled from run to run.
const (
	liveFirst = time.Minute
	liveMost  = time.Hour
)

// isLive reports whether messages start the runs of a sync.
func isLive(y *store.Sync) bool {
	return !y.Config.Paused && y.TopicID != nil && y.Config.Mode != nil && y.Config.Mode.Type == api.ModeLive
}

// Posted queues the runs that new messages of a topic start, in the change that
// stores them: so no message is without its run. Launch them afterwards.
func (l *Live) Posted(tx *store.Tx, topicID int64) (runs []*store.SyncRun, err error) {
	readers, err := tx.SyncsOfTopic(topicID)
	if err != nil {
		return nil, err
	}
	for _, y := range readers {
		if !isLive(y) {
			continue
		}
		run, err := l.queue(tx, y, "New messages")
		if err != nil {
			return nil, err
		}
		if run != nil {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// queue makes a run unless one is active: that one, or the end of it, sees the
// new rows.
func (l *Live) queue(tx *store.Tx, y *store.Sync, why string) (*store.SyncRun, error) {
	_, err := tx.ActiveRun(y.ID)
	if err == nil {
		return nil, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	run := &store.SyncRun{WorkspaceID: y.WorkspaceID, SyncID: y.ID}
	return run, l.Runs.Queue(tx, run, false, api.TriggerReason{UITag: "Live", UIDetail: "Live: " + why})
}

// catchUp starts a run of a live sync that has messages to read: one that was
// created, changed, or let go on, also by a start of the process. The first run
// of a sync that skips existing messages takes place at once, so that it skips
// no message that comes later.
func (l *Live) catchUp(ctx context.Context, workspaceID, id int64) {
	var run *store.SyncRun
	err := l.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		y, err := store.Syncs.Read(tx, workspaceID, id)
		if err != nil || !isLive(y) {
			return err
		}
		last, err := tx.LastMessage(*y.TopicID)
		if err != nil {
			return err
		}
		mark, err := l.Position(y.ID)
		if err != nil {
			return err
		}
		booked, err := l.Booked(y.ID)
		if err != nil {
			return err
		}
		history := y.Config.HistoricalSyncOperation
		if last > mark || !booked && history != nil && *history == api.HistorySkip {
			run, err = l.queue(tx, y, "Messages that were not read yet")
		}
		return err
	})
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
			l.Log.Error("live run cannot be queued", "sync", id, "error", err)
		}
		return
	}
	if run != nil {
		l.Runs.Launch(run)
	}
}

// begin starts again with a sync that was created or changed.
func (l *Live) begin(y *store.Sync) {
	l.forget(y.ID)
	if isLive(y) {
		l.catchUp(l.Work.Ctx, y.WorkspaceID, y.ID)
	}
}

// Ended looks at a run that is over: are there newer messages, or was something
// left?
func (l *Live) Ended(ctx context.Context, y *store.Sync, o executor.Outcome, canceled bool) {
	if !isLive(y) || canceled {
		return
	}
	complete := o.Status == api.RunCompleted
	if complete && o.Failed == 0 {
		l.forget(y.ID)
	}
	newer := false
	err := l.Shared.Store.View(ctx, func(tx *store.Tx) error {
		last, err := tx.LastMessage(*y.TopicID)
		newer = complete && last > o.Position
		return err
	})
	switch {
	case err != nil:
		l.Log.Error("topic of a live sync cannot be read", "sync", y.ID, "error", err)
	case newer:
		l.catchUp(ctx, y.WorkspaceID, y.ID)
	case !complete || o.Failed > 0:
		l.later(y)
	}
}

// later tries again after a wait on the service's clock.
func (l *Live) later(y *store.Sync) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := min(liveFirst<<min(l.tries[y.ID], 10), liveMost)
	l.tries[y.ID]++
	defer l.timers[y.ID].Stop() // when there is another one, see Schedule.Look
	workspaceID, id := y.WorkspaceID, y.ID
	l.timers[id] = l.Clock.AfterFunc(wait, "live sync", func(ctx context.Context) {
		l.catchUp(ctx, workspaceID, id)
	})
}

// forgetAll drops what waits.
func (l *Live) forgetAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	stopAll(l.timers)
	clear(l.tries)
}

// forget drops what waits for a sync.
func (l *Live) forget(id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timers[id].Stop()
	delete(l.timers, id)
	delete(l.tries, id)
}
