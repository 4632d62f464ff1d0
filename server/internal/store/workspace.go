package store

import (
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sealing"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// Workspace belongs to one organization, in which its Name is unique. An Initial
// one stays when the organization is reset, and is then again as it was created.
type Workspace struct {
	Row
	OrganizationID     int64
	Name               string
	NotificationEmails []string
	Initial            bool

	first *firstWorkspace
}

type firstWorkspace struct {
	Name               string   `json:"name"`
	NotificationEmails []string `json:"notification_emails"`
}

// Workspaces belong to an organization. Everything in one goes with it, and Initial keeps
// its value from creation.
var Workspaces = define(Table[Workspace]{
	name: "workspaces", kind: "workspace", scope: "organization_id", visible: "gone = 0",
	columns: []string{"organization_id", "name", "notification_emails", "first_state"},
	cells: func(w *Workspace) []any {
		return []any{&w.OrganizationID, &w.Name, &w.NotificationEmails, initial[firstWorkspace]{&w.first, &w.Initial}}
	},
	duplicate: func(w *Workspace) (string, string) { return "name", w.Name },
	begin: func(_ *Tx, w *Workspace) {
		if w.first = nil; w.Initial {
			w.first = &firstWorkspace{Name: w.Name, NotificationEmails: w.NotificationEmails}
		}
	},
	// An Initial one is only hidden, so that a reset brings it back with its key.
	remove: func(t *Table[Workspace], tx *Tx, owner, id int64) error {
		w, err := t.Read(tx, owner, id)
		if err != nil {
			return err
		}
		if err := tx.clearWorkspace(id); err != nil {
			return fmt.Errorf("delete workspace %d: %w", id, err)
		}
		if !w.Initial {
			return t.delete(tx, owner, id)
		}
		if _, err := tx.exec("UPDATE workspaces SET gone = 1, version = version + 1 WHERE id = ?", id); err != nil {
			return fmt.Errorf("delete workspace %d: %w", id, err)
		}
		return nil
	},
})

// contents are the tables of a workspace's rows; the order lets syncs go before
// the rows that they use. Rows that depend on these go with them.
var contents = []string{
	"syncs", "datasets", "sources", "destinations", "webhooks", "refreshes",
	"workspace_invitations", "mails", "links",
}

// clearWorkspace deletes everything in a workspace but its key and members.
func (tx *Tx) clearWorkspace(id int64) error {
	for _, table := range contents {
		if _, err := tx.exec("DELETE FROM "+table+" WHERE workspace_id = ?", id); err != nil {
			return fmt.Errorf("empty workspace %d: %w", id, err)
		}
	}
	return nil
}

// WorkspaceKeyPrefix begins every workspace API key and is a part of it, so that a
// key can be recognised in any text.
const WorkspaceKeyPrefix = "secret-token:"

func workspaceKeyPlace(id int64) sealing.Place {
	return sealing.Place{Table: "workspaces", ID: id, Column: "sealed_key"}
}

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
	case sqlite.Unique(err):
		err = &DuplicateError{Kind: "workspace", Field: "API key"}
	case err == nil && changed == 0:
		err = ErrNotFound
	case err == nil:
		err = tx.keys.Put(workspaceID, workspaceKeyPlace(workspaceID), []byte(key))
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
	key, err := tx.keys.Open(workspaceKeyPlace(workspaceID))
	if err == nil && key == nil {
		err = fmt.Errorf("read key of workspace %d: %w", workspaceID, ErrNotFound)
	}
	return string(key), err
}

// WorkspaceByKey finds the workspace of an API key.
func (tx *Tx) WorkspaceByKey(key string) (*Workspace, error) {
	return Workspaces.one(tx, "key_hash = ?", hashOf(key))
}
