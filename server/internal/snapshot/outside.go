package snapshot

import (
	"context"
	"fmt"
	"io"

	"github.com/destkit/destkit/server/internal/archive"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// outside is what has a place beside the store: the records of emulated destinations, the
// tables of emulated warehouses, the ledgers of syncs.
type outside struct {
	gate    *destination.Gate
	sources *sources.Sources
	ledger  func() *ledger.Ledger
}

// snapshots reports whether a destination keeps records that a snapshot holds. It opens
// what was not used since the start.
func (o *outside) snapshots(d store.Typed) bool {
	kept, err := o.gate.Store(d.ID, d.Type)
	return err == nil && kept.Snapshot != nil && kept.Restore != nil
}

// noteLedgers notes where the ledger of every sync ends.
func (o *outside) noteLedgers(m *moment, syncs []int64) error {
	for _, id := range syncs {
		books, err := o.ledger().Sync(id).Moment()
		if err != nil {
			return err
		}
		m.ledgers = append(m.ledgers, books)
		if !books.Empty() {
			m.meta.Ledgers = append(m.meta.Ledgers, archive.Part{ID: id, Type: "sync"})
		}
	}
	return nil
}

// note begins to copy destinations and warehouses, each as it is now.
func (o *outside) note(ctx context.Context, m *moment, all store.Everything, dir string) error {
	for _, d := range all.Destinations {
		if !o.snapshots(d) {
			continue
		}
		kept, err := o.gate.Store(d.ID, d.Type)
		if err != nil {
			return err
		}
		m.meta.Destinations = append(m.meta.Destinations, archive.Part{ID: d.ID, Type: d.Type})
		if err := m.begin(dir, fmt.Sprintf(archive.PartDestination, d.ID), kept.Snapshot); err != nil {
			return err
		}
	}
	for _, src := range all.Sources {
		if !o.sources.Described(src.Type).Emulated {
			continue
		}
		m.meta.Warehouses = append(m.meta.Warehouses, archive.Part{ID: src.ID, Type: src.Type})
		err := m.begin(dir, fmt.Sprintf(archive.PartWarehouse, src.ID), func(w io.Writer) error {
			return o.sources.Types().CopyWarehouse(ctx, src.Type, o.sources.Options(src.ID), w)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// fill brings in what an archive holds of them.
func (o *outside) fill(ctx context.Context, a *archive.Archive) error {
	for _, d := range a.Meta.Destinations {
		kept, err := o.gate.Store(d.ID, d.Type)
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
		err := o.sources.Types().RestoreWarehouse(ctx, src.Type, o.sources.Options(src.ID), a.Part(fmt.Sprintf(archive.PartWarehouse, src.ID)))
		if err != nil {
			return fmt.Errorf("warehouse %d: %w", src.ID, err)
		}
	}
	for _, y := range a.Meta.Ledgers {
		if err := o.ledger().Sync(y.ID).Restore(a.Part(fmt.Sprintf(archive.PartLedger, y.ID))); err != nil {
			return fmt.Errorf("ledger of sync %d: %w", y.ID, err)
		}
	}
	return nil
}
