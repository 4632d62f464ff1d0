package rest

import (
	"context"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// listDestinationObjects lists the objects with their fields (spec 2.3, 2.5).
func (h *Handlers) listDestinationObjects(c *call.Call) (*call.Reply, error) {
	_, objects, err := h.objectsOfPath(c)
	if err != nil {
		return nil, err
	}
	page := c.Page()
	shown := []*api.DestinationObject{}
	for _, o := range call.SlicePage(objects, page) {
		shown = append(shown, h.Shared.Dialect.Object(o))
	}
	return c.List(page, int64(len(objects)), shown)
}

// fetchDestinationObject finds one by its full_name, the identifier in syncs
// (spec 2.3).
func (h *Handlers) fetchDestinationObject(c *call.Call) (*call.Reply, error) {
	d, objects, err := h.objectsOfPath(c)
	if err != nil {
		return nil, err
	}
	name := c.R.PathValue("object_full_name")
	for _, o := range objects {
		if o.FullName == name {
			return call.OK(h.Shared.Dialect.Object(o))
		}
	}
	return nil, problem.Refuse(http.StatusNotFound, "destination %d has no object of that name", d.ID)
}

// objectsOfPath finds the destination of the path and its objects.
func (h *Handlers) objectsOfPath(c *call.Call) (*store.Destination, []*api.DestinationObject, error) {
	d, err := view(c, ownDestination)
	if err != nil {
		return nil, nil, err
	}
	objects, err := h.Destinations.Objects(c.Ctx, d)
	return d, objects, err
}

// refreshDestinationObjects starts a refresh; its key asks for the status.
func (h *Handlers) refreshDestinationObjects(c *call.Call) (*call.Reply, error) {
	d, err := view(c, ownDestination)
	if err != nil {
		return nil, err
	}
	return h.startRefresh(c, "objects", d.ID, func(ctx context.Context) error { return h.Destinations.Refresh(ctx, d) })
}

// fetchRefreshObjectsStatus tells how a refresh goes. The
// destination is looked up so that a key of another workspace is a 404.
func (h *Handlers) fetchRefreshObjectsStatus(c *call.Call) (*call.Reply, error) {
	d, err := view(c, ownDestination)
	if err != nil {
		return nil, err
	}
	return h.refreshStatus(c, "objects", d.ID)
}
