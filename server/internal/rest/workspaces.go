package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// workspaceBody is the body of POST and PATCH /workspaces (spec 4).
type workspaceBody struct {
	Name               *string   `json:"name"`
	NotificationEmails *[]string `json:"notification_emails"`
	ReturnKey          bool      `json:"return_workspace_api_key"`
}

// apply sets what the body holds and names what is wrong with it.
func (b workspaceBody) apply(w *store.Workspace) error {
	var problems []api.Problem
	if b.Name != nil {
		w.Name = strings.TrimSpace(*b.Name)
		problems = append(problems, organizations.CheckName("name", w.Name)...)
	}
	if b.NotificationEmails != nil {
		w.NotificationEmails = append([]string{}, *b.NotificationEmails...)
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// workspaceOf shows a workspace without its key (spec 2.14).
func workspaceOf(w *store.Workspace) api.Workspace {
	emails := w.NotificationEmails
	if emails == nil {
		emails = []string{}
	}
	return api.Workspace{
		ID: w.ID, Name: w.Name, OrganizationID: w.OrganizationID,
		CreatedAt: api.Time{Time: w.CreatedAt}, NotificationEmails: emails,
	}
}

// listWorkspaces lists those of the organization, also where the user is no
// member.
func (h *Handlers) listWorkspaces(c *call.Call) (*call.Reply, error) {
	return call.PageOf(c, func(tx *store.Tx, page store.Page) ([]*store.Workspace, int64, error) {
		return tx.Workspaces(c.Who.OrganizationID, page)
	}, workspaceOf)
}

// createWorkspace answers 201 with the status success (spec 4); the key is
// shown only when asked for (spec 4.1.7). The creator becomes its owner.
func (h *Handlers) createWorkspace(c *call.Call) (*call.Reply, error) {
	if err := call.RequireAdmin(c); err != nil {
		return nil, err
	}
	var body workspaceBody
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	w := &store.Workspace{OrganizationID: c.Who.OrganizationID, NotificationEmails: []string{}}
	if err := body.apply(w); err != nil {
		return nil, err
	}
	var key string
	err := c.Update(func(tx *store.Tx) (err error) {
		if err := tx.CreateWorkspace(w); err != nil {
			return err
		}
		if err := tx.CreateMembership(&store.Membership{WorkspaceID: w.ID, UserID: c.Who.User.ID, Role: api.RoleOwner}); err != nil {
			return err
		}
		key, err = tx.NewWorkspaceKey(w.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	shown := workspaceOf(w)
	if body.ReturnKey {
		shown.APIKey = &key
	}
	return &call.Reply{Code: http.StatusCreated, Body: api.Reply{Status: api.StatusSuccess, Data: shown}}, nil
}

// ownWorkspace finds the workspace of the path within the caller's organization.
func ownWorkspace(c *call.Call, tx *store.Tx) (*store.Workspace, error) {
	return tx.Workspace(c.Who.OrganizationID, c.ID("workspace_id"))
}

// requireRole refuses users who are neither admins of the organization nor have one of
// the roles in the workspace.
func requireRole(c *call.Call, tx *store.Tx, workspaceID int64, roles ...string) error {
	if c.Who.Admin() {
		return nil
	}
	m, err := tx.Membership(workspaceID, c.Who.User.ID)
	if err == nil && slices.Contains(roles, m.Role) {
		return nil
	}
	return problem.Refuse(http.StatusForbidden, "only admins of the organization and %s of the workspace may do this", strings.Join(roles, "s and ")+"s")
}

// fetchWorkspace shows one of the organization's.
func (h *Handlers) fetchWorkspace(c *call.Call) (*call.Reply, error) {
	return call.OneOf(c, ownWorkspace, workspaceOf)
}

// fetchOwnWorkspace shows the workspace that the key belongs to.
func (h *Handlers) fetchOwnWorkspace(c *call.Call) (*call.Reply, error) {
	return call.OK(workspaceOf(c.Who.Workspace))
}

// updateWorkspace is for admins and owners of the workspace. It is not published who
// may do what, so the roles are taken at their names.
func (h *Handlers) updateWorkspace(c *call.Call) (*call.Reply, error) {
	var body workspaceBody
	if err := c.Decode(&body); err != nil {
		return nil, err
	}
	var shown api.Workspace
	err := c.Update(func(tx *store.Tx) error {
		w, err := ownWorkspace(c, tx)
		if err != nil {
			return err
		}
		if err := requireRole(c, tx, w.ID, api.RoleOwner); err != nil {
			return err
		}
		if err := body.apply(w); err != nil {
			return err
		}
		if err := tx.SaveWorkspace(w); err != nil {
			return err
		}
		shown = workspaceOf(w)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return call.Updated(shown)
}

// deleteWorkspace deletes everything in it as well: nothing published says that a
// workspace must be empty.
func (h *Handlers) deleteWorkspace(c *call.Call) (*call.Reply, error) {
	if err := call.RequireAdmin(c); err != nil {
		return nil, err
	}
	err := c.Update(func(tx *store.Tx) error {
		w, err := ownWorkspace(c, tx)
		if err != nil {
			return err
		}
		return tx.DeleteWorkspace(w.OrganizationID, w.ID)
	})
	if err != nil {
		return nil, err
	}
	return call.Deleted()
}

// fetchWorkspaceKey shows the API key again, to those who may use it.
func (h *Handlers) fetchWorkspaceKey(c *call.Call) (*call.Reply, error) {
	var key string
	err := c.View(func(tx *store.Tx) error {
		w, err := ownWorkspace(c, tx)
		if err != nil {
			return err
		}
		if err := requireRole(c, tx, w.ID, api.RoleOwner, api.RoleEditor); err != nil {
			return err
		}
		key, err = tx.WorkspaceKey(w.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	body := map[string]any{"api_key": key}
	if !h.Shared.Dialect.BareKeys {
		body["status"] = api.StatusSuccess
	}
	return &call.Reply{Code: http.StatusOK, Body: body}, nil
}

// listWorkspaceUsers shows the role in the workspace, not that in the
// organization: the list is about the workspace.
func (h *Handlers) listWorkspaceUsers(c *call.Call) (*call.Reply, error) {
	return call.PageOf(c, func(tx *store.Tx, page store.Page) ([]store.Member, int64, error) {
		w, err := ownWorkspace(c, tx)
		if err != nil {
			return nil, 0, err
		}
		return tx.Members(w.ID, page)
	}, func(m store.Member) api.User { return organizations.UserOf(m.User, m.Role) })
}
