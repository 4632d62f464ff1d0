package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// Restore replaces the whole world by that of a snapshot: all of it or, on an
// error, nothing. Calls wait meanwhile. Journals are emptied and faults taken
// away; forks stay. Runs that were under way in the snapshot go on from where
// they stood. A snapshot under another master key is refused with
// store.ErrWrongKey.
func (s *Server) Restore(ctx context.Context, r io.Reader) error {
	a, err := archive.Read(r, s.config.Dir)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer a.Close()
	together, err := s.alone(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer together()
	release, err := s.engine.Hold(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer release() // starts the runs of the world that is there then
	unlock, err := s.latch.Stand(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer unlock()
	// Simulators and warehouses cannot be checked before they are replaced, so the
	// present world is kept to go back to.
	before, err := s.spoolWorld(ctx)
	if err != nil {
		return fmt.Errorf("restore: keep the present world: %w", err)
	}
	defer before.Close()
	if err := s.replaceWorld(ctx, a); err != nil {
		return fmt.Errorf("restore: %w", errors.Join(err, s.undo(before)))
	}
	_, err = s.faults.Forget(ctx)
	return errors.Join(err, s.journal.Forget(ctx))
}

// undo puts the world back that was there.
func (s *Server) undo(before *archive.Spool) error {
	a, err := archive.Open(before)
	if err == nil {
		err = s.replaceWorld(context.Background(), a)
	}
	if err != nil {
		s.log.Error("the world before cannot be put back", "error", err)
	}
	return err
}

// replaceWorld swaps everything. The store goes first: it refuses what it
// cannot open before anything is changed.
func (s *Server) replaceWorld(ctx context.Context, a *archive.Archive) error {
	old, err := s.organizations.Everything(ctx)
	if err != nil {
		return err
	}
	s.schedule.Forget()
	s.lifecycle.Forget()
	s.mail.Forget()
	defer func() { s.lifecycle.Resume(ctx); s.mail.Resume(ctx) }()
	if err := s.store.Restore(ctx, a.Part(archive.PartStore)); err != nil {
		return errors.Join(err, s.schedule.GoOn(ctx))
	}
	s.latch.States.Add(1)
	s.syncs.ForgetReplies()
	if err := s.store.Update(ctx, abandonRefreshes); err != nil {
		return err
	}
	// The ids of the new world may be those of the old one, so its records go
	// before the others come.
	old.Kept = true
	if err := s.organizations.Drop(old); err != nil {
		return err
	}
	if err := s.declared.Load(ctx); err != nil {
		return err
	}
	if err := s.restoreOutside(ctx, a); err != nil {
		return err
	}
	// Killed before this, the next start knows that the restore was cut off.
	if err := s.bindRestored(ctx); err != nil {
		return err
	}
	return errors.Join(s.schedule.All(ctx), s.retention.Look(ctx))
}

// restoreOutside brings in what a snapshot holds beside the store. A bare copy
// of a store has neither clock nor parts.
func (s *Server) restoreOutside(ctx context.Context, a *archive.Archive) error {
	if a.Parts[archive.PartMeta] == nil {
		return nil
	}
	for _, d := range a.Meta.Destinations {
		kept, err := s.gate.Store(d.ID, d.Type)
		if err != nil {
			return err
		}
		if kept.Restore == nil {
			return fmt.Errorf("destination %d: its store cannot be restored", d.ID)
		}
		if err := kept.Restore(a.Part(fmt.Sprintf(archive.PartDestination, d.ID))); err != nil {
			return fmt.Errorf("destination %d: %w", d.ID, err)
		}
	}
	for _, src := range a.Meta.Warehouses {
		err := s.sources.Types().RestoreWarehouse(ctx, src.Type, s.sources.Options(src.ID), a.Part(fmt.Sprintf(archive.PartWarehouse, src.ID)))
		if err != nil {
			return fmt.Errorf("warehouse %d: %w", src.ID, err)
		}
	}
	for _, y := range a.Meta.Ledgers {
		if err := s.ledger.Sync(y.ID).Restore(a.Part(fmt.Sprintf(archive.PartLedger, y.ID))); err != nil {
			return fmt.Errorf("ledger of sync %d: %w", y.ID, err)
		}
	}
	// Ids of requests and moments go on as they did then.
	s.journal.IDs.Restore(a.Meta.Requests, s.store.Shared())
	if err := s.clock.Restore(a.Meta.Clock); err != nil {
		return err
	}
	return s.fleet.keepClock(ctx)
}

// openSnapshot opens a new store from a snapshot or a backup, at the start.
func (s *Server) openSnapshot(ctx context.Context, options store.Options, a *archive.Archive) error {
	options.From = a.Part(archive.PartStore)
	opened, err := store.Open(ctx, options)
	if err != nil {
		return err
	}
	s.keepIn(opened)
	// The store holds the directory's lock from here on.
	err = s.books()
	if err == nil {
		err = s.declared.Load(ctx)
	}
	if err == nil {
		err = s.restoreOutside(ctx, a)
	}
	if err == nil {
		err = s.bindRestored(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), s.abandon())
	}
	return nil
}

// worldRoutes are those that take the world for themselves, and so must not
// hold it already.
func (s *Server) worldRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/seed", "body: a seed as YAML; makes all of it or nothing", s.seeds.Post),
		call.Route("GET", "/snapshot", "the whole world as a tar stream; calls and runs go on meanwhile; ?settle=true lets them end first", s.controlSnapshot),
		call.Route("POST", "/restore", "body: a snapshot; replaces the whole world or changes nothing", s.controlRestore),
		call.Route("POST", "/fork", "makes an independent copy of the world below /_forks/{name}: name; with ?name= the body is a snapshot to start from", s.controlFork),
		call.Route("GET", "/forks", "lists the forks", s.controlForks),
		call.Route("DELETE", "/forks/{name}", "ends a fork", s.controlEndFork),
	}
}

// controlSnapshot sends what was spooled; a client that reads slowly holds
// nothing up.
func (s *Server) controlSnapshot(c *call.Control) (any, error) {
	query, err := c.Query("settle")
	if err != nil {
		return nil, err
	}
	switch query.Get("settle") {
	case "", "false":
	case "true":
		if err := s.Settle(c.R.Context()); err != nil {
			return nil, err
		}
	default:
		return nil, problem.InvalidField("settle", "must be true or false")
	}
	spooled, err := s.takeSnapshot(c.R.Context())
	if err != nil {
		return nil, err
	}
	defer spooled.Close()
	c.W.Header().Set("Content-Type", "application/x-tar")
	c.W.Header().Set("Content-Disposition", `attachment; filename="destkit-snapshot.tar"`)
	c.W.Header().Set("Content-Length", fmt.Sprint(spooled.Size()))
	_, err = io.Copy(c.W, spooled.Reader())
	if err != nil {
		s.log.Warn("snapshot was not read to its end", "error", err)
	}
	return nil, nil
}

// controlRestore answers once the other world is in place.
func (s *Server) controlRestore(c *call.Control) (any, error) {
	if err := s.Restore(c.R.Context(), http.MaxBytesReader(c.W, c.R.Body, maxSnapshot)); err != nil {
		return nil, restoreRefused(err)
	}
	return call.Done, nil
}

// restoreRefused tells a stream that is no good from a service that failed.
func restoreRefused(err error) error {
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
