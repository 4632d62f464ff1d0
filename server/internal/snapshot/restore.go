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

// Restore replaces the whole state by that of a snapshot: all of it or, on an
// error, nothing. Calls wait meanwhile. A snapshot under another master key is refused
// with store.ErrWrongKey.
func (s *Snapshots) Restore(ctx context.Context, r io.Reader) error {
	a, err := archive.Read(r, s.dir)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer a.Close()
	release, err := s.service.Hold(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer release() // starts the runs of the state that is there then
	unlock, err := s.latch.Stand(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer unlock()
	// Simulators and warehouses cannot be checked before they are replaced, so the
	// present state is kept to go back to.
	before, err := s.takeHeld(ctx)
	if err != nil {
		return fmt.Errorf("restore: keep the present world: %w", err)
	}
	defer before.Close()
	if err := s.service.Replace(ctx, a); err != nil {
		return fmt.Errorf("restore: %w", errors.Join(err, s.undo(before)))
	}
	s.service.Forget()
	return nil
}

// undo puts the state back that was there.
func (s *Snapshots) undo(before *archive.Spool) error {
	a, err := archive.Open(before)
	if err == nil {
		err = s.service.Replace(context.Background(), a)
	}
	if err != nil {
		s.log.Error("the world before cannot be put back", "error", err)
	}
	return err
}

// Fill brings in what a snapshot holds beside the store, whose content is that of the
// snapshot already. A bare copy of a store has neither clock nor parts.
func (s *Snapshots) Fill(ctx context.Context, a *archive.Archive) error {
	if a.Parts[archive.PartMeta] == nil {
		return nil
	}
	if err := s.outside.fill(ctx, a); err != nil {
		return err
	}
	// Ids of requests and moments go on as they did then.
	s.journal.IDs.Restore(a.Meta.Requests)
	return s.clock.Restore(a.Meta.Clock)
}

// Refused tells a stream that is no good from a service that failed.
func Refused(err error) error {
	switch {
	// Not a mistake in the stream: the same one is good for another service.
	case errors.Is(err, store.ErrWrongKey):
		return problem.Refuse(http.StatusConflict, "the snapshot was sealed under another master key; start this service with that key")
	case errors.Is(err, store.ErrNewer), errors.Is(err, archive.ErrNone), errors.Is(err, store.ErrNotACopy):
		return problem.Refuse(http.StatusBadRequest, "%v", err)
	case errors.Is(err, store.ErrDamaged), errors.Is(err, store.ErrDisk): // the service's own
		return err
	}
	if problem.Of(err).Code != http.StatusInternalServerError {
		return err
	}
	return &problem.Failure{Code: http.StatusBadRequest, Message: fmt.Sprintf("the snapshot cannot be restored, nothing was changed: %v", err), Cause: err}
}
