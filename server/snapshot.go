package server

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/destkit/destkit/server/clock"
	"github.com/destkit/destkit/server/store"
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

// Snapshot writes the whole world as one consistent state. Runs under way stop
// between two batches, as they do when a process stops, and go on when it is
// taken; where it is restored they go on too. Calls wait meanwhile. Settle first
// for a world in which nothing runs.
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

// takeSnapshot spools a snapshot, so that a slow reader does not hold the world.
func (s *Server) takeSnapshot(ctx context.Context) (*spool, error) {
	together, err := s.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer together()
	release, err := s.engine.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	unlock, err := s.world.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	return s.spoolWorld(ctx)
}

// spoolWorld writes the snapshot; nothing changes meanwhile.
func (s *Server) spoolWorld(ctx context.Context) (*spool, error) {
	kept, err := s.everythingOutside(ctx)
	if err != nil {
		return nil, err
	}
	// The state of the clock with its offset: what is due stays due after a
	// restore.
	meta := snapshotMeta{
		Format: snapshotFormat, Version: s.config.Version, Dialect: s.config.Dialect, TakenAt: s.clock.Now(),
		Clock: s.clock.State(), Requests: s.journal.ids.at(),
		Destinations: []snapshotPart{}, Warehouses: []snapshotPart{}, Ledgers: []snapshotPart{},
	}
	for _, d := range kept.destinations {
		if s.snapshots(d) {
			meta.Destinations = append(meta.Destinations, snapshotPart{d.ID, d.Type})
		}
	}
	for _, src := range kept.sources {
		if s.sourceType(src.Type).Emulated {
			meta.Warehouses = append(meta.Warehouses, snapshotPart{src.ID, src.Type})
		}
	}
	for _, id := range kept.syncs {
		if has, err := s.booked(id); err != nil {
			return nil, err
		} else if has {
			meta.Ledgers = append(meta.Ledgers, snapshotPart{id, "sync"})
		}
	}
	out, err := s.newSpool()
	if err != nil {
		return nil, err
	}
	if err := s.writeParts(ctx, out, meta); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// snapshots tells whether a destination keeps records that a snapshot holds.
func (s *Server) snapshots(d *store.Destination) bool {
	kept, err := s.gate.Store(d.ID, d.Type)
	return err == nil && kept.Snapshot != nil && kept.Restore != nil
}

// writeParts writes meta.json first: a reader learns what is to come.
func (s *Server) writeParts(ctx context.Context, out *spool, meta snapshotMeta) error {
	archive := tar.NewWriter(out)
	text, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return err
	}
	sums := map[string]string{}
	// Every part is spooled on its own first: tar wants its length beforehand.
	part := func(name string, write func(io.Writer) error) error {
		piece, err := s.newSpool()
		if err != nil {
			return err
		}
		defer piece.close()
		if err := write(piece); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		head := &tar.Header{Name: name, Mode: 0o600, Size: piece.size, ModTime: meta.TakenAt, Format: tar.FormatPAX}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(io.MultiWriter(archive, sum), piece.reader())
		sums[name] = hex.EncodeToString(sum.Sum(nil))
		return err
	}
	if err := part(partMeta, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
		return err
	}
	if err := part(partStore, func(w io.Writer) error { return s.store.Copy(ctx, w) }); err != nil {
		return err
	}
	for _, d := range meta.Destinations {
		kept, err := s.gate.Store(d.ID, d.Type)
		if err != nil {
			return err
		}
		if err := part(fmt.Sprintf(partDestination, d.ID), kept.Snapshot); err != nil {
			return err
		}
	}
	for _, src := range meta.Warehouses {
		write := func(w io.Writer) error {
			return s.sourceTypes().CopyWarehouse(ctx, src.Type, s.sourceOptions(src.ID), w)
		}
		if err := part(fmt.Sprintf(partWarehouse, src.ID), write); err != nil {
			return err
		}
	}
	for _, y := range meta.Ledgers {
		if err := part(fmt.Sprintf(partLedger, y.ID), s.ledger.Sync(y.ID).Snapshot); err != nil {
			return err
		}
	}
	if err := part(partSums, func(w io.Writer) error { return json.NewEncoder(w).Encode(sums) }); err != nil {
		return err
	}
	return archive.Close()
}
