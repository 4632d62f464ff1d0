package store

import (
	"fmt"
	"time"
)

// Invitation to an organization (spec 2.13). ClaimedAt is zero and ClaimedByID
// nil until it is claimed. Workspaces are its parts, which are read with it.
type Invitation struct {
	Row
	OrganizationID int64
	Email          string
	Role           string
	CreatedByID    int64
	ClaimedAt      time.Time
	ClaimedByID    *int64
	Workspaces     []*WorkspaceInvitation
}

// WorkspaceInvitation is an invitation to one workspace: a part of an
// organization's invitation, or one of its own (InvitationID nil).
type WorkspaceInvitation struct {
	Row
	InvitationID *int64
	WorkspaceID  int64
	Email        string
	Role         string
	CreatedByID  int64
	ClaimedAt    time.Time
	ClaimedByID  *int64
}

var invitations = define(table[Invitation]{
	name: "invitations", kind: "invitation", scope: "organization_id",
	columns: []string{"organization_id", "email", "role", "created_by_id", "claimed_at", "claimed_by_id"},
	cells: func(i *Invitation) []any {
		return []any{&i.OrganizationID, &i.Email, &i.Role, &i.CreatedByID, &i.ClaimedAt, &i.ClaimedByID}
	},
})

var workspaceInvitations = define(table[WorkspaceInvitation]{
	name: "workspace_invitations", kind: "workspace invitation", scope: "workspace_id",
	columns: []string{"invitation_id", "workspace_id", "email", "role", "created_by_id", "claimed_at", "claimed_by_id"},
	cells: func(i *WorkspaceInvitation) []any {
		return []any{&i.InvitationID, &i.WorkspaceID, &i.Email, &i.Role, &i.CreatedByID, &i.ClaimedAt, &i.ClaimedByID}
	},
})

// CreateInvitation stores a new invitation with its parts, which take its e-mail
// address and creator.
func (tx *Tx) CreateInvitation(i *Invitation) error {
	if err := invitations.create(tx, i); err != nil {
		return err
	}
	for _, part := range i.Workspaces {
		id := i.ID
		part.InvitationID, part.Email, part.CreatedByID = &id, i.Email, i.CreatedByID
		if err := workspaceInvitations.create(tx, part); err != nil {
			return fmt.Errorf("create invitation: %w", err)
		}
	}
	return nil
}

// SaveInvitation stores a changed invitation without its parts.
func (tx *Tx) SaveInvitation(i *Invitation) error { return invitations.save(tx, i) }

// Invitation reads one invitation of an organization.
func (tx *Tx) Invitation(organizationID, id int64) (*Invitation, error) {
	i, err := invitations.one(tx, "id = ? AND organization_id = ?", id, organizationID)
	if err != nil {
		return nil, err
	}
	return i, tx.loadParts(i)
}

// Invitations lists the invitations of an organization.
func (tx *Tx) Invitations(organizationID int64, p Page) ([]*Invitation, int64, error) {
	found, total, err := invitations.list(tx, p, organizationID)
	if err == nil {
		err = tx.loadParts(found...)
	}
	return found, total, err
}

func (tx *Tx) loadParts(found ...*Invitation) (err error) {
	for _, i := range found {
		if i.Workspaces, err = workspaceInvitations.some(tx, "invitation_id = ? ORDER BY id", i.ID); err != nil {
			return err
		}
	}
	return nil
}

// DeleteInvitation deletes an invitation with its parts.
func (tx *Tx) DeleteInvitation(organizationID, id int64) error {
	return invitations.delete(tx, organizationID, id)
}

// CreateWorkspaceInvitation stores a new invitation to a workspace.
func (tx *Tx) CreateWorkspaceInvitation(i *WorkspaceInvitation) error {
	return workspaceInvitations.create(tx, i)
}

// SaveWorkspaceInvitation stores a changed invitation to a workspace.
func (tx *Tx) SaveWorkspaceInvitation(i *WorkspaceInvitation) error {
	return workspaceInvitations.save(tx, i)
}

// WorkspaceInvitation reads one invitation to a workspace.
func (tx *Tx) WorkspaceInvitation(workspaceID, id int64) (*WorkspaceInvitation, error) {
	return workspaceInvitations.one(tx, "id = ? AND workspace_id = ?", id, workspaceID)
}

// WorkspaceInvitations lists the invitations to a workspace.
func (tx *Tx) WorkspaceInvitations(workspaceID int64, p Page) ([]*WorkspaceInvitation, int64, error) {
	return workspaceInvitations.list(tx, p, workspaceID)
}

// DeleteWorkspaceInvitation deletes an invitation to a workspace.
func (tx *Tx) DeleteWorkspaceInvitation(workspaceID, id int64) error {
	return workspaceInvitations.delete(tx, workspaceID, id)
}

// OpenInvitation finds the invitation of an organization to an address that
// has not been claimed, whatever the case of the address.
func (tx *Tx) OpenInvitation(organizationID int64, email string) (*Invitation, error) {
	open, err := invitations.some(tx, "organization_id = ? AND claimed_by_id IS NULL ORDER BY id", organizationID)
	return firstTo(open, err, email, func(i *Invitation) string { return i.Email })
}

// OpenWorkspaceInvitation is the same for the invitations of one workspace.
func (tx *Tx) OpenWorkspaceInvitation(workspaceID int64, email string) (*WorkspaceInvitation, error) {
	open, err := workspaceInvitations.some(tx, "workspace_id = ? AND claimed_by_id IS NULL ORDER BY id", workspaceID)
	return firstTo(open, err, email, func(i *WorkspaceInvitation) string { return i.Email })
}

// firstTo is the first row to an address. The rows are few, and the database
// folds the case of ASCII only.
func firstTo[T any](rows []*T, err error, email string, address func(*T) string) (*T, error) {
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if emailKey(address(row)) == emailKey(email) {
			return row, nil
		}
	}
	return nil, ErrNotFound
}
