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

var users = define(table[User]{
	name: "users", kind: "user", scope: "organization_id", counted: true,
	columns: []string{"organization_id", "email", "email_key", "role", "notifications", "first_state"},
	cells: func(u *User) []any {
		key := emailKey(u.Email)
		return []any{&u.OrganizationID, &u.Email, &key, &u.Role, &u.Notifications, initial[firstUser]{&u.first, &u.Initial}}
	},
	duplicate: func(u *User) (string, string) { return "email", u.Email },
})

// emailKey is what two spellings of an address have in common.
func emailKey(email string) string { return strings.ToLower(email) }

// CreateUser stores a new user; *DuplicateError when the organization has one
// with that e-mail address.
func (tx *Tx) CreateUser(u *User) error {
	u.first = nil
	if u.Initial {
		u.first = &firstUser{Role: u.Role, Notifications: u.Notifications}
	}
	return users.create(tx, u)
}

// SaveUser stores a changed user; Initial stays what it was at creation.
func (tx *Tx) SaveUser(u *User) error { return users.save(tx, u) }

// User reads one user of an organization.
func (tx *Tx) User(organizationID, id int64) (*User, error) {
	return users.one(tx, "id = ? AND organization_id = ?", id, organizationID)
}

// UserByEmail finds a user of an organization, whatever the case of the address.
func (tx *Tx) UserByEmail(organizationID int64, email string) (*User, error) {
	return users.one(tx, "organization_id = ? AND email_key = ?", organizationID, emailKey(email))
}

// UsersByEmail finds the users with that address in all organizations, oldest
// first.
func (tx *Tx) UsersByEmail(email string) ([]*User, error) {
	return users.some(tx, "email_key = ? ORDER BY id", emailKey(email))
}

// Users lists the users of an organization.
func (tx *Tx) Users(organizationID int64, p Page) ([]*User, int64, error) {
	return users.list(tx, p, organizationID)
}

// DeleteUser deletes a user with tokens, memberships and the invitations that
// the user wrote.
func (tx *Tx) DeleteUser(organizationID, id int64) error {
	return users.delete(tx, organizationID, id)
}
