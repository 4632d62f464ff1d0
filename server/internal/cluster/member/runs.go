package member

import (
	"context"
	"errors"
	"sync"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/cluster/jobs"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/store"
)

// occupied is a sync on which this process works.
type occupied struct {
	m     *Member
	t     *lease.Held
	stop  context.CancelFunc // of the keeping
	books interface{ Under(fence int64) }
	once  sync.Once
}

// Holds fails with lease.ErrLost in a change of the store when another process has it.
func (o *occupied) Holds(ctx context.Context, tx *store.Tx) error {
	return lease.Holds(ctx, tx.PostgreSQL(), o.t.Lease)
}

// Sure waits until no other process can have it, or for the end of ctx.
func (o *occupied) Sure(ctx context.Context) error { return o.t.Sure(ctx) }

// End gives the right back, as soon as nothing more is written under it.
func (o *occupied) End() {
	o.once.Do(func() {
		o.stop()
		o.books.Under(0)
		o.m.give(o.t)
	})
}

// Carry works on a run that was taken off the queue. What a job says is only a hint:
// the lease says who works on a run, and the store whether there is anything to do.
func (m *Member) Carry(ctx context.Context, job jobs.Run) (again bool, err error) {
	if m.dead.Load() {
		<-m.buried
		return false, nil
	}
	// In this order: who holds the runs may want to drop the books of this sync.
	if err := m.Engine.Unheld(ctx); err != nil {
		return true, nil // the queue stops
	}
	free, err := m.oneOfSync(ctx, job.SyncID)
	if err != nil {
		return true, nil
	}
	defer free()
	t, err := m.takeRun(ctx, job)
	if err != nil && ctx.Err() != nil {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if t == nil {
		m.Engine.ExpectIfActive(ctx, job.WorkspaceID, job.ID)
		return false, nil
	}
	keeping, stop := context.WithCancel(m.ctx)
	o := &occupied{m: m, t: t, stop: stop, books: m.Ledger().Sync(job.SyncID)}
	defer o.End()
	o.books.Under(t.Fence)
	again, err = m.Engine.Carry(ctx, job.WorkspaceID, job.SyncID, job.ID, o, func(lost func()) {
		m.work.Go(func() { m.watch(keeping, job.ID) })
		m.work.Go(func() {
			t.Keep(keeping, m.pulse.RunKeep, m.Log)
			if t.IsLost() {
				m.lost.Add(1)
				m.Log.Warn("another process has taken over a run", "run", job.ID, "sync", job.SyncID, "workspace", job.WorkspaceID)
				lost()
			}
		})
	})
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, lease.ErrLost) {
		return false, nil // the run is gone with its sync or its state, or goes on elsewhere
	}
	if m.dead.Load() {
		<-m.buried
		return false, nil
	}
	if again {
		m.handed.Add(1)
	}
	return again, err
}

// oneOfSync waits until this process works on no other run of the sync: what a run
// that has lost its lease still writes must not pass under the fence of the next.
func (m *Member) oneOfSync(ctx context.Context, syncID int64) (free func(), err error) {
	for {
		m.mu.Lock()
		before, busy := m.turns[syncID]
		if !busy {
			own := make(chan struct{})
			m.turns[syncID] = own
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				delete(m.turns, syncID)
				m.mu.Unlock()
				close(own)
			}, nil
		}
		m.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// takeRun takes the lease of a run; nil when there is nothing to do. Who holds the
// lease of a run that is still queued is at the end of the run before, which takes a
// moment; who holds that of a working one works on it.
func (m *Member) takeRun(ctx context.Context, job jobs.Run) (*lease.Held, error) {
	for {
		t, err := m.leases.Hold(ctx, lease.OfSync(job.SyncID), m.pulse.Run)
		if err == nil {
			return t, nil
		}
		if !errors.Is(err, lease.ErrHeld) {
			return nil, err
		}
		waits := false
		err = m.Shared.Store.View(ctx, func(tx *store.Tx) error {
			run, err := tx.SyncRun(job.WorkspaceID, job.ID)
			waits = err == nil && run.SyncID == job.SyncID && run.Run.Status == api.RunQueued
			return err
		})
		if errors.Is(err, store.ErrNotFound) || err == nil && !waits {
			return nil, nil
		}
		if err == nil {
			err = pause(ctx, m.pulse.WorldTry)
		}
		if err != nil {
			return nil, err
		}
	}
}
