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

// apply sets the fields of the body and returns their problems.
func (b workspaceBody) apply(_ *call.Call, w *store.Workspace) error {
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

// createWorkspace answers 201 with the status success (spec 4); the key is
// shown only on request (spec 4.1.7). The creator becomes its owner.
func (h *Handlers) createWorkspace(c *call.Call, body workspaceBody) (*call.Reply, error) {
	w := &store.Workspace{OrganizationID: c.Who.OrganizationID, NotificationEmails: []string{}}
	if err := body.apply(c, w); err != nil {
		return nil, err
	}
	var key string
	err := c.Update(func(tx *store.Tx) (err error) {
		if err := store.Workspaces.Create(tx, w); err != nil {
			return err
		}
		if err := store.Memberships.Create(tx, &store.Membership{WorkspaceID: w.ID, UserID: c.Who.User.ID, Role: api.RoleOwner}); err != nil {
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
var ownWorkspace = one(callersOrganization, "workspace_id", store.Workspaces.Read)

// workspaceOfPath is what the lists of a workspace belong to.
func workspaceOfPath(c *call.Call, tx *store.Tx) (int64, error) {
	w, err := ownWorkspace(c, tx)
	if err != nil {
		return 0, err
	}
	return w.ID, nil
}

// userOf shows a member of the organization (spec 2.14).
func userOf(u *store.User) api.User { return organizations.UserOf(u, u.Role) }

// memberOf shows the role in the workspace, not that in the organization: the list is
// about the workspace.
func memberOf(m store.Member) api.User { return organizations.UserOf(m.User, m.Role) }

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

// fetchOwnWorkspace shows the workspace that the key belongs to.
func (h *Handlers) fetchOwnWorkspace(c *call.Call) (*call.Reply, error) {
	return call.OK(workspaceOf(c.Who.Workspace))
}

// fetchWorkspaceKey shows the API key again, to those who may use it.
func (h *Handlers) fetchWorkspaceKey(c *call.Call) (*call.Reply, error) {
	key, err := view(c, func(c *call.Call, tx *store.Tx) (string, error) {
		w, err := ownWorkspace(c, tx)
		if err != nil {
			return "", err
		}
		if err := requireRole(c, tx, w.ID, api.RoleOwner, api.RoleEditor); err != nil {
			return "", err
		}
		return tx.WorkspaceKey(w.ID)
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
