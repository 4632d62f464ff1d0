package store

import "fmt"

// WorkspaceKeyPrefix begins every workspace API key and is a part of it, so that a
// key can be recognised in any text.
const WorkspaceKeyPrefix = "secret-token:"

func workspaceKeyPlace(id int64) place { return place{"workspaces", id, "sealed_key"} }

// NewWorkspaceKey makes a new API key of a workspace; the one before is
// worthless from then on.
func (tx *Tx) NewWorkspaceKey(workspaceID int64) (key string, err error) {
	if key, err = tx.newSecret(WorkspaceKeyPrefix); err != nil {
		return "", err
	}
	return key, tx.setWorkspaceKey(workspaceID, key)
}

// AdoptWorkspaceKey makes a given text the API key of a workspace; again for the
// same one changes nothing, a key of another workspace is a *DuplicateError.
func (tx *Tx) AdoptWorkspaceKey(workspaceID int64, key string) error {
	owner, err := tx.number("SELECT id FROM workspaces WHERE key_hash = ?", hashOf(key))
	if err != nil || owner == workspaceID {
		return err
	}
	return tx.setWorkspaceKey(workspaceID, key)
}

// setWorkspaceKey keeps the key twice: as a hash to be found by, and sealed to be
// shown again.
func (tx *Tx) setWorkspaceKey(workspaceID int64, key string) error {
	changed, err := tx.exec("UPDATE workspaces SET key_hash = ? WHERE id = ? AND gone = 0", hashOf(key), workspaceID)
	switch {
	case unique(err):
		err = &DuplicateError{Kind: "workspace", Field: "API key"}
	case err == nil && changed == 0:
		err = ErrNotFound
	case err == nil:
		err = tx.put(workspaceID, workspaceKeyPlace(workspaceID), []byte(key))
	}
	if err != nil {
		return fmt.Errorf("set key of workspace %d: %w", workspaceID, err)
	}
	return nil
}

// DeleteWorkspaceKey leaves a workspace without an API key.
func (tx *Tx) DeleteWorkspaceKey(workspaceID int64) error {
	if _, err := tx.exec("UPDATE workspaces SET key_hash = NULL, sealed_key = NULL WHERE id = ?", workspaceID); err != nil {
		return fmt.Errorf("delete key of workspace %d: %w", workspaceID, err)
	}
	return nil
}

// WorkspaceKey gives the API key of a workspace; ErrNotFound when it has none.
func (tx *Tx) WorkspaceKey(workspaceID int64) (string, error) {
	key, err := tx.open(workspaceKeyPlace(workspaceID))
	if err == nil && key == nil {
		err = fmt.Errorf("read key of workspace %d: %w", workspaceID, ErrNotFound)
	}
	return string(key), err
}

// WorkspaceByKey finds the workspace of an API key.
func (tx *Tx) WorkspaceByKey(key string) (*Workspace, error) {
	return workspaces.one(tx, "key_hash = ?", hashOf(key))
}
