package seed

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/problem"
	"github.com/destkit/destkit/server/internal/store"
)

// workspaceNamed finds a workspace that something refers to.
func (p *planter) workspaceNamed(name string) (*store.Workspace, error) {
	if w := p.workspaces[name]; w != nil {
		return w, nil
	}
	return nil, problem.InvalidField("workspaces", "the organization has no workspace %q%s", foreign.Clip(name, 60), suggest.Phrase(name, slices.Sorted(maps.Keys(p.workspaces))))
}

var workspaceRoles = []string{api.RoleOwner, api.RoleEditor, api.RoleOperator, api.RoleViewer}

// user makes a user with memberships and a token. The API invites users and
// does not make them, so this is the control API's own.
func (p *planter) user(wanted userEntry) (made controlapi.SeededUser, err error) {
	if wanted.Role == "" {
		wanted.Role = api.RoleMember
	}
	problems := organizations.CheckAddress("email", wanted.Email)
	if wanted.Role != api.RoleAdmin && wanted.Role != api.RoleMember {
		problems = append(problems, api.Problem{Field: "role", Message: "must be admin or member"})
	}
	for name, role := range wanted.Workspaces {
		if _, err := p.workspaceNamed(name); err != nil {
			return made, err
		}
		if !slices.Contains(workspaceRoles, role) {
			problems = append(problems, api.Problem{Field: "workspaces." + name, Message: "must be one of " + strings.Join(workspaceRoles, ", ")})
		}
	}
	if len(problems) > 0 {
		return made, problem.Invalid(problems)
	}
	u := &store.User{OrganizationID: p.organizationID, Email: wanted.Email, Role: wanted.Role, Notifications: true}
	if wanted.Notifications != nil {
		u.Notifications = *wanted.Notifications
	}
	err = p.s.Shared.Store.Update(p.ctx, func(tx *store.Tx) error {
		if err := store.Users.Create(tx, u); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(wanted.Workspaces)) {
			m := &store.Membership{WorkspaceID: p.workspaces[name].ID, UserID: u.ID, Role: wanted.Workspaces[name]}
			if err := tx.PutMembership(m); err != nil {
				return err
			}
		}
		made.ID = u.ID
		made.PersonalAccessToken, err = tx.NewAccessToken(u.ID, "seed")
		return err
	})
	if err == nil {
		p.made(func(tx *store.Tx) error { return store.Users.Delete(tx, p.organizationID, u.ID) }, organizations.Outside{})
	}
	return made, err
}

// invite drives the API's own invitation.
func (p *planter) invite(wanted invitationEntry) (int64, error) {
	workspaces, roles := []map[string]any{}, map[int64]string{}
	for _, name := range slices.Sorted(maps.Keys(wanted.Workspaces)) {
		w, err := p.workspaceNamed(name)
		if err != nil {
			return 0, err
		}
		roles[w.ID] = wanted.Workspaces[name]
		workspaces = append(workspaces, map[string]any{"id": w.ID, "role": roles[w.ID]})
	}
	before, err := p.membershipsOf(wanted.Email, roles)
	if err != nil {
		return 0, err
	}
	id, _, err := p.create(p.asAdmin(), "createInvitation", nil, map[string]any{
		"email": wanted.Email, "role": wanted.Role, "workspaces": workspaces,
	})
	if err == nil {
		p.made(func(tx *store.Tx) error {
			return errors.Join(p.uninvite(tx, wanted.Email, roles, before), store.Invitations.Delete(tx, p.organizationID, id))
		}, organizations.Outside{})
	}
	return id, err
}
