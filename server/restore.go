package server

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/store"
)

// Snapshot writes the whole world as it is at one moment. Nothing stops for it: runs
// and calls go on, and what is on its way to a destination at that moment is sent again
// where the snapshot is restored, as after the end of a process. Settle first for a
// world in which nothing runs.
func (s *Server) Snapshot(ctx context.Context, w io.Writer) error { return s.snapshots.Write(ctx, w) }

// Restore replaces the whole world by that of a snapshot: all of it or, on an
// error, nothing. Calls wait meanwhile. Journals are emptied and faults taken
// away; forks stay. Runs that were under way in the snapshot go on from where
// they stood. A snapshot under another master key is refused with ErrWrongKey.
func (s *Server) Restore(ctx context.Context, r io.Reader) error { return s.snapshots.Restore(ctx, r) }

// forgetCalls empties the journals and takes the faults away.
func (s *Server) forgetCalls(ctx context.Context) error {
	_, err := s.faults.Forget(ctx)
	return errors.Join(err, s.journal.Forget(ctx))
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
	if err := s.snapshots.Fill(ctx, a); err != nil {
		return err
	}
	// Killed before this, the next start knows that the restore was cut off.
	if err := s.binding.BindRestored(ctx); err != nil {
		return err
	}
	return errors.Join(s.schedule.All(ctx), s.retention.Look(ctx))
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
		err = s.snapshots.Fill(ctx, a)
	}
	if err == nil {
		err = s.binding.BindRestored(ctx)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("restore: %w", err), s.abandon())
	}
	return nil
}
