package rest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/destinations"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// serviceConnectionIn is the body of POST and PATCH /destinations (spec 4).
func serviceConnectionIn(c *call.Call) (api.ServiceConnection, error) {
	var body struct {
		Connection api.ServiceConnection `json:"service_connection"`
	}
	err := c.Decode(&body)
	return body.Connection, err
}

// ownDestination finds the destination of the path.
var ownDestination = one(callersWorkspace, "destination_id", store.Destinations.Read)

// listDestinations shows the objects of the cache only: a list must not wait
// for every destination in it.
func (h *Handlers) listDestinations(c *call.Call) (*call.Reply, error) {
	page := c.Page()
	shown := []*api.Destination{}
	var total int64
	err := c.View(func(tx *store.Tx) error {
		rows, n, err := store.Destinations.List(tx, c.Who.WorkspaceID, page)
		if err != nil {
			return err
		}
		for _, d := range rows {
			cached, err := destinations.Kept(tx, d.ID)
			if err != nil {
				return err
			}
			// Sealed in the store, so they are opened for each row.
			credentials, err := tx.DestinationCredentials(d.ID)
			if err != nil {
				return err
			}
			shown = append(shown, h.destinationOf(d, credentials, cached.Objects, false))
		}
		total = n
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.List(page, total, shown)
}

// destinationOf shows a destination; update is whether the reply is that of an
// update, which shows more in the spec dialect (spec 2.2). connection_details
// hold the URL, a secret that is stored sealed only, so they are built from the
// credentials each time.
func (h *Handlers) destinationOf(d *store.Destination, credentials map[string]json.RawMessage, objects []*api.DestinationObject, update bool) *api.Destination {
	files := h.Gate.FileSystem(d.Type)
	shown := &api.Destination{
		ID: d.ID, Name: d.Name, Type: d.Type, CreatedAt: api.Time{Time: d.CreatedAt},
		LastTestResults: d.TestResults, LastTestSucceeded: d.TestSucceeded, LastTestedAt: api.At(d.TestedAt),
		ConnectionDetails: h.Gate.Details(d.Type, credentials), IsFileSystemDestination: &files,
		Objects: append([]*api.DestinationObject{}, objects...),
	}
	if shown.ConnectionDetails == nil {
		shown.ConnectionDetails = map[string]any{}
	}
	h.Shared.Dialect.Destination(shown, update)
	return shown
}

// createDestination stores the connection, then tests it (spec 3). A test that
// fails does not undo the creation: its steps hold the reason.
func (h *Handlers) createDestination(c *call.Call) (*call.Reply, error) {
	given, err := serviceConnectionIn(c)
	if err != nil {
		return nil, err
	}
	d := &store.Destination{WorkspaceID: c.Who.WorkspaceID}
	var problems []api.Problem
	if given.Name != nil {
		d.Name = strings.TrimSpace(*given.Name)
	}
	problems = append(problems, organizations.CheckName("service_connection.name", d.Name)...)
	if given.Type != nil {
		d.Type = *given.Type
	}
	given.Credentials = h.forgive(c, d.Type, given.Credentials)
	credentials, more := h.Gate.CheckConnection(d.Type, given.Credentials, nil)
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	if err := c.Update(func(tx *store.Tx) error { return tx.CreateDestination(d, credentials) }); err != nil {
		return nil, err
	}
	// The connection exists from here on, even if its client has stopped waiting.
	objects, err := h.Destinations.Test(context.WithoutCancel(c.Ctx), d, credentials)
	if err != nil {
		return nil, err
	}
	return call.Created(h.destinationOf(d, credentials, objects, false))
}

// forgive gives the credentials that are meant. The live dialect reads each value
// as its field means it, and keeps out what the type does not have, with a
// warning.
func (h *Handlers) forgive(c *call.Call, typ string, credentials map[string]json.RawMessage) map[string]json.RawMessage {
	if h.Shared.Dialect.UnknownFields {
		credentials = maps.Clone(credentials)
		for _, name := range h.Gate.Unknown(typ, credentials) {
			delete(credentials, name)
			c.Warnings = append(c.Warnings, "unknown field service_connection.credentials."+foreign.Clip(name, 200)+" was ignored")
		}
	}
	if h.Shared.Dialect.CredentialsCoerced {
		credentials = h.Gate.Coerce(typ, credentials)
	}
	return credentials
}

// fetchDestination shows a destination with its objects, which are fetched
// again when they are old.
func (h *Handlers) fetchDestination(c *call.Call) (*call.Reply, error) {
	d, err := view(c, ownDestination)
	if err != nil {
		return nil, err
	}
	// A destination that cannot be reached at the moment still exists.
	objects, _ := h.Destinations.Objects(c.Ctx, d) // an endpoint that is away shows none
	if gone := c.Ctx.Err(); gone != nil {
		return nil, gone
	}
	credentials, err := view(c, func(c *call.Call, tx *store.Tx) (map[string]json.RawMessage, error) {
		return tx.DestinationCredentials(d.ID)
	})
	if err != nil {
		return nil, err
	}
	return call.OK(h.destinationOf(d, credentials, objects, false))
}

// updateDestination changes name and credentials, then tests again. Omitted
// fields stay; the type cannot change.
func (h *Handlers) updateDestination(c *call.Call) (*call.Reply, error) {
	given, err := serviceConnectionIn(c)
	if err != nil {
		return nil, err
	}
	var d *store.Destination
	var credentials map[string]json.RawMessage
	// One transaction reads and writes, so updates that come together follow
	// one another.
	err = c.Update(func(tx *store.Tx) (err error) {
		if d, err = ownDestination(c, tx); err != nil {
			return err
		}
		stored, err := tx.DestinationCredentials(d.ID)
		if err != nil {
			return err
		}
		given.Credentials = h.forgive(c, d.Type, given.Credentials)
		if credentials, err = h.changeConnection(d, given, stored); err != nil {
			return err
		}
		if err := tx.SaveDestination(d, credentials); err != nil {
			return err
		}
		return tx.DropObjectCache(d.ID)
	})
	if err != nil {
		return nil, err
	}
	// Connections opened with the old credentials must not serve the new ones.
	if err := h.Gate.Forget(d.ID); err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(c.Ctx)
	objects, err := h.Destinations.Test(ctx, d, credentials)
	if err != nil {
		return nil, err
	}
	return call.Updated(h.destinationOf(d, credentials, objects, true))
}

// changeConnection applies an update to d and gives the new credentials.
func (h *Handlers) changeConnection(d *store.Destination, given api.ServiceConnection, stored map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	var problems []api.Problem
	if given.Name != nil {
		d.Name = strings.TrimSpace(*given.Name)
		problems = append(problems, organizations.CheckName("service_connection.name", d.Name)...)
	}
	if given.Type != nil && *given.Type != d.Type {
		problems = append(problems, api.Problem{Field: "service_connection.type", Message: "cannot be changed; the destination is of type " + d.Type})
	}
	credentials, more := h.Gate.CheckConnection(d.Type, given.Credentials, stored)
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, problem.Invalid(problems)
	}
	return credentials, nil
}

// deleteDestination refuses while a sync uses it; the store knows.
func (h *Handlers) deleteDestination(c *call.Call) (*call.Reply, error) {
	d, err := view(c, ownDestination)
	if err != nil {
		return nil, err
	}
	err = c.Update(func(tx *store.Tx) error { return store.Destinations.Delete(tx, d.WorkspaceID, d.ID) })
	if err != nil {
		return nil, err
	}
	if err := h.Gate.Remove(d.ID, d.Type); err != nil {
		h.Log.Warn("records of a deleted destination stay", "destination", d.ID, "error", err)
	}
	return call.Deleted()
}

// listConnectors lists the destination types.
func (h *Handlers) listConnectors(c *call.Call) (*call.Reply, error) {
	page := c.Page()
	all := h.Gate.Types()
	shown := []api.Connector{}
	for _, t := range call.SlicePage(all, page) {
		t.CreatableViaConnectLink = t.CreatableViaAPI && t.ConfigurationFields.Linkable()
		t.ConfigurationFields.Fields = h.Shared.Dialect.Fields(t.ConfigurationFields.Fields)
		shown = append(shown, t)
	}
	return c.List(page, int64(len(all)), shown)
}

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

// refreshDestinationObjects starts a refresh; its key is used to fetch the status.
func (h *Handlers) refreshDestinationObjects(c *call.Call) (*call.Reply, error) {
	d, err := view(c, ownDestination)
	if err != nil {
		return nil, err
	}
	return h.startRefresh(c, "objects", d.ID, func(ctx context.Context) error { return h.Destinations.Refresh(ctx, d) })
}

// fetchRefreshObjectsStatus reports the status of a refresh. The
// destination is looked up so that a key of another workspace is a 404.
func (h *Handlers) fetchRefreshObjectsStatus(c *call.Call) (*call.Reply, error) {
	d, err := view(c, ownDestination)
	if err != nil {
		return nil, err
	}
	return h.refreshStatus(c, "objects", d.ID)
}
