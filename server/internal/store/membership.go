package store

import (
	"errors"
	"fmt"
)

// Membership is the role of a user in a workspace: owner, editor, operator or
// viewer. There is one at most for each pair. An Initial one stays when the
// organization is reset, and has then its first role.
type Membership struct {
	Row
	WorkspaceID int64
	UserID      int64
	Role        string
	Initial     bool

	first *string
}

// Member is a user with the role in one workspace.
type Member struct {
	User *User
	Role string
}

// Memberships belong to a workspace. Initial keeps its value from creation.
var Memberships = define(Table[Membership]{
	name: "memberships", kind: "membership", scope: "workspace_id",
	columns: []string{"workspace_id", "user_id", "role", "first_state"},
	cells: func(m *Membership) []any {
		return []any{&m.WorkspaceID, &m.UserID, &m.Role, initial[string]{&m.first, &m.Initial}}
	},
	duplicate: func(m *Membership) (string, string) { return "user", fmt.Sprint(m.UserID) },
	begin: func(_ *Tx, m *Membership) {
		if m.first = nil; m.Initial {
			m.first = &m.Role
		}
	},
})

// Membership reads the role of a user in a workspace.
func (tx *Tx) Membership(workspaceID, userID int64) (*Membership, error) {
	return Memberships.one(tx, "workspace_id = ? AND user_id = ?", workspaceID, userID)
}

// Owners counts the owners of a workspace.
func (tx *Tx) Owners(workspaceID int64) (int64, error) {
	return tx.number("SELECT COUNT(*) FROM memberships WHERE workspace_id = ? AND role = 'owner'", workspaceID)
}

// Members lists the users of a workspace in the order in which they joined.
func (tx *Tx) Members(workspaceID int64, p Page) ([]Member, int64, error) {
	joined, total, err := Memberships.List(tx, workspaceID, p)
	if err != nil {
		return nil, 0, err
	}
	var found []Member
	for _, m := range joined {
		user, err := Users.one(tx, "id = ?", m.UserID)
		if err != nil {
			return nil, 0, err
		}
		found = append(found, Member{User: user, Role: m.Role})
	}
	return found, total, nil
}

// PutMembership makes a user a member of a workspace, or gives who is one
// already the new role.
func (tx *Tx) PutMembership(m *Membership) error {
	kept, err := tx.Membership(m.WorkspaceID, m.UserID)
	if errors.Is(err, ErrNotFound) {
		return Memberships.Create(tx, m)
	}
	if err != nil {
		return err
	}
	kept.Role = m.Role
	*m = *kept
	return Memberships.Save(tx, m)
}
