package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/store"
)

// organizationRoutes give each test a world of its own within one service.
func (s *Server) organizationRoutes() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/organizations", "makes an organization with an admin, workspaces and all tokens: name, email, workspaces (names)", s.controlNewOrganization),
		call.Route("GET", "/organizations", "lists organizations with their users and workspaces", s.controlOrganizations),
		call.Route("DELETE", "/organizations/{id}", "deletes an organization with everything in it", s.controlDeleteOrganization),
		call.Route("POST", "/organizations/{id}/reset", "takes an organization back to how it was made; its tokens stay", s.controlResetOrganization),
		call.Route("POST", "/workspaces/{id}/key", "makes another API key of a workspace, which replaces the one before", s.controlWorkspaceKey),
		call.Route("POST", "/reset", "takes the service back to its first organization; journals, faults and mailbox are emptied, the clock runs on", s.controlReset),
	}
}

// controlNewOrganization answers with everything that a test needs to begin.
func (s *Server) controlNewOrganization(c *call.Control) (any, error) {
	var wish organizations.Wish
	if err := c.Body(&wish); err != nil {
		return nil, err
	}
	if err := wish.Check(); err != nil {
		return nil, err
	}
	made, err := s.organizations.Make(c.R.Context(), wish)
	if err != nil {
		return nil, err
	}
	return call.Status(http.StatusCreated, made), nil
}

// organizationShown is an organization as the list shows it, with the ids by which
// everything in it is called.
type organizationShown struct {
	ID         int64                   `json:"id"`
	Name       string                  `json:"name"`
	CreatedAt  api.Time                `json:"created_at"`
	Users      []organizationUser      `json:"users"`
	Workspaces []organizationWorkspace `json:"workspaces"`
}

type organizationUser struct {
	ID    int64  `json:"id"`
	Email string `json:"email"`
	Role  string `json:"role"`
}

type organizationWorkspace struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// controlOrganizations lists all of them; their tokens were shown when they
// were made.
func (s *Server) controlOrganizations(c *call.Control) (any, error) {
	list := []organizationShown{}
	err := s.store.View(c.R.Context(), func(tx *store.Tx) error {
		rows, err := store.Every(tx.Organizations)
		if err != nil {
			return err
		}
		for _, o := range rows {
			shown := organizationShown{ID: o.ID, Name: o.Name, CreatedAt: api.Time{Time: o.CreatedAt}, Users: []organizationUser{}, Workspaces: []organizationWorkspace{}}
			users, err := store.Every(func(p store.Page) ([]*store.User, int64, error) { return tx.Users(o.ID, p) })
			if err != nil {
				return err
			}
			for _, u := range users {
				shown.Users = append(shown.Users, organizationUser{u.ID, u.Email, u.Role})
			}
			workspaces, err := store.Every(func(p store.Page) ([]*store.Workspace, int64, error) { return tx.Workspaces(o.ID, p) })
			if err != nil {
				return err
			}
			for _, w := range workspaces {
				shown.Workspaces = append(shown.Workspaces, organizationWorkspace{w.ID, w.Name})
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

// controlWorkspaceKey gives a workspace another API key; the one before is worthless
// from then on.
func (s *Server) controlWorkspaceKey(c *call.Control) (any, error) {
	id, key := call.IDOf(c), ""
	err := s.store.Update(c.R.Context(), func(tx *store.Tx) (err error) {
		if _, err = tx.WorkspaceByID(id); errors.Is(err, store.ErrNotFound) {
			return call.Gone("workspace", id)
		} else if err != nil {
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

// controlDeleteOrganization deletes any organization, also the first one.
func (s *Server) controlDeleteOrganization(c *call.Control) (any, error) {
	if err := s.organizations.Delete(c.R.Context(), call.IDOf(c)); err != nil {
		return nil, err
	}
	return map[string]string{"status": api.StatusDeleted}, nil
}

// controlResetOrganization keeps what was there at the beginning, so that a
// client goes on with the tokens it has.
func (s *Server) controlResetOrganization(c *call.Control) (any, error) {
	id := call.IDOf(c)
	if err := s.organizations.Reset(c.R.Context(), id); err != nil {
		return nil, err
	}
	return call.Done, nil
}

// controlReset goes back to the first organization, as after the first start.
func (s *Server) controlReset(c *call.Control) (any, error) {
	ctx := c.R.Context()
	release, err := s.alone(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	// Work that was begun must not write into what is emptied.
	if err := s.lulled(ctx); err != nil {
		return nil, err
	}
	left, err := s.organizations.ResetAll(ctx)
	if err != nil {
		return nil, err
	}
	// What they hold is about things that are gone. So it goes, whether the caller is
	// still there or not.
	ctx = context.WithoutCancel(ctx)
	_, err = s.faults.Forget(ctx)
	if err := errors.Join(err, s.journal.Forget(ctx), s.organizations.Drop(left)); err != nil {
		return nil, err
	}
	return call.Done, nil
}
