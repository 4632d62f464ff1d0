package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// dataRoutes stand at both ends of a sync: they make source data, and show what
// a destination has got.
func (h *Handlers) dataRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/sources/{id}/execute", "runs sql on an emulated warehouse, all of it or nothing", h.execute),
		call.Route("GET", "/destinations/{id}/records", "?object=&after=&limit= lists what an emulated destination has stored", h.records),
	}
}

// pageAfter reads ?after=&limit=, by which long lists are read piece by piece.
func pageAfter(query url.Values, most int64) (after, limit int64, err error) {
	if after, err = call.Integer(query, "after", 0, 0, 1<<62); err == nil {
		limit, err = call.Integer(query, "limit", 1000, 1, most)
	}
	return after, limit, err
}

// execute changes what an emulated warehouse holds, as its owner would.
func (h *Handlers) execute(c *call.Control) (any, error) {
	var body struct {
		SQL string `json:"sql"`
	}
	if err := c.Body(&body); err != nil {
		return nil, err
	}
	if strings.TrimSpace(body.SQL) == "" {
		return nil, problem.InvalidField("sql", "is required")
	}
	access, err := h.anySource(c.R.Context(), call.IDOf(c))
	if err != nil {
		return nil, err
	}
	if err := h.Sources.Execute(c.R.Context(), access, body.SQL); err != nil {
		return nil, err
	}
	return call.Done, nil
}

// anySource finds what it takes to open a source by its id alone.
func (h *Handlers) anySource(ctx context.Context, id int64) (access sources.Access, err error) {
	err = h.Shared.Store.View(ctx, func(tx *store.Tx) error {
		src, err := organizations.Among(tx, func(all *organizations.Outside) (*store.Source, error) {
			for _, src := range all.Sources {
				if src.ID == id {
					return src, nil
				}
			}
			return nil, store.ErrNotFound
		})
		if errors.Is(err, store.ErrNotFound) {
			return call.Gone("source", id)
		}
		if err == nil {
			access, err = h.Sources.Access(tx, src)
		}
		return err
	})
	return access, err
}

// records shows what arrived, so that a test can look at the other end.
func (h *Handlers) records(c *call.Control) (any, error) {
	query, err := c.Query("object", "after", "limit")
	if err != nil {
		return nil, err
	}
	after, limit, err := pageAfter(query, 100_000)
	if err != nil {
		return nil, err
	}
	// Objects are tables: there is no list over all of them.
	if query.Get("object") == "" {
		return nil, problem.InvalidField("object", "is required")
	}
	d, err := h.anyDestination(c.R.Context(), call.IDOf(c))
	if err != nil {
		return nil, err
	}
	// Custom destinations keep their records themselves; they are not here.
	kept, err := h.Gate.Store(d.ID, d.Type)
	if err != nil {
		return nil, problem.Refuse(http.StatusBadRequest, "destination %d keeps no records here: %v", d.ID, err)
	}
	if kept.Records == nil {
		return nil, problem.Refuse(http.StatusBadRequest, "the store of destination %d does not show its records", d.ID)
	}
	records, total, err := kept.Records(query.Get("object"), after, int(limit))
	if err != nil {
		return nil, problem.InvalidField("object", "%v", err)
	}
	// A list on the wire, also when it is empty.
	if records == nil {
		records = []json.RawMessage{}
	}
	return map[string]any{"records": records, "total": total}, nil
}

// anyDestination finds a destination by its id alone.
func (h *Handlers) anyDestination(ctx context.Context, id int64) (found *store.Destination, err error) {
	err = h.Shared.Store.View(ctx, func(tx *store.Tx) error {
		found, err = organizations.Among(tx, func(all *organizations.Outside) (*store.Destination, error) {
			for _, d := range all.Destinations {
				if d.ID == id {
					return d, nil
				}
			}
			return nil, store.ErrNotFound
		})
		if errors.Is(err, store.ErrNotFound) {
			return call.Gone("destination", id)
		}
		return err
	})
	return found, err
}
