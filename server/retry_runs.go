package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// retrySetting holds what is still to be tried again, so that a restart does not
// forget it.
func retrySetting(syncID int64) string { return fmt.Sprintf("%s%d", retrySettings, syncID) }

// retry is the next run of a sync whose last one failed.
type retry struct {
	Attempt int       `json:"attempt"` // from 1
	At      time.Time `json:"at"`
	Failed  int64     `json:"failed"` // the run that it repeats
	Code    string    `json:"code"`   // … and why that failed
	Full    bool      `json:"full"`   // it was to send everything
	Run     int64     `json:"run"`    // this try itself; 0 until it is queued
}

// retries makes the runs on the service's clock.
type retries struct {
	s *Server

	mu     sync.Mutex
	timers map[int64]*clock.Timer // by the id of the sync
}

func newRetries(s *Server) *retries { return &retries{s: s, timers: map[int64]*clock.Timer{}} }

// ended decides in the transaction that ends a run whether another one follows.
// It replaces what was planned before: every run starts from here.
func (p *retries) ended(tx *store.Tx, y *store.Sync, run *store.SyncRun, transient bool) (next *retry, err error) {
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
		return nil, tx.DeleteSetting(retrySetting(y.ID))
	}
	next = &retry{Attempt: attempt, At: tx.Now().Add(retryWaits[attempt-1]), Failed: run.ID, Full: run.Run.FullSync}
	if run.Run.ErrorCode != nil {
		next.Code = *run.Run.ErrorCode
	}
	// A schedule that comes first is a try as well.
	if due := nextRun(&y.Config, tx.Now()); !due.IsZero() && !due.After(next.At) {
		return nil, tx.DeleteSetting(retrySetting(y.ID))
	}
	return next, p.keep(tx, y.ID, next)
}

func (p *retries) planned(tx *store.Tx, syncID int64) (*retry, error) {
	text, err := tx.Setting(retrySetting(syncID))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &retry{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("read retry of sync %d: %w", syncID, err)
	}
	return r, nil
}

func (p *retries) keep(tx *store.Tx, syncID int64, r *retry) error {
	return tx.SetSetting(retrySetting(syncID), string(api.Raw(r)))
}

// put arms the timer of a sync; nil stops it.
func (p *retries) put(workspaceID, syncID int64, next *retry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if timer := p.timers[syncID]; timer != nil {
		timer.Stop()
		delete(p.timers, syncID)
	}
	if next == nil || next.Run != 0 || !p.s.leads() {
		return
	}
	// Never longer than it was when the run failed: the clock may have been set back
	// since, also while the process was away.
	wait := next.At.Sub(p.s.clock.Now())
	if i := next.Attempt - 1; i >= 0 && i < len(retryWaits) {
		wait = min(wait, retryWaits[i])
	}
	p.timers[syncID] = p.s.clock.AfterFunc(wait, "retry of sync", func(ctx context.Context) { p.due(ctx, workspaceID, syncID, next.Failed) })
}

// forgetAll stops all timers.
func (p *retries) forgetAll() {
	p.mu.Lock()
	ids := slices.Collect(maps.Keys(p.timers))
	p.mu.Unlock()
	for _, id := range ids {
		p.drop(id)
	}
}

// drop forgets the timer of a sync that is gone.
func (p *retries) drop(syncID int64) { p.put(0, syncID, nil) }

// resume arms the timer of a sync from what the store holds, as after a start.
func (p *retries) resume(tx *store.Tx, y *store.Sync) error {
	next, err := p.planned(tx, y.ID)
	if err == nil {
		p.put(y.WorkspaceID, y.ID, next)
	}
	return err
}

// resumeAll arms the timers of all syncs that are to be tried again, in the order of
// their ids. No other sync is read.
func (p *retries) resumeAll(ctx context.Context) error {
	return p.s.store.View(ctx, func(tx *store.Tx) error {
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
			some, err := tx.EverySync(id-1, 1)
			if err != nil {
				return err
			}
			if len(some) == 0 || some[0].ID != id {
				continue // it is gone
			}
			if err := p.resume(tx, some[0]); err != nil {
				return err
			}
		}
		return nil
	})
}

// due queues the run, unless something else happened meanwhile: another run of
// the sync replaces it, and a paused sync does not run by itself.
func (p *retries) due(ctx context.Context, workspaceID, syncID, failed int64) {
	if !p.s.leads() {
		return
	}
	run := &store.SyncRun{WorkspaceID: workspaceID, SyncID: syncID}
	err := p.s.store.Update(ctx, func(tx *store.Tx) error {
		y, err := tx.Sync(workspaceID, syncID)
		if err != nil {
			return err
		}
		next, err := p.planned(tx, syncID)
		if err != nil || next == nil || next.Failed != failed || next.Run != 0 {
			return err
		}
		if last, err := tx.LastRun(syncID); err != nil || last.ID != failed || y.Config.Paused {
			return errors.Join(err, tx.DeleteSetting(retrySetting(syncID)))
		}
		reason := api.TriggerReason{UITag: reasonRetry, UIDetail: fmt.Sprintf("Run %d failed (%s): try %d of %d", failed, next.Code, next.Attempt, len(retryWaits))}
		if err := p.s.queue(tx, run, next.Full, reason); err != nil {
			return err
		}
		next.Run = run.ID
		return p.keep(tx, syncID, next)
	})
	switch {
	case err == nil:
		p.s.launch(run)
	case !errors.Is(err, store.ErrNotFound):
		p.s.log.Error("run cannot be tried again", "sync", syncID, "error", err)
	}
}
