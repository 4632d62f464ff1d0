package snapshot

import (
	"context"
	"fmt"
	"io"

	"github.com/destkit/destkit/server/internal/archive"
)

// Write writes the whole state as it is at one moment. Nothing stops for it: runs
// and calls go on, and what is on its way to a destination at that moment is sent again
// where the snapshot is restored, as after the end of a process.
func (s *Snapshots) Write(ctx context.Context, w io.Writer) error {
	spooled, err := s.Take(ctx)
	if err != nil {
		return fmt.Errorf("take snapshot: %w", err)
	}
	defer spooled.Close()
	if _, err := io.Copy(w, spooled.Reader()); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Take waits for its turn and spools a snapshot, so that a slow reader holds nothing
// up. Close what it returns.
func (s *Snapshots) Take(ctx context.Context) (*archive.Spool, error) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer m.close()
	return s.spool(ctx, m)
}

// takeHeld is the snapshot of a state that is held already, to go back to.
func (s *Snapshots) takeHeld(ctx context.Context) (*archive.Spool, error) {
	m := &moment{}
	defer m.close()
	if err := s.note(ctx, m); err != nil {
		return nil, err
	}
	return s.spool(ctx, m)
}

func (s *Snapshots) spool(ctx context.Context, m *moment) (*archive.Spool, error) {
	out, err := archive.NewSpool(s.dir)
	if err != nil {
		return nil, err
	}
	if err := s.writeParts(ctx, out, m); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// writeParts writes the parts of a moment.
func (s *Snapshots) writeParts(ctx context.Context, out *archive.Spool, m *moment) error {
	w, err := archive.NewWriter(out, m.meta, s.dir)
	if err != nil {
		return err
	}
	part := func(name string, write func(io.Writer) error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return w.Part(name, write)
	}
	if err := part(archive.PartStore, func(w io.Writer) error { return m.store.Copy(ctx, w) }); err != nil {
		return err
	}
	for _, p := range m.parts {
		select {
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if p.err != nil {
			return fmt.Errorf("write %s: %w", p.name, p.err)
		}
		if err := w.Send(p.name, p.out.Reader(), p.out.Size()); err != nil {
			return err
		}
	}
	for _, books := range m.ledgers {
		if books.Empty() {
			continue
		}
		if err := part(fmt.Sprintf(archive.PartLedger, books.Sync()), books.Write); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.Close()
}
