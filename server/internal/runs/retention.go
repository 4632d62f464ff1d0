package runs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Retention drops the records of runs whose time is over (410 after 14
// days), on the service's clock. The state of a sync stays:
// acknowledged records are not sent again because of that.
type Retention struct {
	Planning

	mu    sync.Mutex
	timer *clock.Timer // the next look; nil: nothing is kept
}

// Ended makes sure that there is a look when the time of this run is over.
func (k *Retention) Ended() { k.lookAt(k.Clock.Now().Add(Kept), false) }

// lookAt sets the timer; one that is set already comes earlier, unless it is to
// be replaced.
func (k *Retention) lookAt(at time.Time, replace bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.timer != nil {
		if !replace {
			return
		}
		defer k.timer.Stop() // when there is another one, see Schedule.Look
	}
	k.timer = k.Clock.At(at, "records of old runs", func(ctx context.Context) {
		k.mu.Lock()
		k.timer = nil
		k.mu.Unlock()
		if err := k.Look(ctx); err != nil && k.Work.Ctx.Err() == nil {
			k.Log.Error("records of old runs cannot be dropped", "error", err)
		}
	})
}

// dropAtOnce is how many runs are looked at together.
const dropAtOnce = 500

// Look drops the due records, in the order of time, and comes back for the rest. No
// run is read whose time is still to come, but the first.
func (k *Retention) Look(ctx context.Context) error {
	var next time.Time
	for after := (store.KeptRun{}); next.IsZero(); {
		some, err := store.Read(ctx, k.Shared.Store, func(tx *store.Tx) ([]store.KeptRun, error) { return tx.KeptRuns(after, dropAtOnce) })
		if err != nil {
			return err
		}
		if len(some) == 0 {
			break
		}
		after = some[len(some)-1]
		if next, err = k.dropDue(ctx, some); err != nil {
			return err
		}
	}
	if !next.IsZero() {
		k.lookAt(next, true)
	}
	return nil
}

// dropDue drops the records of those runs whose time is over, notes that they are gone,
// and returns when the first of the others is due; zero: there is no other.
func (k *Retention) dropDue(ctx context.Context, some []store.KeptRun) (next time.Time, err error) {
	now := k.Clock.Now()
	var gone []int64
	for _, run := range some {
		if due := run.CompletedAt.Add(Kept); now.Before(due) {
			next = due
			break
		}
		err := k.Ledger().Sync(run.SyncID).Drop(run.ID)
		switch {
		case err == nil:
			gone = append(gone, run.ID)
		case errors.Is(err, ledger.ErrBusy):
			// A log that is not in the state yet stays until the next run has put it
			// there.
		default:
			return next, err
		}
	}
	if len(gone) == 0 {
		return next, nil
	}
	return next, k.Shared.Store.Update(ctx, func(tx *store.Tx) error {
		for _, id := range gone {
			if err := tx.SetRecordsGone(id); err != nil {
				return err
			}
		}
		return nil
	})
}
