package store

import "strings"

// User is a person in one organization. Email is unique there, whatever its
// case. Role is admin or member. An Initial user stays when the organization is
// reset, and is then again as it was created.
type User struct {
	Row
	OrganizationID int64
	Email          string
	Role           string
	Notifications  bool
	Initial        bool

	first *firstUser
}

type firstUser struct {
	Role          string `json:"role"`
	Notifications bool   `json:"notifications"`
}

// Users belong to an organization. Tokens, memberships and the invitations that one wrote
// go with it; Initial keeps its value from creation.
var Users = define(Table[User]{
	name: "users", kind: "user", scope: "organization_id", counted: true,
	columns: []string{"organization_id", "email", "email_key", "role", "notifications", "first_state"},
	cells: func(u *User) []any {
		key := emailKey(u.Email)
		return []any{&u.OrganizationID, &u.Email, &key, &u.Role, &u.Notifications, initial[firstUser]{&u.first, &u.Initial}}
	},
	duplicate: func(u *User) (string, string) { return "email", u.Email },
	begin: func(_ *Tx, u *User) {
		if u.first = nil; u.Initial {
			u.first = &firstUser{Role: u.Role, Notifications: u.Notifications}
		}
	},
})

// emailKey is what two spellings of an address have in common.
func emailKey(email string) string { return strings.ToLower(email) }

// UserByEmail finds a user of an organization, whatever the case of the address.
func (tx *Tx) UserByEmail(organizationID int64, email string) (*User, error) {
	return Users.one(tx, "organization_id = ? AND email_key = ?", organizationID, emailKey(email))
}

// UsersByEmail finds the users with that address in all organizations, oldest
// first.
func (tx *Tx) UsersByEmail(email string) ([]*User, error) {
	return Users.some(tx, "email_key = ? ORDER BY id", emailKey(email))
}
