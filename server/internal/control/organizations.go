package control

import (
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/store"
)

// OrganizationRoutes give each test its own world within one service.
func (h *Handlers) OrganizationRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/organizations", "makes an organization with an admin, workspaces and all tokens: name, email, workspaces (names)", h.newOrganization),
		call.Route("GET", "/organizations", "lists organizations with their users and workspaces", h.listOrganizations),
		call.Route("DELETE", "/organizations/{id}", "deletes an organization with everything in it", h.deleteOrganization),
		call.Route("POST", "/organizations/{id}/reset", "takes an organization back to how it was made; its tokens stay", h.resetOrganization),
		call.Route("POST", "/workspaces/{id}/key", "makes another API key of a workspace, which replaces the one before", h.workspaceKey),
	}
}

// newOrganization answers with everything that a test needs to begin.
func (h *Handlers) newOrganization(c *call.Control) (any, error) {
	var wish organizations.Wish
	if err := c.Body(&wish); err != nil {
		return nil, err
	}
	if err := wish.Check(); err != nil {
		return nil, err
	}
	made, err := h.Organizations.Make(c.R.Context(), wish)
	if err != nil {
		return nil, err
	}
	return call.Status(http.StatusCreated, made), nil
}

// listOrganizations lists all of them; their tokens were shown when they
// were made.
func (h *Handlers) listOrganizations(c *call.Control) (any, error) {
	list := []controlapi.Organization{}
	err := h.Shared.Store.View(c.R.Context(), func(tx *store.Tx) error {
		rows, err := store.Every(tx.Organizations)
		if err != nil {
			return err
		}
		for _, o := range rows {
			shown := controlapi.Organization{ID: o.ID, Name: o.Name, CreatedAt: api.Time{Time: o.CreatedAt}, Users: []controlapi.OrganizationUser{}, Workspaces: []controlapi.OrganizationWorkspace{}}
			users, err := store.Every(func(p store.Page) ([]*store.User, int64, error) { return store.Users.List(tx, o.ID, p) })
			if err != nil {
				return err
			}
			for _, u := range users {
				shown.Users = append(shown.Users, controlapi.OrganizationUser{ID: u.ID, Email: u.Email, Role: u.Role})
			}
			workspaces, err := store.Every(func(p store.Page) ([]*store.Workspace, int64, error) { return store.Workspaces.List(tx, o.ID, p) })
			if err != nil {
				return err
			}
			for _, w := range workspaces {
				shown.Workspaces = append(shown.Workspaces, controlapi.OrganizationWorkspace{ID: w.ID, Name: w.Name})
			}
			list = append(list, shown)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"organizations": list}, nil
}

// workspaceKey gives a workspace another API key; the one before is worthless
// from then on.
func (h *Handlers) workspaceKey(c *call.Control) (any, error) {
	id, key := call.IDOf(c), ""
	err := h.Shared.Store.Update(c.R.Context(), func(tx *store.Tx) (err error) {
		if _, err = call.Named(c, tx, store.Workspaces, "workspace"); err != nil {
			return err
		}
		key, err = tx.NewWorkspaceKey(id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return call.Status(http.StatusCreated, map[string]any{"workspace_id": id, "workspace_api_key": key}), nil
}

// deleteOrganization deletes any organization, also the first one.
func (h *Handlers) deleteOrganization(c *call.Control) (any, error) {
	if err := h.Organizations.Delete(c.R.Context(), call.IDOf(c)); err != nil {
		return nil, err
	}
	return map[string]string{"status": api.StatusDeleted}, nil
}

// resetOrganization keeps its initial contents, so that a client
// goes on with the tokens it has.
func (h *Handlers) resetOrganization(c *call.Control) (any, error) {
	id := call.IDOf(c)
	if err := h.Organizations.Reset(c.R.Context(), id); err != nil {
		return nil, err
	}
	return call.Done, nil
}
