// Package replacement gives a running service another state: that of a snapshot, or that
// after the first start. It knows in which order the parts let go of the old one and take
// up the other. What a snapshot consists of is package snapshot's.
package replacement

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/binding"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/connectors"
	"github.com/destkit/destkit/server/internal/faults"
	"github.com/destkit/destkit/server/internal/journal"
	"github.com/destkit/destkit/server/internal/latch"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
)

// Parts are those that hold something of the state.
type Parts struct {
	Shared        *call.Shared
	Latch         *latch.Latch
	Organizations *organizations.Organizations
	Connectors    *connectors.Connectors
	Syncs         *rest.Handlers
	Engine        *runs.Engine
	Schedule      *runs.Schedule
	Retention     *runs.Retention
	Lifecycle     *lifecycle.Lifecycle
	Mail          *lifecycle.Mailer
	Journal       *journal.Journal
	Faults        *faults.Faults
	Binding       *binding.Binding
	// Fill puts all of a snapshot but its store where it belongs.
	Fill func(ctx context.Context, a *archive.Archive) error
}

// Replacement replaces the state of a service.
type Replacement struct{ Parts }

// New returns the replacement of a service's state.
func New(parts Parts) *Replacement { return &Replacement{parts} }

// Reset goes back to the first organization, as after the first start. It takes the
// state for itself as a restore does: runs are stopped where they stand, those that wait
// for each other or for a clock that stands still among them.
func (r *Replacement) Reset(ctx context.Context) error {
	release, err := r.Engine.Hold(ctx)
	if err != nil {
		return err
	}
	defer release() // nothing is left to go on, or all of it where this fails
	unlock, err := r.Latch.Stand(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	left, err := r.Organizations.ResetAll(ctx)
	if err != nil {
		return err
	}
	// What they hold is about things that are gone. So it goes, whether the caller is
	// still there or not.
	r.Latch.States.Add(1)
	r.Lifecycle.Forget()
	r.Mail.Forget()
	r.Syncs.ForgetReplies()
	r.ForgetCalls()
	return r.Organizations.Drop(left)
}

// ForgetCalls empties the journals and takes the faults away.
func (r *Replacement) ForgetCalls() {
	r.Faults.Forget()
	r.Journal.Forget()
}

// Replace swaps everything. The store goes first: it refuses what it
// cannot open before anything is changed.
func (r *Replacement) Replace(ctx context.Context, a *archive.Archive) error {
	old, err := r.Organizations.Everything(ctx)
	if err != nil {
		return err
	}
	r.Schedule.Forget()
	r.Lifecycle.Forget()
	r.Mail.Forget()
	defer func() { r.Lifecycle.Resume(ctx); r.Mail.Resume(ctx) }()
	if err := r.Shared.Store.Restore(ctx, a.Part(archive.PartStore)); err != nil {
		return errors.Join(err, r.Schedule.GoOn(ctx))
	}
	r.Latch.States.Add(1)
	r.Syncs.ForgetReplies()
	if err := r.Shared.Store.Update(ctx, AbandonRefreshes); err != nil {
		return err
	}
	// The ids of the new world may be those of the old one, so its records go
	// before the others come.
	old.Kept = true
	if err := r.Organizations.Drop(old); err != nil {
		return err
	}
	if err := r.Connectors.Load(ctx); err != nil {
		return err
	}
	if err := r.Fill(ctx, a); err != nil {
		return err
	}
	// Killed before this, the next start knows that the restore was cut off.
	if err := r.Binding.BindRestored(ctx); err != nil {
		return err
	}
	return errors.Join(r.Schedule.All(ctx), r.Retention.Look(ctx))
}

// AbandonRefreshes ends those that a stopped process, or the world of a
// snapshot, has left behind.
func AbandonRefreshes(tx *store.Tx) error {
	_, err := tx.AbandonRefreshes("the service was stopped")
	return err
}
