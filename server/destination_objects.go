package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/latch"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// listDestinationObjects lists the objects with their fields (spec 2.3, 2.5).
func (s *Server) listDestinationObjects(c *call.Call) (*call.Reply, error) {
	_, objects, err := s.objectsOfPath(c)
	if err != nil {
		return nil, err
	}
	page := c.Page()
	shown := []*api.DestinationObject{}
	for _, o := range call.SlicePage(objects, page) {
		shown = append(shown, s.dialect.Object(o))
	}
	return c.List(page, int64(len(objects)), shown)
}

// fetchDestinationObject finds one by its full_name, the identifier in syncs
// (spec 2.3).
func (s *Server) fetchDestinationObject(c *call.Call) (*call.Reply, error) {
	d, objects, err := s.objectsOfPath(c)
	if err != nil {
		return nil, err
	}
	name := c.R.PathValue("object_full_name")
	for _, o := range objects {
		if o.FullName == name {
			return call.OK(s.dialect.Object(o))
		}
	}
	return nil, problem.Refuse(http.StatusNotFound, "destination %d has no object of that name", d.ID)
}

// objectsOfPath finds the destination of the path and its objects.
func (s *Server) objectsOfPath(c *call.Call) (*store.Destination, []*api.DestinationObject, error) {
	d, err := s.destination(c, c.ID("destination_id"))
	if err != nil {
		return nil, nil, err
	}
	objects, err := s.objects(c.Ctx, d)
	return d, objects, err
}

// objects are those of the cache, or of new planning calls when the cache is
// empty or old: a custom destination keeps none itself (spec 4.2, rule 1). When
// the destination cannot be asked, old objects are better than none.
func (s *Server) objects(ctx context.Context, d *store.Destination) ([]*api.DestinationObject, error) {
	cached, err := s.cachedObjects(ctx, d.ID)
	if err != nil {
		return nil, err
	}
	// One that is of a moment to come was kept before the clock was set back.
	if age := s.clock.Now().Sub(cached.FetchedAt); !cached.FetchedAt.IsZero() && age >= 0 && age < s.config.CacheTTL {
		return cached.Objects, nil
	}
	if err := s.refreshObjects(ctx, d); err != nil {
		// What is wrong here, and not there: the destination was deleted while it was
		// asked, or the store cannot be used.
		if errors.Is(err, store.ErrGone) || errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("read objects of destination %d: %w", d.ID, store.ErrNotFound)
		}
		if store.Passing(err) || errors.Is(err, store.ErrClosed) || errors.Is(err, latch.ErrReplaced) || ctx.Err() != nil {
			return nil, err
		}
		if !cached.FetchedAt.IsZero() {
			s.log.Warn("old objects are shown", "destination", d.ID, "error", err)
			return cached.Objects, nil
		}
		// The destination has failed, not the caller.
		f := problem.Refuse(http.StatusBadGateway, "the destination could not be asked for its objects: %v", err)
		f.Cause = err
		return nil, f
	}
	if cached, err = s.cachedObjects(ctx, d.ID); err != nil {
		return nil, err
	}
	return cached.Objects, nil
}

// cachedObjects reads the cache in a view of its own: no transaction stays open
// while a destination is asked.
func (s *Server) cachedObjects(ctx context.Context, id int64) (cached *store.ObjectCache, err error) {
	err = s.store.View(ctx, func(tx *store.Tx) error {
		cached, err = keptObjects(tx, id)
		return err
	})
	return cached, err
}

// keptObjects is what the cache holds; an empty one when nothing was fetched.
func keptObjects(tx *store.Tx, id int64) (*store.ObjectCache, error) {
	cached, err := tx.ObjectCache(id)
	if errors.Is(err, store.ErrNotFound) {
		return &store.ObjectCache{}, nil
	}
	return cached, err
}

// refreshObjects asks the destination for its objects and keeps them. Calls
// that come together share one attempt, which no single client can abort.
func (s *Server) refreshObjects(ctx context.Context, d *store.Destination) error {
	world := s.latch.States.Load()
	fetch := func(ctx context.Context) error {
		var credentials map[string]json.RawMessage
		err := s.store.View(ctx, func(tx *store.Tx) (err error) {
			credentials, err = tx.DestinationCredentials(d.ID)
			return err
		})
		if err != nil {
			return err
		}
		conn, err := s.gate.Open(d.ID, d.Type, credentials)
		if err != nil {
			return err
		}
		defer conn.Close()
		objects, err := conn.Objects(ctx)
		s.log.Info("destination planned", "destination", d.ID, "url", s.sealedURL(d.Type, credentials), "objects", len(objects), "error", err)
		if err != nil {
			return err
		}
		mapping.Define(d.Type, objects)
		return s.store.Update(ctx, func(tx *store.Tx) error {
			if s.latch.States.Load() != world {
				return latch.ErrOther
			}
			return tx.PutObjectCache(d.ID, &store.ObjectCache{FetchedAt: s.clock.Now(), Objects: objects})
		})
	}
	return s.latch.Aside(ctx, func(ctx context.Context) error {
		return s.attempts.Once(ctx, s.background.Later, fmt.Sprintf("objects of destination %d", d.ID), fetch)
	})
}

// refreshDestinationObjects starts a refresh; its key asks for the status.
func (s *Server) refreshDestinationObjects(c *call.Call) (*call.Reply, error) {
	d, err := s.destination(c, c.ID("destination_id"))
	if err != nil {
		return nil, err
	}
	return s.rest.StartRefresh(c, "objects", d.ID, func(ctx context.Context) error { return s.refreshObjects(ctx, d) })
}

// fetchRefreshObjectsStatus tells how a refresh goes. The
// destination is looked up so that a key of another workspace is a 404.
func (s *Server) fetchRefreshObjectsStatus(c *call.Call) (*call.Reply, error) {
	d, err := s.destination(c, c.ID("destination_id"))
	if err != nil {
		return nil, err
	}
	return s.rest.RefreshStatus(c, "objects", d.ID)
}
