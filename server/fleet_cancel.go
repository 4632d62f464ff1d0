package server

import (
	"context"
	"errors"
	"strconv"

	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
)

// watch looks now and then whether a run of this process is to end: a notice may be
// lost. The keeping of its lease must not wait for that.
func (f *fleet) watch(ctx context.Context, runID int64) {
	for pause(ctx, f.pulse.runKeep) == nil {
		f.leases.UnlessFrozen(func() { f.lookForCancel(ctx, runID) })
	}
}

// lookForCancel ends a run of this process that another one has marked, or deleted
// with its sync.
func (f *fleet) lookForCancel(ctx context.Context, runID int64) {
	canceled := false
	err := f.s.store.View(ctx, func(tx *store.Tx) (err error) {
		if canceled, err = runs.Canceled(tx, runID); err == nil && !canceled {
			_, err = tx.AnySyncRun(runID)
		}
		return err
	})
	if canceled || errors.Is(err, store.ErrNotFound) {
		f.s.engine.Cancel(runID)
	}
}

// evict ends what is done for a sync anywhere, and drops its books. Whoever still
// works on it is told, and shut out as soon as its lease is over.
func (f *fleet) evict(ctx context.Context, syncID int64) error {
	free, err := f.oneOfSync(ctx, syncID)
	if err != nil {
		return err
	}
	defer free()
	t, err := f.leases.Hold(ctx, lease.OfSync(syncID), f.pulse.run)
	for tries := 0; errors.Is(err, lease.ErrHeld); tries++ {
		if tries%20 == 0 { // a notice may be lost
			if err := f.s.store.Tell(ctx, topicHalt, strconv.FormatInt(syncID, 10)); err != nil {
				return err
			}
		}
		if err := pause(ctx, f.pulse.worldTry); err != nil {
			return err
		}
		t, err = f.leases.Hold(ctx, lease.OfSync(syncID), f.pulse.run)
	}
	if err != nil {
		return err
	}
	defer f.give(t)
	books := f.s.ledger.Sync(syncID)
	books.Under(t.Fence)
	defer books.Under(0)
	return books.Forget()
}
