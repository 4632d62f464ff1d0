package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// workspaceInvitationBody is the body of POST and PUT
// /workspaces/{id}/invitations (spec 4).
type workspaceInvitationBody struct {
	Emails []string `json:"emails"`
	Role   string   `json:"role"`
}

// ownedWorkspace finds the workspace of the path and demands that the caller may invite.
func ownedWorkspace(c *call.Call, tx *store.Tx) (*store.Workspace, error) {
	w, err := ownWorkspace(c, tx)
	if err != nil {
		return nil, err
	}
	return w, requireRole(c, tx, w.ID, api.RoleOwner)
}

// inviting is what invitations are made in, by those who may.
func inviting(c *call.Call, tx *store.Tx) (int64, error) {
	w, err := ownedWorkspace(c, tx)
	if err != nil {
		return 0, err
	}
	return w.ID, nil
}

// createWorkspaceInvitation makes one invitation for each address; members of
// the organization join at once (spec 4.1.5). data is the first invitation.
func (h *Handlers) createWorkspaceInvitation(c *call.Call, body workspaceInvitationBody) (*call.Reply, error) {
	if err := checkEmails(body.Emails); err != nil {
		return nil, err
	}
	shown := []api.WorkspaceInvitation{}
	err := c.Update(func(tx *store.Tx) error {
		w, err := ownedWorkspace(c, tx)
		if err != nil {
			return err
		}
		// In one transaction: all are invited, or none.
		for n, email := range body.Emails {
			i, err := h.inviteToWorkspace(c, tx, w, n, strings.TrimSpace(email), body.Role)
			if err != nil {
				return err
			}
			shown = append(shown, organizations.WorkspaceInvitationOf(i))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &call.Reply{Code: http.StatusOK, Body: struct {
		api.Reply
		Invitations []api.WorkspaceInvitation `json:"invitations"`
	}{api.Reply{Status: api.StatusSuccess, Data: shown[0]}, shown}}, nil
}

// checkEmails refuses an empty list and an address given twice.
func checkEmails(emails []string) error {
	if len(emails) == 0 {
		return problem.InvalidField("emails", "must name at least one address")
	}
	var problems []api.Problem
	seen := map[string]bool{}
	for n, email := range emails {
		key := strings.ToLower(strings.TrimSpace(email))
		if seen[key] {
			problems = append(problems, api.Problem{Field: fmt.Sprintf("emails[%d]", n), Message: "is named twice"})
		}
		seen[key] = true
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// inviteToWorkspace makes the n-th invitation of a call.
func (h *Handlers) inviteToWorkspace(c *call.Call, tx *store.Tx, w *store.Workspace, n int, email, role string) (*store.WorkspaceInvitation, error) {
	i := &store.WorkspaceInvitation{WorkspaceID: w.ID, Email: email, Role: role, CreatedByID: c.Who.User.ID}
	open, err := tx.OpenWorkspaceInvitation(w.ID, email)
	if err == nil {
		return nil, problem.ConflictField(fmt.Sprintf("emails[%d]", n), "invitation %d for this address is still open; change or delete it", open.ID)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	// spec 4.1.5: who is in the organization already joins at once.
	member, err := tx.UserByEmail(w.OrganizationID, email)
	switch {
	case err == nil:
		i.ClaimedAt, i.ClaimedByID = h.Clock.Now(), &member.ID
		if err := organizations.JoinWorkspaces(tx, member, []*store.WorkspaceInvitation{i}); err != nil {
			return nil, err
		}
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	default:
		if err := h.mailInvitation(tx, w.OrganizationID, &w.ID, email, role); err != nil {
			return nil, err
		}
	}
	return i, store.WorkspaceInvitations.Create(tx, i)
}

// apply sets the role that the user gets when claiming (spec 4.1.6); afterwards it cannot
// be changed here.
func (b workspaceInvitationBody) apply(_ *call.Call, i *store.WorkspaceInvitation) error {
	if i.ClaimedByID != nil {
		return errClaimed
	}
	i.Role = b.Role
	return nil
}
