package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// Restore replaces the whole state by that of a snapshot: all of it or, on an error,
// nothing. Runs are stopped and calls wait meanwhile. A snapshot under another master key
// is refused with store.ErrWrongKey.
func (s *Snapshots) Restore(ctx context.Context, r io.Reader) error {
	a, err := archive.Read(r, s.Dir)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer a.Close()
	release, err := s.hold(ctx, true)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer release() // starts the runs of the state that is there then
	// Destinations and warehouses cannot be checked before they are replaced, so the
	// present state is kept to go back to.
	before, err := s.spool(ctx)
	if err != nil {
		return fmt.Errorf("restore: keep the present state: %w", err)
	}
	defer before.Close()
	if err := s.replace(ctx, a); err != nil {
		return fmt.Errorf("restore: %w", errors.Join(err, s.undo(before)))
	}
	s.Faults.Forget()
	s.Journal.Forget()
	return nil
}

// Reset takes the service back to its first organization, as after the first start.
func (s *Snapshots) Reset(ctx context.Context) error {
	release, err := s.hold(ctx, true)
	if err != nil {
		return err
	}
	defer release() // nothing is left to go on, or all of it where this fails
	left, err := s.Organizations.ResetAll(ctx)
	if err != nil {
		return err
	}
	// The rest follows even if the caller is gone.
	s.Lifecycle.Forget()
	s.Mail.Forget()
	s.Rest.ForgetReplies()
	s.Faults.Forget()
	s.Journal.Forget()
	defer s.Gate.Renew()
	return s.Organizations.Drop(left)
}

// hold stops the runs, and keeps calls out, until release.
func (s *Snapshots) hold(ctx context.Context, replace bool) (release func(), err error) {
	resume, err := s.Engine.Hold(ctx)
	if err != nil {
		return nil, err
	}
	unlock, err := s.Lock.Take(ctx, replace)
	if err != nil {
		resume()
		return nil, err
	}
	return func() { unlock(); resume() }, nil
}

// replace puts an archive in the place of the state. The store goes first: it refuses
// a bad copy before anything is changed.
func (s *Snapshots) replace(ctx context.Context, a *archive.Archive) error {
	old, err := s.Organizations.Everything(ctx)
	if err != nil {
		return err
	}
	s.Schedule.Forget()
	s.Lifecycle.Forget()
	s.Mail.Forget()
	defer func() { s.Lifecycle.Resume(ctx); s.Mail.Resume(ctx) }()
	if err := s.Shared.Store.Restore(ctx, a.Part(archive.PartStore)); err != nil {
		return errors.Join(err, s.Schedule.GoOn(ctx))
	}
	s.Rest.ForgetReplies()
	if err := s.Shared.Store.Update(ctx, (*store.Tx).AbandonRefreshes); err != nil {
		return err
	}
	// The ids of the new state may be those of the old one, so its records go before the
	// others come.
	old.Kept = true
	if err := s.Organizations.Drop(old); err != nil {
		return err
	}
	s.Gate.Renew()
	if err := s.Connectors.Load(ctx); err != nil {
		return err
	}
	if err := s.Fill(ctx, a); err != nil {
		return err
	}
	// Where it is killed before this, the next start knows that the restore was cut off.
	if err := s.Binding.BindRestored(ctx); err != nil {
		return err
	}
	return errors.Join(s.Schedule.All(ctx), s.Retention.Look(ctx))
}

// undo puts the state back that was there.
func (s *Snapshots) undo(before *archive.Spool) error {
	a, err := archive.Open(before)
	if err == nil {
		err = s.replace(context.Background(), a)
	}
	if err != nil {
		s.Log.Error("the state before the restore cannot be put back", "error", err)
	}
	return err
}

// Fill brings in what a snapshot holds outside the store, whose content is that of the
// snapshot already. A bare copy of a store has neither clock nor parts.
func (s *Snapshots) Fill(ctx context.Context, a *archive.Archive) error {
	if a.Parts[archive.PartMeta] == nil {
		return nil
	}
	if err := s.fill(ctx, a); err != nil {
		return err
	}
	// Ids of requests go on as they did then.
	s.Journal.IDs.Restore(a.Meta.Requests)
	return s.Clock.Restore(a.Meta.Clock)
}

// Refused distinguishes a bad stream from a service that failed.
func Refused(err error) error {
	switch {
	// Not a mistake in the stream: the same one is good for another service.
	case errors.Is(err, store.ErrWrongKey):
		return problem.Refuse(http.StatusConflict, "the snapshot was sealed under another master key; start this service with that key")
	case errors.Is(err, store.ErrNewer), errors.Is(err, archive.ErrNone), errors.Is(err, store.ErrNotACopy):
		return problem.Refuse(http.StatusBadRequest, "%v", err)
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrDisk), problem.Of(err).Code != http.StatusInternalServerError:
		return err // the service's own
	}
	return &problem.Failure{Code: http.StatusBadRequest, Message: fmt.Sprintf("the snapshot cannot be restored, nothing was changed: %v", err), Cause: err}
}
