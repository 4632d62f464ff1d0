package store

import (
	"fmt"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// ResetOrganization brings an organization back to its Initial users, workspaces
// and memberships, as they were created. Their tokens and keys stay; everything
// else in it goes. No id is given again.
func (tx *Tx) ResetOrganization(id int64) error {
	err := tx.resetOrganization(id)
	if err != nil {
		return fmt.Errorf("reset organization %d: %w", id, err)
	}
	return nil
}

func (tx *Tx) resetOrganization(id int64) error {
	if _, err := tx.Organization(id); err != nil {
		return err
	}
	var all []int64
	err := tx.query("SELECT id FROM workspaces WHERE organization_id = ?", func(c sqlite.Row) error {
		workspace, _ := c.Number(0)
		all = append(all, workspace)
		return nil
	}, id)
	if err != nil {
		return err
	}
	for _, workspace := range all {
		if err := tx.clearWorkspace(workspace); err != nil {
			return err
		}
	}
	for _, query := range resets {
		if _, err := tx.exec(query, id); err != nil {
			return err
		}
	}
	if err := tx.resetUsers(id); err != nil {
		return err
	}
	return tx.resetWorkspaces(id)
}

// resets delete all rows that are not initial. A first_state of null is one of those.
var resets = []string{
	"DELETE FROM mails WHERE organization_id = ?",
	"DELETE FROM invitations WHERE organization_id = ?",
	"DELETE FROM memberships WHERE first_state = 'null' AND workspace_id IN (SELECT id FROM workspaces WHERE organization_id = ?)",
	"DELETE FROM workspaces WHERE first_state = 'null' AND organization_id = ?",
	"DELETE FROM users WHERE first_state = 'null' AND organization_id = ?",
}

func (tx *Tx) resetUsers(organizationID int64) error {
	initial, err := Users.some(tx, "organization_id = ?", organizationID)
	if err != nil {
		return err
	}
	for _, u := range initial {
		u.Role, u.Notifications = u.first.Role, u.first.Notifications
		if err := Users.Save(tx, u); err != nil {
			return err
		}
	}
	return nil
}

// resetWorkspaces gives back names in two steps, since two workspaces may have
// exchanged theirs.
func (tx *Tx) resetWorkspaces(organizationID int64) error {
	if _, err := tx.exec("UPDATE workspaces SET gone = 1 WHERE organization_id = ?", organizationID); err != nil {
		return err
	}
	hidden, err := hiddenWorkspaces.some(tx, "organization_id = ?", organizationID)
	if err != nil {
		return err
	}
	for _, w := range hidden {
		w.Name, w.NotificationEmails = w.first.Name, w.first.NotificationEmails
		if err := Workspaces.Save(tx, w); err != nil {
			return err
		}
		if _, err := tx.exec("UPDATE workspaces SET gone = 0 WHERE id = ?", w.ID); err != nil {
			return err
		}
		joined, err := Memberships.some(tx, "workspace_id = ?", w.ID)
		if err != nil {
			return err
		}
		for _, m := range joined {
			m.Role = *m.first
			if err := Memberships.Save(tx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// hiddenWorkspaces sees the workspaces that nothing else sees.
var hiddenWorkspaces = func() *Table[Workspace] {
	t := *Workspaces
	t.visible = "gone = 1"
	return define(t)
}()
