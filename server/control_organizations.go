package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/rest"
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

// organizationTokens is a new organization with everything to call it by. It is
// shown once: personal access tokens are kept as hashes.
type organizationTokens struct {
	OrganizationID      int64             `json:"organization_id"`
	UserID              int64             `json:"user_id"`
	Email               string            `json:"email"`
	WorkspaceID         int64             `json:"workspace_id"` // the first
	PersonalAccessToken string            `json:"personal_access_token"`
	WorkspaceAPIKey     string            `json:"workspace_api_key"` // of the first
	Workspaces          []workspaceTokens `json:"workspaces"`
}

// workspaceTokens is a workspace with the key that opens it.
type workspaceTokens struct {
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	APIKey string `json:"api_key"`
}

// organizationWish is the body of POST /_control/organizations.
type organizationWish struct {
	Name       string   `json:"name"`
	Email      string   `json:"email"`
	Workspaces []string `json:"workspaces"`

	own bool // of who runs the service
}

// check fills in what is left out, then names all that is wrong.
func (w *organizationWish) check() error {
	if w.Name == "" {
		w.Name = "Organization"
	}
	if w.Email == "" {
		// A reserved domain: no mistake can send mail to anybody.
		w.Email = "owner@example.com"
	}
	if len(w.Workspaces) == 0 {
		w.Workspaces = []string{"Workspace"}
	}
	problems := append(rest.CheckName("name", w.Name), checkAddress("email", w.Email)...)
	for i, name := range w.Workspaces {
		field := fmt.Sprintf("workspaces[%d]", i)
		problems = append(problems, rest.CheckName(field, name)...)
		if slices.Contains(w.Workspaces[:i], name) {
			problems = append(problems, api.Problem{Field: field, Message: "is named twice"})
		}
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// checkAddress demands what an e-mail address cannot do without.
func checkAddress(field, email string) []api.Problem {
	name, host, found := strings.Cut(email, "@")
	if !found || name == "" || host == "" || strings.ContainsAny(email, " \t\r\n<>,;\"") || strings.Contains(host, "@") {
		return []api.Problem{{Field: field, Message: "must be an e-mail address"}}
	}
	return nil
}

// controlNewOrganization answers with everything that a test needs to begin.
func (s *Server) controlNewOrganization(c *call.Control) (any, error) {
	var wish organizationWish
	if err := c.Body(&wish); err != nil {
		return nil, err
	}
	if err := wish.check(); err != nil {
		return nil, err
	}
	made, err := s.makeOrganization(c.R.Context(), wish)
	if err != nil {
		return nil, err
	}
	return call.Status(http.StatusCreated, made), nil
}

// makeOrganization makes an organization in one transaction.
func (s *Server) makeOrganization(ctx context.Context, wish organizationWish) (made *organizationTokens, err error) {
	err = s.store.Update(ctx, func(tx *store.Tx) error {
		first, err := newOrganization(tx, wish.Name, wish.Email, wish.Workspaces[0])
		if err == nil && wish.own {
			err = adoptOrganizations(tx, first.OrganizationID)
		}
		if err != nil {
			return err
		}
		made = &organizationTokens{
			OrganizationID: first.OrganizationID, UserID: first.UserID, Email: first.Email,
			WorkspaceID: first.WorkspaceID, PersonalAccessToken: first.PersonalAccessToken,
			WorkspaceAPIKey: first.WorkspaceAPIKey,
			Workspaces:      []workspaceTokens{{first.WorkspaceID, wish.Workspaces[0], first.WorkspaceAPIKey}},
		}
		for _, name := range wish.Workspaces[1:] {
			w := &store.Workspace{OrganizationID: first.OrganizationID, Name: name, NotificationEmails: []string{}, Initial: true}
			if err := tx.CreateWorkspace(w); err != nil {
				return err
			}
			if err := tx.PutMembership(&store.Membership{WorkspaceID: w.ID, UserID: first.UserID, Role: api.RoleOwner, Initial: true}); err != nil {
				return err
			}
			key, err := tx.NewWorkspaceKey(w.ID)
			if err != nil {
				return err
			}
			made.Workspaces = append(made.Workspaces, workspaceTokens{w.ID, name, key})
		}
		return nil
	})
	return made, err
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
	if err := s.deleteOrganization(c.R.Context(), call.IDOf(c)); err != nil {
		return nil, err
	}
	return map[string]string{"status": api.StatusDeleted}, nil
}

// deleteOrganization deletes an organization with all that it keeps outside.
func (s *Server) deleteOrganization(ctx context.Context, id int64) error {
	return s.clearOrganization(ctx, id, func(tx *store.Tx) error { return tx.DeleteOrganization(id) })
}

// controlResetOrganization keeps what was there at the beginning, so that a
// client goes on with the tokens it has.
func (s *Server) controlResetOrganization(c *call.Control) (any, error) {
	id := call.IDOf(c)
	err := s.clearOrganization(c.R.Context(), id, func(tx *store.Tx) error { return tx.ResetOrganization(id) })
	if err != nil {
		return nil, err
	}
	return call.Done, nil
}

// clearOrganization runs a change that deletes, then drops what stood outside.
func (s *Server) clearOrganization(ctx context.Context, id int64, change func(*store.Tx) error) error {
	var left outside
	err := s.store.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Organization(id); err != nil {
			return err
		}
		if err := left.gather(tx, id); err != nil {
			return err
		}
		return change(tx)
	})
	if err != nil {
		return err
	}
	// After the commit: a failed transaction must leave the files alone, and
	// files without a row are only litter.
	return left.drop(s)
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
	var left outside
	err = s.store.Update(ctx, func(tx *store.Tx) error {
		first, err := firstOrganization(tx)
		if err != nil {
			return err
		}
		all, err := store.Every(tx.Organizations)
		if err != nil {
			return err
		}
		for _, o := range all {
			if err := left.gather(tx, o.ID); err != nil {
				return err
			}
			if o.ID == first {
				err = tx.ResetOrganization(o.ID)
			} else {
				err = tx.DeleteOrganization(o.ID)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// What they hold is about things that are gone. So it goes, whether the caller is
	// still there or not.
	ctx = context.WithoutCancel(ctx)
	_, err = s.faults.Forget(ctx)
	if err := errors.Join(err, s.journal.Forget(ctx), left.drop(s)); err != nil {
		return nil, err
	}
	return call.Done, nil
}

// firstOrganization is the organization that the first start made, 0 when it
// was deleted.
func firstOrganization(tx *store.Tx) (int64, error) {
	setting, err := tx.Setting(settingFirst)
	if err != nil {
		return 0, err
	}
	var userID, workspaceID int64
	if _, err := fmt.Sscan(setting, &userID, &workspaceID); err != nil {
		return 0, fmt.Errorf("read setting %s: %w", settingFirst, err)
	}
	w, err := tx.WorkspaceByID(workspaceID)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return w.OrganizationID, nil
}
