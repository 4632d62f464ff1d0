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
		// Also unknown ones, so that each mistake is told once.
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
	// An empty update is no mistake: clients send back what they have read.
	if b.Role != "" {
		i.Role = b.Role
	}
	return nil
}
