package rest

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/organizations"
	"github.com/destkit/destkit/server/internal/store"
)

// listUsers lists the members of the organization (spec 2.14).
func (h *Handlers) listUsers(c *call.Call) (*call.Reply, error) {
	return call.PageOf(c, func(tx *store.Tx, page store.Page) ([]*store.User, int64, error) {
		return tx.Users(c.Who.OrganizationID, page)
	}, func(u *store.User) api.User { return organizations.UserOf(u, u.Role) })
}
