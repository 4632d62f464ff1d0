package control

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// dataRoutes serve both ends of a sync: they make source data, and show what a
// destination has got.
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
	var access sources.Access
	err := h.Shared.Store.View(c.R.Context(), func(tx *store.Tx) error {
		src, err := call.Named(c, tx, store.Sources, "source")
		if err == nil {
			access, err = h.Sources.Access(tx, src)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := h.Sources.Execute(c.R.Context(), access, body.SQL); err != nil {
		return nil, err
	}
	return call.Done, nil
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
	d, err := store.Read(c.R.Context(), h.Shared.Store, func(tx *store.Tx) (*store.Destination, error) {
		return call.Named(c, tx, store.Destinations, "destination")
	})
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
