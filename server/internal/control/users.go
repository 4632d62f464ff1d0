package control

import (
	"errors"
	"net/http"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// People do what people do outside of the API: accept an invitation, change
// settings, make tokens.
func (h *Handlers) People() []call.ControlRoute {
	return []call.ControlRoute{
		call.Route("POST", "/invitations/{id}/claim", "claims an invitation to an organization: email (that of the invitation by default)", h.claim),
		call.Route("POST", "/workspace_invitations/{id}/claim", "claims an invitation to a workspace: email", h.claimWorkspace),
		call.Route("PATCH", "/users/{id}", "changes notifications_enabled and role of a user", h.changeUser),
		call.Route("POST", "/users/{id}/token", "makes a new personal access token of a user", h.token),
	}
}

// claimBody names the claimant: the invited address unless another is given,
// as people accept invitations with the address they sign in with.
type claimBody struct {
	Email string `json:"email"`
}

// readClaim reads an optional address; the invitation supplies a
// missing one.
func readClaim(c *call.Control) (body claimBody, err error) {
	if err := c.Body(&body); err != nil {
		return body, err
	}
	if body.Email != "" {
		if problems := organizations.CheckAddress("email", body.Email); len(problems) > 0 {
			return body, problem.Invalid(problems)
		}
	}
	return body, nil
}

// claimant finds or makes the user who claims. A new one gets the role in the
// organization; a member keeps the role, unless admin is offered.
func claimant(tx *store.Tx, organizationID int64, email, role string) (*store.User, error) {
	u, err := tx.UserByEmail(organizationID, email)
	if errors.Is(err, store.ErrNotFound) {
		u = &store.User{OrganizationID: organizationID, Email: email, Role: role, Notifications: true}
		return u, store.Users.Create(tx, u)
	}
	if err == nil && role == api.RoleAdmin && u.Role != role {
		u.Role = role
		err = store.Users.Save(tx, u)
	}
	return u, err
}

// claimed is a claim that was done.
type claimed struct {
	Invitation any      `json:"invitation"`
	User       api.User `json:"user"`
}

// claim does what the invited person would do on a page of the service:
// the person becomes a user of the organization and a member of each workspace
// of the invitation, with the roles there (spec 2.13, 3, 4.1.6).
func (h *Handlers) claim(c *call.Control) (any, error) {
	body, err := readClaim(c)
	if err != nil {
		return nil, err
	}
	return store.Change(c.R.Context(), h.Shared.Store, func(tx *store.Tx) (none claimed, err error) {
		i, err := call.Named(c, tx, store.Invitations, "invitation")
		if err != nil {
			return none, err
		}
		if !i.ClaimedAt.IsZero() {
			return none, problem.Refuse(http.StatusConflict, "the invitation was claimed already")
		}
		if body.Email == "" {
			body.Email = i.Email
		}
		u, err := claimant(tx, i.OrganizationID, body.Email, i.Role)
		if err != nil {
			return none, err
		}
		if err := organizations.JoinWorkspaces(tx, u, i.Workspaces); err != nil {
			return none, err
		}
		i.ClaimedAt, i.ClaimedByID = tx.Now(), &u.ID
		for _, w := range i.Workspaces {
			w.ClaimedAt, w.ClaimedByID = i.ClaimedAt, &u.ID
			if err := store.WorkspaceInvitations.Save(tx, w); err != nil {
				return none, err
			}
		}
		return claimed{organizations.InvitationOf(i), organizations.UserOf(u, u.Role)}, store.Invitations.Save(tx, i)
	})
}

// claimWorkspace does the same for an invitation to one workspace; who
// comes into the organization by it is a member there.
func (h *Handlers) claimWorkspace(c *call.Control) (any, error) {
	body, err := readClaim(c)
	if err != nil {
		return nil, err
	}
	return store.Change(c.R.Context(), h.Shared.Store, func(tx *store.Tx) (none claimed, err error) {
		i, err := call.Named(c, tx, store.WorkspaceInvitations, "invitation to a workspace")
		if err != nil {
			return none, err
		}
		w, err := store.Workspaces.Any(tx, i.WorkspaceID)
		if err != nil {
			return none, err
		}
		if i.ClaimedByID != nil {
			return none, problem.Refuse(http.StatusConflict, "the invitation was claimed already")
		}
		// Its parts are claimed with the whole, so that claimed_at stays true.
		if i.InvitationID != nil {
			return none, problem.Refuse(http.StatusConflict, "the invitation is a part of invitation %d; claim that one", *i.InvitationID)
		}
		if body.Email == "" {
			body.Email = i.Email
		}
		u, err := claimant(tx, w.OrganizationID, body.Email, api.RoleMember)
		if err != nil {
			return none, err
		}
		if err := organizations.JoinWorkspaces(tx, u, []*store.WorkspaceInvitation{i}); err != nil {
			return none, err
		}
		i.ClaimedAt, i.ClaimedByID = tx.Now(), &u.ID
		return claimed{organizations.WorkspaceInvitationOf(i), organizations.UserOf(u, u.Role)}, store.WorkspaceInvitations.Save(tx, i)
	})
}

// userShown is a user with what only the control API shows.
type userShown struct {
	api.User
	OrganizationID int64 `json:"organization_id"`
	Notifications  bool  `json:"notifications_enabled"`
}

// changeUser changes what the API has no endpoint for: the switch that
// the alerts of spec 2.6 ask for, and the role in the organization.
func (h *Handlers) changeUser(c *call.Control) (any, error) {
	var body struct {
		Notifications *bool   `json:"notifications_enabled"`
		Role          *string `json:"role"`
	}
	if err := c.Body(&body); err != nil {
		return nil, err
	}
	if body.Role != nil && *body.Role != api.RoleAdmin && *body.Role != api.RoleMember {
		return nil, problem.InvalidField("role", "must be admin or member")
	}
	return store.Change(c.R.Context(), h.Shared.Store, func(tx *store.Tx) (none userShown, err error) {
		u, err := call.Named(c, tx, store.Users, "user")
		if err != nil {
			return none, err
		}
		if body.Notifications != nil {
			u.Notifications = *body.Notifications
		}
		if body.Role != nil {
			u.Role = *body.Role
		}
		return userShown{organizations.UserOf(u, u.Role), u.OrganizationID, u.Notifications}, store.Users.Save(tx, u)
	})
}

// token makes an additional token of the user, as the settings page of
// the service would (spec 5.1).
func (h *Handlers) token(c *call.Control) (any, error) {
	var token string
	var u *store.User
	err := h.Shared.Store.Update(c.R.Context(), func(tx *store.Tx) (err error) {
		if u, err = call.Named(c, tx, store.Users, "user"); err == nil {
			token, err = tx.NewAccessToken(u.ID, "control")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return call.Status(http.StatusCreated, map[string]any{"user_id": u.ID, "email": u.Email, "personal_access_token": token}), nil
}
