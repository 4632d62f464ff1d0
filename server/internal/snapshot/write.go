package snapshot

import (
	"context"
	"fmt"
	"io"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/store"
)

// Write writes the whole state. Runs stop between two batches and go on afterwards; calls
// wait. A slow reader holds nothing up.
func (s *Snapshots) Write(ctx context.Context, w io.Writer) error {
	spooled, err := s.take(ctx)
	if err != nil {
		return fmt.Errorf("take snapshot: %w", err)
	}
	defer spooled.Close()
	if _, err := io.Copy(w, spooled.Reader()); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// take spools a snapshot. Close what it returns.
func (s *Snapshots) take(ctx context.Context) (*archive.Spool, error) {
	release, err := s.Engine.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	unlock, err := s.Lock.Take(ctx, false)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s.spool(ctx)
}

// spool copies the state, which is held.
func (s *Snapshots) spool(ctx context.Context) (*archive.Spool, error) {
	out, err := archive.NewSpool(s.Dir)
	if err != nil {
		return nil, err
	}
	if err := s.copyTo(ctx, out); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

func (s *Snapshots) copyTo(ctx context.Context, out io.Writer) error {
	var all store.Everything
	err := s.Shared.Store.View(ctx, func(tx *store.Tx) (err error) {
		all, err = tx.Everything()
		return err
	})
	if err != nil {
		return err
	}
	// The state of the clock with its offset: what is due stays due after a restore.
	meta := archive.Meta{
		Format: archive.Format, Version: s.About.Version, Dialect: s.About.Dialect, TakenAt: s.Clock.Now(),
		Clock: s.Clock.State(), Requests: s.Journal.IDs.At(),
	}
	pieces, err := s.outside(ctx, all, &meta)
	if err != nil {
		return err
	}
	w, err := archive.NewWriter(out, meta, s.Dir)
	if err != nil {
		return err
	}
	store := piece{archive.PartStore, func(w io.Writer) error { return s.Shared.Store.Copy(ctx, w) }}
	for _, p := range append([]piece{store}, pieces...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.Part(p.name, p.write); err != nil {
			return err
		}
	}
	return w.Close()
}
