package runs

import (
	"context"
	"time"

	"github.com/destkit/destkit/server/internal/store"
)

// This file is how schedules are taken up at a start, and by a clock
// that was set. It reads only what has to be planned again.

// All takes up every schedule, as at a start: runs that fell due without a process are
// left out.
func (p *Schedule) All(ctx context.Context) error {
	from := p.Clock.Now()
	last, err := store.Read(ctx, p.Shared.Store, (*store.Tx).LastTurn)
	if err != nil {
		return err
	}
	p.Clock.TurnsFrom(last)
	return p.wake(ctx, from, from)
}

// GoOn takes up schedules that were dropped needlessly: they fall due as before.
func (p *Schedule) GoOn(ctx context.Context) error {
	return p.wake(ctx, p.Clock.Now(), time.Time{})
}

func (p *Schedule) wake(ctx context.Context, from, missed time.Time) error {
	if err := p.replan(ctx, from, missed); err != nil {
		return err
	}
	p.mu.Lock()
	p.awake = true
	p.mu.Unlock()
	return p.rest(ctx)
}

// Again schedules by a clock that was set. Overdue runs start, and runs that were
// planned from a later moment are planned again.
func (p *Schedule) Again(ctx context.Context) error {
	if err := p.replan(ctx, p.Clock.Now(), time.Time{}); err != nil {
		return err
	}
	p.Look()
	return nil
}

// planAtOnce is how many syncs one change plans again.
const planAtOnce = 200

// replan plans from a moment on the syncs that need it (store.UnplannedSyncs).
func (p *Schedule) replan(ctx context.Context, from, missed time.Time) error {
	for after := int64(0); ; {
		some := []*store.Sync{}
		find := func(tx *store.Tx) (err error) {
			some, err = tx.UnplannedSyncs(after, p.Clock.Now(), missed, planAtOnce)
			return err
		}
		// Mostly there is nothing to change.
		if err := p.Shared.Store.View(ctx, find); err != nil || len(some) == 0 {
			return err
		}
		err := p.Shared.Store.Update(ctx, func(tx *store.Tx) error {
			if err := find(tx); err != nil {
				return err
			}
			for _, y := range some {
				at := from
				if y.UpdatedAt.After(at) && !y.UpdatedAt.After(tx.Now()) { // it may not have had the schedule before
					at = y.UpdatedAt
				}
				if err := tx.PlanSync(y, at); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || len(some) == 0 {
			return err
		}
		after = some[len(some)-1].ID
	}
}

// rest takes up what falls due by no schedule: live syncs and retries.
func (p *Schedule) rest(ctx context.Context) error {
	const at = 500
	for after := int64(0); ; {
		some, err := store.Read(ctx, p.Shared.Store, func(tx *store.Tx) ([]*store.Sync, error) { return tx.EveryTopicSync(after, at) })
		if err != nil {
			return err
		}
		if len(some) == 0 {
			break
		}
		for _, y := range some {
			p.live.begin(y)
			after = y.ID
		}
	}
	if err := p.retries.resumeAll(ctx); err != nil {
		return err
	}
	p.Look()
	return nil
}
