package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/store"
)

// piece is one part of a snapshot.
type piece struct {
	name  string
	write func(io.Writer) error
}

// pieces lists the store, and the data outside it, in meta too. It opens
// destinations that were not used since the start.
func (s *Snapshots) pieces(ctx context.Context, meta *archive.Meta) (pieces []piece, err error) {
	pieces = []piece{{archive.PartStore, func(w io.Writer) error { return s.Shared.Store.Copy(ctx, w) }}}
	add := func(parts *[]archive.Part, id int64, typ, pattern string, write func(io.Writer) error) {
		*parts = append(*parts, archive.Part{ID: id, Type: typ})
		pieces = append(pieces, piece{fmt.Sprintf(pattern, id), write})
	}
	meta.Destinations, meta.Warehouses, meta.Ledgers = []archive.Part{}, []archive.Part{}, []archive.Part{}
	all, err := store.Read(ctx, s.Shared.Store, (*store.Tx).Everything)
	for _, d := range all.Destinations {
		if kept, err := s.Gate.Store(d.ID, d.Type); err == nil && kept.Snapshot != nil && kept.Restore != nil {
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
	return pieces, err
}

// fill brings in what an archive holds outside the store.
func (s *Snapshots) fill(ctx context.Context, a *archive.Archive) error {
	part := func(pattern string, p archive.Part) io.Reader { return a.Part(fmt.Sprintf(pattern, p.ID)) }
	for _, p := range a.Meta.Destinations {
		kept, err := s.Gate.Store(p.ID, p.Type)
		if err == nil && kept.Restore == nil {
			err = errors.New("its store cannot be restored")
		} else if err == nil {
			err = kept.Restore(part(archive.PartDestination, p))
		}
		if err != nil {
			return fmt.Errorf("destination %d: %w", p.ID, err)
		}
	}
	for _, p := range a.Meta.Warehouses {
		if err := s.Sources.Types().RestoreWarehouse(ctx, p.Type, s.Sources.Options(p.ID), part(archive.PartWarehouse, p)); err != nil {
			return fmt.Errorf("warehouse %d: %w", p.ID, err)
		}
	}
	for _, p := range a.Meta.Ledgers {
		if err := s.Ledger().Sync(p.ID).Restore(part(archive.PartLedger, p)); err != nil {
			return fmt.Errorf("ledger of sync %d: %w", p.ID, err)
		}
	}
	return nil
}
