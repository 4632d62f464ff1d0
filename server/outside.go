package server

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/internal/cluster"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// outside is what a workspace keeps outside the store: records of emulated
// destinations, tables of emulated warehouses, open connections.
type outside struct {
	destinations []*store.Destination
	sources      []*store.Source
	syncs        []int64
	// kept says that the settings of syncs belong to others with their ids.
	kept bool
}

// gather adds what an organization keeps outside.
func (o *outside) gather(tx *store.Tx, organizationID int64) error {
	workspaces, err := store.Every(func(p store.Page) ([]*store.Workspace, int64, error) {
		return tx.Workspaces(organizationID, p)
	})
	if err != nil {
		return err
	}
	for _, w := range workspaces {
		// All of them: which keep something outside is up to the types.
		destinations, err := store.Every(func(p store.Page) ([]*store.Destination, int64, error) {
			return tx.Destinations(w.ID, p)
		})
		if err != nil {
			return err
		}
		sources, err := store.Every(func(p store.Page) ([]*store.Source, int64, error) {
			return tx.Sources(w.ID, p)
		})
		if err != nil {
			return err
		}
		syncs, err := store.Every(func(p store.Page) ([]store.Head, int64, error) {
			return tx.SyncHeads(w.ID, p)
		})
		if err != nil {
			return err
		}
		for _, y := range syncs {
			o.syncs = append(o.syncs, y.ID)
		}
		o.destinations, o.sources = append(o.destinations, destinations...), append(o.sources, sources...)
	}
	return nil
}

// drop removes it.
func (o *outside) drop(s *Server) error {
	var failures []error
	// All are tried: one that fails must not keep the others.
	for _, d := range o.destinations {
		failures = append(failures, s.destinations.Drop(s.background.Ctx, d))
	}
	for _, src := range o.sources {
		if s.sources.Described(src.Type).Emulated {
			failures = append(failures, sources.Access{ID: src.ID, Type: src.Type, Options: s.sources.Options(src.ID)}.Forget())
		}
	}
	for _, id := range o.syncs {
		if !o.kept {
			failures = append(failures, s.forgetSync(id))
			continue
		}
		failures = append(failures, s.haltSync(id))
	}
	return errors.Join(failures...)
}

// haltSync ends what a sync does, and drops its books.
func (s *Server) haltSync(id int64) error {
	s.schedule.Drop(id)
	s.retries.Drop(id)
	s.engine.halt(id)
	if s.fleet != nil {
		return s.fleet.evict(s.background.Ctx, id)
	}
	return s.ledger.Sync(id).Forget()
}

// forgetSync drops what a deleted sync leaves behind.
func (s *Server) forgetSync(id int64) error {
	halted := s.haltSync(id)
	err := s.store.Update(s.background.Ctx, func(tx *store.Tx) error {
		return errors.Join(tx.DeleteSetting(endpointSetting(id)), tx.DeleteSetting(runs.RetrySetting(id)), tx.DeleteSetting(mergedSetting(id)),
			s.tell(tx, cluster.TopicSync, id))
	})
	if errors.Is(err, store.ErrNotFound) {
		err = nil // it never ran
	}
	return errors.Join(err, halted)
}

// everythingOutside is what all organizations keep outside the store.
func (s *Server) everythingOutside(ctx context.Context) (all outside, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		organizations, err := store.Every(tx.Organizations)
		for _, o := range organizations {
			if err := all.gather(tx, o.ID); err != nil {
				return err
			}
		}
		return err
	})
	return all, err
}

// destinationsOf are the ids of an organization's destinations.
func (s *Server) destinationsOf(ctx context.Context, organizationID int64) (map[int64]bool, error) {
	ids := map[int64]bool{}
	err := s.store.View(ctx, func(tx *store.Tx) error {
		var all outside
		if err := all.gather(tx, organizationID); err != nil {
			return err
		}
		for _, d := range all.destinations {
			ids[d.ID] = true
		}
		return nil
	})
	return ids, err
}
