package snapshot

import (
	"context"
	"fmt"
	"io"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/store"
)

// piece is one part of a snapshot that has a place outside the store: the records of an
// emulated destination, the tables of an emulated warehouse, the ledger of a sync.
type piece struct {
	name  string
	write func(io.Writer) error
}

// outside lists these parts, in meta too. It opens destinations that were not used since
// the start.
func (s *Snapshots) outside(ctx context.Context, all store.Everything, meta *archive.Meta) (pieces []piece, err error) {
	add := func(parts *[]archive.Part, id int64, typ, pattern string, write func(io.Writer) error) {
		*parts = append(*parts, archive.Part{ID: id, Type: typ})
		pieces = append(pieces, piece{fmt.Sprintf(pattern, id), write})
	}
	meta.Destinations, meta.Warehouses, meta.Ledgers = []archive.Part{}, []archive.Part{}, []archive.Part{}
	for _, d := range all.Destinations {
		kept, err := s.Gate.Store(d.ID, d.Type)
		if err == nil && kept.Snapshot != nil && kept.Restore != nil {
			add(&meta.Destinations, d.ID, d.Type, archive.PartDestination, kept.Snapshot)
		}
	}
	for _, src := range all.Sources {
		if s.Sources.Described(src.Type).Emulated {
			add(&meta.Warehouses, src.ID, src.Type, archive.PartWarehouse, func(w io.Writer) error {
				return s.Sources.Types().CopyWarehouse(ctx, src.Type, s.Sources.Options(src.ID), w)
			})
		}
	}
	for _, id := range all.Syncs {
		empty, err := s.Ledger().Sync(id).Empty()
		if err != nil {
			return nil, err
		}
		if !empty {
			add(&meta.Ledgers, id, "sync", archive.PartLedger, s.Ledger().Sync(id).Snapshot)
		}
	}
	return pieces, nil
}

// fillOutside brings in what an archive holds of them.
func (s *Snapshots) fillOutside(ctx context.Context, a *archive.Archive) error {
	for _, d := range a.Meta.Destinations {
		kept, err := s.Gate.Store(d.ID, d.Type)
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
		err := s.Sources.Types().RestoreWarehouse(ctx, src.Type, s.Sources.Options(src.ID), a.Part(fmt.Sprintf(archive.PartWarehouse, src.ID)))
		if err != nil {
			return fmt.Errorf("warehouse %d: %w", src.ID, err)
		}
	}
	for _, y := range a.Meta.Ledgers {
		if err := s.Ledger().Sync(y.ID).Restore(a.Part(fmt.Sprintf(archive.PartLedger, y.ID))); err != nil {
			return fmt.Errorf("ledger of sync %d: %w", y.ID, err)
		}
	}
	return nil
}
