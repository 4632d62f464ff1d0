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

// invitationBody is the body of POST and PATCH /invitations (spec 4).
type invitationBody struct {
	Email      string `json:"email"`
	Role       string `json:"role"`
	Workspaces []struct {
		ID   int64  `json:"id"`
		Role string `json:"role"`
	} `json:"workspaces"`
}

// createInvitation invites to the organization and to the listed workspaces;
// who is a member already is added to them at once (spec 4.1.5).
func (h *Handlers) createInvitation(c *call.Call, body invitationBody) (*call.Reply, error) {
	i := &store.Invitation{
		OrganizationID: c.Who.OrganizationID, Email: strings.TrimSpace(body.Email),
		Role: body.Role, CreatedByID: c.Who.User.ID,
	}
	err := c.Update(func(tx *store.Tx) error {
		// Within the transaction: a workspace must not go between the check and
		// the invitation.
		if err := invitedWorkspaces(c, tx, i, body); err != nil {
			return err
		}
		// spec 4.1.5: who is in the organization already has nothing to claim.
		member, err := tx.UserByEmail(i.OrganizationID, i.Email)
		switch {
		case err == nil:
			i.ClaimedAt, i.ClaimedByID = h.Clock.Now(), &member.ID
			for _, part := range i.Workspaces {
				part.ClaimedAt, part.ClaimedByID = i.ClaimedAt, i.ClaimedByID
			}
		case !errors.Is(err, store.ErrNotFound):
			return err
		default:
			if err := refuseSecond(c, tx, i.Email); err != nil {
				return err
			}
		}
		if err := tx.CreateInvitation(i); err != nil {
			return err
		}
		if member != nil {
			return organizations.JoinWorkspaces(tx, member, i.Workspaces)
		}
		return h.mailInvitation(tx, i.OrganizationID, nil, i.Email, i.Role)
	})
	if err != nil {
		return nil, err
	}
	return call.OK(organizations.InvitationOf(i))
}

// invitedWorkspaces fills the associated invitations; every workspace must be
// one of the organization, named once.
func invitedWorkspaces(c *call.Call, tx *store.Tx, i *store.Invitation, body invitationBody) error {
	var problems []api.Problem
	seen := map[int64]bool{}
	for n, w := range body.Workspaces {
		field := fmt.Sprintf("workspaces[%d].id", n)
		_, err := store.Workspaces.Read(tx, c.Who.OrganizationID, w.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			problems = append(problems, api.Problem{Field: field, Message: "there is no such workspace in the organization"})
		case err != nil:
			return err
		case seen[w.ID]:
			problems = append(problems, api.Problem{Field: field, Message: "is named twice"})
		}
		// Also unknown ones, so that each mistake is reported once.
		seen[w.ID] = true
		i.Workspaces = append(i.Workspaces, &store.WorkspaceInvitation{
			WorkspaceID: w.ID, Email: i.Email, Role: w.Role, CreatedByID: i.CreatedByID,
		})
	}
	if len(problems) > 0 {
		return problem.Invalid(problems)
	}
	return nil
}

// refuseSecond refuses a second open invitation for one address.
func refuseSecond(c *call.Call, tx *store.Tx, email string) error {
	open, err := tx.OpenInvitation(c.Who.OrganizationID, email)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return problem.ConflictField("email", "invitation %d for this address is still open; change or delete it", open.ID)
}

// mailInvitation puts the e-mail of an invitation into the mailbox.
func (h *Handlers) mailInvitation(tx *store.Tx, organizationID int64, workspaceID *int64, email, role string) error {
	o, err := tx.Organization(organizationID)
	if err != nil {
		return err
	}
	return h.Mail.Keep(tx, &store.Mail{
		OrganizationID: organizationID, WorkspaceID: workspaceID, Kind: organizations.InvitationMail, To: []string{email},
		Subject: "You are invited to " + o.Name,
		Text:    fmt.Sprintf("You are invited to %s as %s. Sign in with this address to accept.\n", o.Name, role),
	})
}

// ownInvitation finds the invitation of the path.
var ownInvitation = one(callersOrganization, "invitation_id", store.Invitations.Read)

// errClaimed refuses to change an invitation that has become a membership (spec 3).
var errClaimed = problem.Refuse(http.StatusConflict, "the invitation was claimed; its role can no longer be changed")

// apply sets the role.
func (b invitationBody) apply(_ *call.Call, i *store.Invitation) error {
	if !i.ClaimedAt.IsZero() {
		return errClaimed
	}
	// An empty update is no mistake: clients send back replies.
	if b.Role != "" {
		i.Role = b.Role
	}
	return nil
}

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
