package member

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
func (m *Member) watch(ctx context.Context, runID int64) {
	for pause(ctx, m.pulse.RunKeep) == nil {
		m.leases.UnlessFrozen(func() { m.lookForCancel(ctx, runID) })
	}
}

// lookForCancel ends a run of this process that another one has marked, or deleted
// with its sync.
func (m *Member) lookForCancel(ctx context.Context, runID int64) {
	canceled := false
	err := m.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		if canceled, err = runs.Canceled(tx, runID); err == nil && !canceled {
			_, err = tx.AnySyncRun(runID)
		}
		return err
	})
	if canceled || errors.Is(err, store.ErrNotFound) {
		m.Engine.Cancel(runID)
	}
}

// Evict ends what is done for a sync anywhere, and drops its ledger. Whoever still
// works on it is told, and shut out as soon as its lease is over.
func (m *Member) Evict(ctx context.Context, syncID int64) error {
	free, err := m.oneOfSync(ctx, syncID)
	if err != nil {
		return err
	}
	defer free()
	t, err := m.leases.Hold(ctx, lease.OfSync(syncID), m.pulse.Run)
	for tries := 0; errors.Is(err, lease.ErrHeld); tries++ {
		if tries%20 == 0 { // a notice may be lost
			if err := m.Shared.Store.Tell(ctx, TopicHalt, strconv.FormatInt(syncID, 10)); err != nil {
				return err
			}
		}
		if err := pause(ctx, m.pulse.WorldTry); err != nil {
			return err
		}
		t, err = m.leases.Hold(ctx, lease.OfSync(syncID), m.pulse.Run)
	}
	if err != nil {
		return err
	}
	defer m.give(t)
	books := m.Ledger().Sync(syncID)
	books.Under(t.Fence)
	defer books.Under(0)
	return books.Forget()
}
