package store

import "fmt"

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
