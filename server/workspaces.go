package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/destkit/destkit/server/api"
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
		problems = append(problems, checkName("name", w.Name)...)
	}
	if b.NotificationEmails != nil {
		w.NotificationEmails = append([]string{}, *b.NotificationEmails...)
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// maxName is the longest name in characters, as the document has it.
const maxName = 255

// checkName refuses names that a person could not read: empty ones, those with
// control characters, and, where no document looks at them as in a seed, very
// long ones. Any other Unicode is welcome.
func checkName(field, name string) []api.Problem {
	if strings.TrimSpace(name) == "" {
		return []api.Problem{{Field: field, Message: "must not be empty"}}
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return []api.Problem{{Field: field, Message: "must not hold control characters"}}
	}
	if utf8.RuneCountInString(name) > maxName {
		return []api.Problem{{Field: field, Message: fmt.Sprintf("must have at most %d characters", maxName)}}
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
func (s *Server) listWorkspaces(c *call) (*reply, error) {
	return pageOf(c, func(tx *store.Tx, page store.Page) ([]*store.Workspace, int64, error) {
		return tx.Workspaces(c.who.OrganizationID, page)
	}, workspaceOf)
}

// createWorkspace answers 201 with the status success (spec 4); the key is
// shown only when asked for (spec 4.1.7). The creator becomes its owner.
func (s *Server) createWorkspace(c *call) (*reply, error) {
	if err := c.requireAdmin(); err != nil {
		return nil, err
	}
	var body workspaceBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	w := &store.Workspace{OrganizationID: c.who.OrganizationID, NotificationEmails: []string{}}
	if err := body.apply(w); err != nil {
		return nil, err
	}
	var key string
	err := c.update(func(tx *store.Tx) (err error) {
		if err := tx.CreateWorkspace(w); err != nil {
			return err
		}
		if err := tx.CreateMembership(&store.Membership{WorkspaceID: w.ID, UserID: c.who.User.ID, Role: api.RoleOwner}); err != nil {
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
	return &reply{code: http.StatusCreated, body: api.Reply{Status: api.StatusSuccess, Data: shown}}, nil
}

// workspace finds the workspace of the path within the caller's organization.
func (c *call) workspace(tx *store.Tx) (*store.Workspace, error) {
	return tx.Workspace(c.who.OrganizationID, c.id("workspace_id"))
}

// may refuses users who are neither admins of the organization nor have one of
// the roles in the workspace.
func (c *call) may(tx *store.Tx, workspaceID int64, roles ...string) error {
	if c.who.admin() {
		return nil
	}
	m, err := tx.Membership(workspaceID, c.who.User.ID)
	if err == nil && slices.Contains(roles, m.Role) {
		return nil
	}
	return problem.Refuse(http.StatusForbidden, "only admins of the organization and %s of the workspace may do this", strings.Join(roles, "s and ")+"s")
}

// fetchWorkspace shows one of the organization's.
func (s *Server) fetchWorkspace(c *call) (*reply, error) {
	return oneOf(c, c.workspace, workspaceOf)
}

// fetchOwnWorkspace shows the workspace that the key belongs to.
func (s *Server) fetchOwnWorkspace(c *call) (*reply, error) {
	return ok(workspaceOf(c.who.Workspace))
}

// updateWorkspace is for admins and owners of the workspace. Nobody publishes who
// may do what, so the roles are taken at their names.
func (s *Server) updateWorkspace(c *call) (*reply, error) {
	var body workspaceBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	var shown api.Workspace
	err := c.update(func(tx *store.Tx) error {
		w, err := c.workspace(tx)
		if err != nil {
			return err
		}
		if err := c.may(tx, w.ID, api.RoleOwner); err != nil {
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
	return updated(shown)
}

// deleteWorkspace deletes everything in it as well: nothing published says that a
// workspace must be empty.
func (s *Server) deleteWorkspace(c *call) (*reply, error) {
	if err := c.requireAdmin(); err != nil {
		return nil, err
	}
	err := c.update(func(tx *store.Tx) error {
		w, err := c.workspace(tx)
		if err != nil {
			return err
		}
		return tx.DeleteWorkspace(w.OrganizationID, w.ID)
	})
	if err != nil {
		return nil, err
	}
	return deleted()
}

// fetchWorkspaceKey shows the API key again, to those who may use it.
func (s *Server) fetchWorkspaceKey(c *call) (*reply, error) {
	var key string
	err := c.view(func(tx *store.Tx) error {
		w, err := c.workspace(tx)
		if err != nil {
			return err
		}
		if err := c.may(tx, w.ID, api.RoleOwner, api.RoleEditor); err != nil {
			return err
		}
		key, err = tx.WorkspaceKey(w.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	body := map[string]any{"api_key": key}
	if !s.dialect.BareKeys {
		body["status"] = api.StatusSuccess
	}
	return &reply{code: http.StatusOK, body: body}, nil
}

// listWorkspaceUsers shows the role in the workspace, not that in the
// organization: the list is about the workspace.
func (s *Server) listWorkspaceUsers(c *call) (*reply, error) {
	return pageOf(c, func(tx *store.Tx, page store.Page) ([]store.Member, int64, error) {
		w, err := c.workspace(tx)
		if err != nil {
			return nil, 0, err
		}
		return tx.Members(w.ID, page)
	}, func(m store.Member) api.User { return userOf(m.User, m.Role) })
}
