package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/store"
)

// cancelSetting is there while a run is to end that works in another process.
func cancelSetting(runID int64) string { return fmt.Sprintf("cancel of run %d", runID) }

// cancel marks a run that works, here or elsewhere. The mark stays until the run is
// over: a notice may be lost, and so may the process.
func (f *fleet) cancel(tx *store.Tx, runID int64) error {
	if f == nil {
		return nil
	}
	if err := tx.SetSetting(cancelSetting(runID), tx.Now().Format(time.RFC3339)); err != nil {
		return err
	}
	return tx.Notify(topicCancel, strconv.FormatInt(runID, 10))
}

// canceled reports whether a run bears the mark.
func (f *fleet) canceled(tx *store.Tx, runID int64) (bool, error) {
	if f == nil {
		return false, nil
	}
	_, err := tx.Setting(cancelSetting(runID))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// over drops what was kept about a run while it was not over.
func (f *fleet) over(tx *store.Tx, run *store.SyncRun) error {
	if f == nil {
		return nil
	}
	return errors.Join(tx.DeleteSetting(cancelSetting(run.ID)), tx.DeleteSetting(turnSetting(run.ID)))
}

// watch looks now and then whether a run of this process is to end: a notice may be
// lost. The keeping of its lease must not wait for that.
func (f *fleet) watch(ctx context.Context, runID int64) {
	for pause(ctx, f.pulse.runKeep) == nil {
		f.frozen.unless(func() { f.lookForCancel(ctx, runID) })
	}
}

// lookForCancel ends a run of this process that another one has marked, or deleted
// with its sync.
func (f *fleet) lookForCancel(ctx context.Context, runID int64) {
	canceled := false
	err := f.s.store.View(ctx, func(tx *store.Tx) (err error) {
		if canceled, err = f.canceled(tx, runID); err == nil && !canceled {
			_, err = tx.AnySyncRun(runID)
		}
		return err
	})
	if canceled || errors.Is(err, store.ErrNotFound) {
		f.s.engine.cancel(runID)
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
	t, err := f.take(ctx, lease.OfSync(syncID), f.pulse.run)
	for tries := 0; errors.Is(err, lease.ErrHeld); tries++ {
		if tries%20 == 0 { // a notice may be lost
			if err := f.s.store.Tell(ctx, topicHalt, strconv.FormatInt(syncID, 10)); err != nil {
				return err
			}
		}
		if err := pause(ctx, f.pulse.worldTry); err != nil {
			return err
		}
		t, err = f.take(ctx, lease.OfSync(syncID), f.pulse.run)
	}
	if err != nil {
		return err
	}
	defer f.give(t)
	books := f.s.ledger.Sync(syncID)
	books.Under(t.lease.Fence)
	defer books.Under(0)
	return books.Forget()
}
