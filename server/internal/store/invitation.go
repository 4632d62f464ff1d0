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
// organization's invitation, or a separate one (InvitationID nil).
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

// Invitations belong to an organization. CreateInvitation stores one with its parts, which
// go with it; Save leaves them.
var Invitations = define(Table[Invitation]{
	name: "invitations", kind: "invitation", scope: "organization_id",
	columns: []string{"organization_id", "email", "role", "created_by_id", "claimed_at", "claimed_by_id"},
	cells: func(i *Invitation) []any {
		return []any{&i.OrganizationID, &i.Email, &i.Role, &i.CreatedByID, &i.ClaimedAt, &i.ClaimedByID}
	},
	loaded: func(tx *Tx, i *Invitation) (err error) {
		i.Workspaces, err = WorkspaceInvitations.some(tx, "invitation_id = ? ORDER BY id", i.ID)
		return err
	},
})

// WorkspaceInvitations belong to a workspace.
var WorkspaceInvitations = define(Table[WorkspaceInvitation]{
	name: "workspace_invitations", kind: "workspace invitation", scope: "workspace_id",
	columns: []string{"invitation_id", "workspace_id", "email", "role", "created_by_id", "claimed_at", "claimed_by_id"},
	cells: func(i *WorkspaceInvitation) []any {
		return []any{&i.InvitationID, &i.WorkspaceID, &i.Email, &i.Role, &i.CreatedByID, &i.ClaimedAt, &i.ClaimedByID}
	},
})

// CreateInvitation stores a new invitation with its parts, which take its e-mail
// address and creator.
func (tx *Tx) CreateInvitation(i *Invitation) error {
	if err := Invitations.Create(tx, i); err != nil {
		return err
	}
	for _, part := range i.Workspaces {
		id := i.ID
		part.InvitationID, part.Email, part.CreatedByID = &id, i.Email, i.CreatedByID
		if err := WorkspaceInvitations.Create(tx, part); err != nil {
			return fmt.Errorf("create invitation: %w", err)
		}
	}
	return nil
}

// OpenInvitation finds the invitation of an organization to an address that
// has not been claimed, whatever the case of the address.
func (tx *Tx) OpenInvitation(organizationID int64, email string) (*Invitation, error) {
	open, err := Invitations.some(tx, "organization_id = ? AND claimed_by_id IS NULL ORDER BY id", organizationID)
	return firstTo(open, err, email, func(i *Invitation) string { return i.Email })
}

// OpenWorkspaceInvitation is the same for the invitations of one workspace.
func (tx *Tx) OpenWorkspaceInvitation(workspaceID int64, email string) (*WorkspaceInvitation, error) {
	open, err := WorkspaceInvitations.some(tx, "workspace_id = ? AND claimed_by_id IS NULL ORDER BY id", workspaceID)
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
