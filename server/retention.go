package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/server/clock"
	"github.com/destkit/destkit/server/ledger"
	"github.com/destkit/destkit/server/store"
)

// retention drops the records of runs whose time is over (facts B1: 410 after 14
// days), on the service's clock. The state of a sync stays: what was
// acknowledged is never sent again for that.
type retention struct {
	s *Server

	mu    sync.Mutex
	timer *clock.Timer // the next look; nil: nothing is kept
}

func newRetention(s *Server) *retention { return &retention{s: s} }

// ended makes sure that somebody looks when the time of this run is over. A leader
// looks after that time anyway.
func (k *retention) ended() {
	if k.s.leads() {
		k.lookAt(k.s.clock.Now().Add(recordsKept), false)
	}
}

// forget stops the timer: another process looks.
func (k *retention) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer.Stop()
	k.timer = nil
}

// lookAt sets the timer; one that is set already comes earlier, unless it is to
// be replaced.
func (k *retention) lookAt(at time.Time, replace bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		if !replace {
			return
		}
		k.timer.Stop()
	}
	k.timer = k.s.clock.At(at, "records of old runs", func(ctx context.Context) {
		k.mu.Lock()
		k.timer = nil
		k.mu.Unlock()
		if !k.s.leads() {
			return
		}
		if err := k.look(ctx); err != nil && k.s.background.ctx.Err() == nil {
			k.s.log.Error("records of old runs cannot be dropped", "error", err)
		}
	})
}

// look drops what is due, and comes back for the rest.
func (k *retention) look(ctx context.Context) error {
	const at = 500
	var next time.Time
	for after := int64(0); ; {
		var some []*store.Sync
		err := k.s.store.View(ctx, func(tx *store.Tx) (err error) {
			some, err = tx.EverySync(after, at)
			return err
		})
		if err != nil {
			return err
		}
		if len(some) == 0 {
			break
		}
		for _, y := range some {
			after = y.ID
			first, err := k.lookThrough(ctx, y)
			if err != nil {
				return err
			}
			if !first.IsZero() && (next.IsZero() || first.Before(next)) {
				next = first
			}
		}
	}
	if next.IsZero() && k.s.fleet != nil { // runs end in processes that tell nothing of it
		next = k.s.clock.Now().Add(recordsKept)
	}
	if !next.IsZero() {
		k.lookAt(next, true)
	}
	return nil
}

// lookThrough drops the old runs of one sync, and tells when the next one is
// due; zero: none is left.
func (k *retention) lookThrough(ctx context.Context, y *store.Sync) (next time.Time, err error) {
	books := k.s.ledger.Sync(y.ID)
	runs, err := books.Runs()
	for _, id := range runs {
		var run *store.SyncRun
		err := k.s.store.View(ctx, func(tx *store.Tx) (err error) {
			run, err = tx.SyncRun(y.WorkspaceID, id)
			return err
		})
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && run.Run.CompletedAt == nil:
			continue // it is under way, or of another world
		case err != nil:
			return next, err
		}
		if due := run.Run.CompletedAt.Add(recordsKept); k.s.clock.Now().Before(due) {
			if next.IsZero() || due.Before(next) {
				next = due
			}
			continue
		}
		// A log that is not in the state yet stays until the next run has put it
		// there.
		if err := books.Drop(id); err != nil && !errors.Is(err, ledger.ErrBusy) {
			return next, err
		}
	}
	return next, err
}
