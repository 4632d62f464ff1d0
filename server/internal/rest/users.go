package rest

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

// listUsers lists the members of the organization (spec 2.14).
func (h *Handlers) listUsers(c *call.Call) (*call.Reply, error) {
	return call.PageOf(c, func(tx *store.Tx, page store.Page) ([]*store.User, int64, error) {
		return tx.Users(c.Who.OrganizationID, page)
	}, func(u *store.User) api.User { return UserOf(u, u.Role) })
}

// UserOf shows a user with a role, that of the organization or of a workspace.
func UserOf(u *store.User, role string) api.User {
	return api.User{ID: u.ID, Email: u.Email, CreatedAt: api.Time{Time: u.CreatedAt}, Role: role}
}
