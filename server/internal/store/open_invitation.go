package store

// OpenInvitation finds the invitation of an organization to an address that
// nobody has claimed, whatever the case of the address.
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
