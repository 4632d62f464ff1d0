package store

// OpenInvitation finds the invitation of an organization to an address that
// nobody has claimed, whatever the case of the address.
func (tx *Tx) OpenInvitation(organizationID int64, email string) (*Invitation, error) {
	return invitations.one(tx, "organization_id = ? AND lower(email) = lower(?) AND claimed_by_id IS NULL", organizationID, email)
}

// OpenWorkspaceInvitation is the same for the invitations of one workspace.
func (tx *Tx) OpenWorkspaceInvitation(workspaceID int64, email string) (*WorkspaceInvitation, error) {
	return workspaceInvitations.one(tx, "workspace_id = ? AND lower(email) = lower(?) AND claimed_by_id IS NULL", workspaceID, email)
}
