package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
)

// retryWaits are how long after a run that failed for a reason that may pass
// another one is made, and how many (spec 7.2.5: whole syncs that were
// incomplete). After the last one the sync waits for its schedule or a trigger.
var retryWaits = [...]time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute}

// reasonRetry is the ui_tag of such a run.
const reasonRetry = "Retry"

// retrySettings begins the names of what retrySetting names.
const retrySettings = "retry of sync "

// RetrySetting holds the pending retries, so that a restart does not forget it.
func RetrySetting(syncID int64) string { return fmt.Sprintf("%s%d", retrySettings, syncID) }

// Retry is the next run of a sync whose last one failed.
type Retry struct {
	Attempt int       `json:"attempt"` // from 1
	At      time.Time `json:"at"`
	Failed  int64     `json:"failed"` // the run that it repeats
	Code    string    `json:"code"`   // … and why that failed
	Full    bool      `json:"full"`   // it was to send everything
	Run     int64     `json:"run"`    // this try itself; 0 until it is queued
}

// Retries makes the runs on the service's clock.
type Retries struct {
	Planning

	mu     sync.Mutex
	timers map[int64]*clock.Timer // by the id of the sync
}

func NewRetries(parts Planning) *Retries {
	return &Retries{Planning: parts, timers: map[int64]*clock.Timer{}}
}

// Ended decides in the transaction that ends a run whether another one follows.
// It replaces the earlier plan: every run starts from here.
func (p *Retries) Ended(tx *store.Tx, y *store.Sync, run *store.SyncRun, transient bool) (next *Retry, err error) {
	before, err := p.planned(tx, y.ID)
	if err != nil {
		return nil, err
	}
	attempt := 1
	if before != nil && before.Run == run.ID {
		attempt = before.Attempt + 1
	}
	// A live sync comes back by itself, for as long as something is left.
	if !transient || run.Run.Canceled || isLive(y) || attempt > len(retryWaits) {
		return nil, tx.DeleteSetting(RetrySetting(y.ID))
	}
	next = &Retry{Attempt: attempt, At: tx.Now().Add(retryWaits[attempt-1]), Failed: run.ID, Full: run.Run.FullSync}
	if run.Run.ErrorCode != nil {
		next.Code = *run.Run.ErrorCode
	}
	// A schedule that comes first is a try as well.
	if due := NextRun(&y.Config, tx.Now()); !due.IsZero() && !due.After(next.At) {
		return nil, tx.DeleteSetting(RetrySetting(y.ID))
	}
	return next, p.keep(tx, y.ID, next)
}

func (p *Retries) planned(tx *store.Tx, syncID int64) (*Retry, error) {
	text, err := setting(tx, RetrySetting(syncID))
	if err != nil || text == "" {
		return nil, err
	}
	r := &Retry{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("read retry of sync %d: %w", syncID, err)
	}
	return r, nil
}

func (p *Retries) keep(tx *store.Tx, syncID int64, r *Retry) error {
	return tx.SetSetting(RetrySetting(syncID), string(api.Raw(r)))
}

// Put arms the timer of a sync; nil stops it.
func (p *Retries) Put(workspaceID, syncID int64, next *Retry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// It goes on until there is another one, see Schedule.Look.
	defer p.timers[syncID].Stop()
	delete(p.timers, syncID)
	if next == nil || next.Run != 0 {
		return
	}
	// Never longer than it was when the run failed: the clock may have been set back
	// since, also while the process was away.
	wait := next.At.Sub(p.Clock.Now())
	if i := next.Attempt - 1; i >= 0 && i < len(retryWaits) {
		wait = min(wait, retryWaits[i])
	}
	p.timers[syncID] = p.Clock.AfterFunc(wait, "retry of sync", func(ctx context.Context) { p.due(ctx, workspaceID, syncID, next.Failed) })
}

// forgetAll stops all timers.
func (p *Retries) forgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	stopAll(p.timers)
}

// stopAll stops timers and forgets them.
func stopAll(timers map[int64]*clock.Timer) {
	for _, timer := range timers {
		timer.Stop()
	}
	clear(timers)
}

// Drop forgets the timer of a sync that is gone.
func (p *Retries) Drop(syncID int64) { p.Put(0, syncID, nil) }

// resume arms the timer of a sync from what the store holds, as after a start.
func (p *Retries) resume(tx *store.Tx, y *store.Sync) error {
	next, err := p.planned(tx, y.ID)
	if err == nil {
		p.Put(y.WorkspaceID, y.ID, next)
	}
	return err
}

// resumeAll arms the timers of all syncs that are to be tried again, in the order of
// their ids. No other sync is read.
func (p *Retries) resumeAll(ctx context.Context) error {
	return p.Shared.Store.View(ctx, func(tx *store.Tx) error {
		waiting, err := tx.Settings(retrySettings)
		if err != nil {
			return err
		}
		ids := make([]int64, 0, len(waiting))
		for name := range waiting {
			if id, err := strconv.ParseInt(strings.TrimPrefix(name, retrySettings), 10, 64); err == nil {
				ids = append(ids, id)
			}
		}
		slices.Sort(ids)
		for _, id := range ids {
			y, err := store.Syncs.Any(tx, id)
			if errors.Is(err, store.ErrNotFound) {
				continue // it is gone
			}
			if err != nil {
				return err
			}
			if err := p.resume(tx, y); err != nil {
				return err
			}
		}
		return nil
	})
}

// due queues the run, unless something else happened meanwhile: another run of
// the sync replaces it, and a paused sync does not run by itself.
func (p *Retries) due(ctx context.Context, workspaceID, syncID, failed int64) {
	run := &store.SyncRun{WorkspaceID: workspaceID, SyncID: syncID}
	err := p.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		y, err := store.Syncs.Read(tx, workspaceID, syncID)
		if err != nil {
			return err
		}
		next, err := p.planned(tx, syncID)
		if err != nil || next == nil || next.Failed != failed || next.Run != 0 {
			return err
		}
		if last, err := tx.LastRun(syncID); err != nil || last.ID != failed || y.Config.Paused {
			return errors.Join(err, tx.DeleteSetting(RetrySetting(syncID)))
		}
		reason := api.TriggerReason{UITag: reasonRetry, UIDetail: fmt.Sprintf("Run %d failed (%s): try %d of %d", failed, next.Code, next.Attempt, len(retryWaits))}
		if err := p.Runs.Queue(tx, run, next.Full, reason); err != nil {
			return err
		}
		next.Run = run.ID
		return p.keep(tx, syncID, next)
	})
	switch {
	case err == nil:
		p.Runs.Launch(run)
	case !errors.Is(err, store.ErrNotFound):
		p.Log.Error("run cannot be tried again", "sync", syncID, "error", err)
	}
}
