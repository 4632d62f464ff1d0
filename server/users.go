package server

import (
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/store"
)

// listUsers lists the members of the organization (spec 2.14).
func (s *Server) listUsers(c *call) (*reply, error) {
	page := c.page()
	users := []api.User{}
	var total int64
	err := c.view(func(tx *store.Tx) error {
		rows, n, err := tx.Users(c.who.OrganizationID, page)
		for i := range rows {
			users = append(users, userOf(rows[i], rows[i].Role))
		}
		total = n
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.list(page, total, users)
}

// userOf shows a user with a role, that of the organization or of a workspace.
func userOf(u *store.User, role string) api.User {
	return api.User{ID: u.ID, Email: u.Email, CreatedAt: api.Time{Time: u.CreatedAt}, Role: role}
}
