package server

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/destkit/destkit/server/internal/sync/clock"
)

// A snapshot is a tar stream: meta.json first, then the store, then the records
// of every emulated destination, the tables of every emulated warehouse and the
// books of every sync that has run, and at last the checksums of all of these.
// Secrets in it stay sealed under the master key.
const (
	snapshotFormat    = 2
	unsummedFormat    = 1 // of programs that wrote no checksums
	partSums          = "checksums.json"
	partMeta          = "meta.json"
	partStore         = "store.db"
	partDestination   = "destinations/%d"
	partWarehouse     = "warehouses/%d"
	partLedger        = "ledgers/%d"
	sqliteFileHeading = "SQLite format 3\x00"
)

// snapshotMeta says what is in a snapshot.
type snapshotMeta struct {
	Format   int         `json:"format"`
	Version  string      `json:"version"` // of the program
	Dialect  Dialect     `json:"dialect"`
	TakenAt  time.Time   `json:"taken_at"` // on the service's clock
	Clock    clock.State `json:"clock"`
	Requests int64       `json:"requests"` // where the ids of requests stand
	// Destinations and Warehouses are the ids of the parts with their types.
	Destinations []snapshotPart `json:"destinations"`
	Warehouses   []snapshotPart `json:"warehouses"`
	// Ledgers are the syncs whose books are parts.
	Ledgers []snapshotPart `json:"ledgers"`
}

// snapshotPart names a part; its type says who reads it.
type snapshotPart struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
}

// Snapshot writes the whole world as it is at one moment. Nothing stops for it: runs
// and calls go on, and what is on its way to a destination at that moment is sent again
// where the snapshot is restored, as after the end of a process. Settle first for a
// world in which nothing runs.
func (s *Server) Snapshot(ctx context.Context, w io.Writer) error {
	spooled, err := s.takeSnapshot(ctx)
	if err != nil {
		return fmt.Errorf("take snapshot: %w", err)
	}
	defer spooled.close()
	if _, err := io.Copy(w, spooled.reader()); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// takeSnapshot waits for its turn and spools a snapshot, so that a slow reader holds
// nothing up.
func (s *Server) takeSnapshot(ctx context.Context) (*spool, error) {
	leave, err := s.copies.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	together, err := s.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer together()
	m, err := s.takeMoment(ctx)
	if err != nil {
		return nil, err
	}
	defer m.close()
	return s.spoolMoment(ctx, m)
}

// spoolWorld is the snapshot of a world that is held already, to go back to.
func (s *Server) spoolWorld(ctx context.Context) (*spool, error) {
	m := &moment{}
	defer m.close()
	if err := s.note(ctx, m); err != nil {
		return nil, err
	}
	return s.spoolMoment(ctx, m)
}

func (s *Server) spoolMoment(ctx context.Context, m *moment) (*spool, error) {
	out, err := s.newSpool()
	if err != nil {
		return nil, err
	}
	if err := s.writeParts(ctx, out, m); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// writeParts writes meta.json first: a reader learns what is to come.
func (s *Server) writeParts(ctx context.Context, out *spool, m *moment) error {
	archive := tar.NewWriter(out)
	text, err := json.MarshalIndent(m.meta, "", "  ")
	if err != nil {
		return err
	}
	sums := map[string]string{}
	send := func(name string, from io.Reader, size int64) error {
		head := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: m.meta.TakenAt, Format: tar.FormatPAX}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		sum := sha256.New()
		_, err := io.Copy(io.MultiWriter(archive, sum), from)
		sums[name] = hex.EncodeToString(sum.Sum(nil))
		return err
	}
	// Every part is spooled on its own first: tar wants its length beforehand.
	part := func(name string, write func(io.Writer) error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece, err := s.newSpool()
		if err != nil {
			return err
		}
		defer piece.close()
		if err := write(piece); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		return send(name, piece.reader(), piece.size)
	}
	if err := send(partMeta, bytes.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	if err := part(partStore, func(w io.Writer) error { return m.store.Copy(ctx, w) }); err != nil {
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
		if err := send(p.name, p.out.reader(), p.out.size); err != nil {
			return err
		}
	}
	for _, books := range m.ledgers {
		if books.Empty() {
			continue
		}
		if err := part(fmt.Sprintf(partLedger, books.Sync()), books.Write); err != nil {
			return err
		}
	}
	if err := part(partSums, func(w io.Writer) error { return json.NewEncoder(w).Encode(sums) }); err != nil {
		return err
	}
	return archive.Close()
}
