package store

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Organization owns users and workspaces.
type Organization struct {
	Row
	Name string
}

var organizations = define(Table[Organization]{
	name: "organizations", kind: "organization",
	columns: []string{"name"},
	cells: func(o *Organization) []any {
		return []any{&o.Name}
	},
})

// CreateOrganization stores a new organization.
func (tx *Tx) CreateOrganization(o *Organization) error { return organizations.Create(tx, o) }

// Organization reads one organization.
func (tx *Tx) Organization(id int64) (*Organization, error) {
	return organizations.one(tx, "id = ?", id)
}

// Organizations lists all organizations.
func (tx *Tx) Organizations(p Page) ([]*Organization, int64, error) {
	return organizations.list(tx, p)
}

// DeleteOrganization deletes an organization with everything in it, its tokens
// and keys too.
func (tx *Tx) DeleteOrganization(id int64) error {
	// Syncs reference other rows, so they go first.
	_, err := tx.exec("DELETE FROM syncs WHERE workspace_id IN (SELECT id FROM workspaces WHERE organization_id = ?)", id)
	if err != nil {
		return fmt.Errorf("delete organization %d: %w", id, err)
	}
	return organizations.delete(tx, id)
}

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

// Setting reads a text that the caller keeps under a key; ErrNotFound when there
// is none.
func (tx *Tx) Setting(key string) (value string, err error) {
	found := false
	err = tx.query("SELECT value FROM settings WHERE key = ?", func(c sqlite.Row) error {
		found, value = true, c.Text(0)
		return nil
	}, key)
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read setting %s: %w", key, err)
	}
	return value, nil
}

// Settings reads all texts whose keys begin with a prefix, which holds neither % nor _.
func (tx *Tx) Settings(prefix string) (map[string]string, error) {
	found := map[string]string{}
	err := tx.query("SELECT key, value FROM settings WHERE key LIKE ?", func(c sqlite.Row) error {
		found[c.Text(0)] = c.Text(1)
		return nil
	}, prefix+"%")
	if err != nil {
		return nil, fmt.Errorf("read settings %s…: %w", prefix, err)
	}
	return found, nil
}

// SetSetting keeps a text under a key. It is not sealed.
func (tx *Tx) SetSetting(key, value string) error {
	_, err := tx.exec("INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", key, value)
	if err != nil {
		return fmt.Errorf("keep setting %s: %w", key, err)
	}
	return nil
}

// DeleteSetting forgets a key; one that is not there is no error.
func (tx *Tx) DeleteSetting(key string) error {
	if _, err := tx.exec("DELETE FROM settings WHERE key = ?", key); err != nil {
		return fmt.Errorf("delete setting %s: %w", key, err)
	}
	return nil
}
