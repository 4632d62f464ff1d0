package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/server/internal/archive"
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
	release, err := s.hold(ctx, false)
	if err != nil {
		return nil, err
	}
	defer release()
	return s.spool(ctx)
}

// spool copies the state, which is held.
func (s *Snapshots) spool(ctx context.Context) (*archive.Spool, error) {
	out, err := archive.NewSpool(s.Dir)
	if err == nil {
		if err = s.copyTo(ctx, out); err != nil {
			out.Close()
		}
	}
	return out, err
}

func (s *Snapshots) copyTo(ctx context.Context, out io.Writer) error {
	// The state of the clock with its offset: due work stays due after a restore.
	meta := archive.Meta{
		Format: archive.Format, Version: s.Version, Dialect: s.Dialect, TakenAt: s.Clock.Now(),
		Clock: s.Clock.State(), Requests: s.Journal.IDs.At(),
	}
	pieces, err := s.pieces(ctx, &meta)
	if err != nil {
		return err
	}
	w, err := archive.NewWriter(out, meta, s.Dir)
	for _, p := range pieces {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		err = w.Part(p.name, p.write)
	}
	if err != nil {
		return err
	}
	return w.Close()
}
