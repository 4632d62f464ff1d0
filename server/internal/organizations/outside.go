package organizations

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// Outside is what a workspace keeps outside the store: records of emulated
// destinations, tables of emulated warehouses, open connections.
type Outside struct {
	Destinations []*store.Destination
	Sources      []*store.Source
	Syncs        []int64
	// Kept means that the settings of syncs belong to others with their ids.
	Kept bool
}

// Gather adds what an organization keeps outside.
func (o *Outside) Gather(tx *store.Tx, organizationID int64) error {
	workspaces, err := store.Workspaces.All(tx, organizationID)
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		// All of them: which keep something outside is up to the types.
		destinations, err := store.Destinations.All(tx, w.ID)
		if err != nil {
			return err
		}
		sources, err := store.Sources.All(tx, w.ID)
		if err != nil {
			return err
		}
		syncs, err := store.Every(func(p store.Page) ([]store.Head, int64, error) { return store.Syncs.Heads(tx, w.ID, p) })
		if err != nil {
			return err
		}
		for _, y := range syncs {
			o.Syncs = append(o.Syncs, y.ID)
		}
		o.Destinations, o.Sources = append(o.Destinations, destinations...), append(o.Sources, sources...)
	}
	return nil
}

// Drop removes what deleted rows have kept outside the store.
func (k *Organizations) Drop(left Outside) error {
	var failures []error
	// All are tried: one that fails must not keep the others.
	for _, d := range left.Destinations {
		failures = append(failures, k.Gate.Remove(d.ID, d.Type))
	}
	for _, src := range left.Sources {
		if k.Sources.Described(src.Type).Emulated {
			failures = append(failures, sources.Access{ID: src.ID, Type: src.Type, Options: k.Sources.Options(src.ID)}.Forget())
		}
	}
	for _, id := range left.Syncs {
		if !left.Kept {
			failures = append(failures, k.Syncs.Forget(id))
			continue
		}
		failures = append(failures, k.Syncs.Halt(id))
	}
	return errors.Join(failures...)
}

// Everything is what all organizations keep outside the store.
func (k *Organizations) Everything(ctx context.Context) (all Outside, err error) {
	err = k.Shared.Store.View(ctx, func(tx *store.Tx) error {
		organizations, err := store.Every(tx.Organizations)
		for _, o := range organizations {
			if err := all.Gather(tx, o.ID); err != nil {
				return err
			}
		}
		return err
	})
	return all, err
}

// DestinationsOf are the ids of an organization's destinations.
func (k *Organizations) DestinationsOf(ctx context.Context, organizationID int64) (map[int64]bool, error) {
	ids := map[int64]bool{}
	err := k.Shared.Store.View(ctx, func(tx *store.Tx) error {
		var all Outside
		if err := all.Gather(tx, organizationID); err != nil {
			return err
		}
		for _, d := range all.Destinations {
			ids[d.ID] = true
		}
		return nil
	})
	return ids, err
}
