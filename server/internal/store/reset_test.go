package store

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// tables are those that rows are kept in.
var tables = []string{
	"settings", "organizations", "users", "access_tokens", "workspaces", "memberships", "data_keys", "invitations",
	"workspace_invitations", "destinations", "object_caches", "sources", "source_tables", "refreshes", "datasets", "models",
	"segments", "topics", "topic_messages", "syncs", "schedules", "sync_runs", "webhooks", "webhook_deliveries", "open_alerts", "mails",
	"links",
}

// rowsIn counts the rows of every table.
func rowsIn(t testing.TB, s *Store) map[string]int64 {
	t.Helper()
	counts := map[string]int64{}
	view(t, s, func(tx *Tx) {
		for _, table := range tables {
			query := "SELECT count(*) FROM " + table
			if table == "settings" {
				query += " WHERE key <> 'session'" // of whoever has the file open
			}
			n, err := tx.number(query)
			require.NoError(t, err)
			if n > 0 {
				counts[table] = n
			}
		}
	})
	return counts
}

func TestResetOrganization(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w, other := built(t, s), builtAs(t, s, "other")
		org := w.Organization.ID
		swapped := &Workspace{OrganizationID: org, Name: "Second", Initial: true}
		update(t, s, func(tx *Tx) {
			require.NoError(t, Workspaces.Create(tx, swapped))
			later := &User{OrganizationID: org, Email: "late@x.example"}
			require.NoError(t, Users.Create(tx, later))
			require.NoError(t, Memberships.Create(tx, &Membership{WorkspaceID: w.Workspace.ID, UserID: later.ID}))
			extra := &Workspace{OrganizationID: org, Name: "Extra"}
			require.NoError(t, Workspaces.Create(tx, extra))
			_, err := tx.NewWorkspaceKey(extra.ID)
			require.NoError(t, err)
			w.User.Role, w.User.Notifications = api.RoleMember, false
			require.NoError(t, Users.Save(tx, w.User))
			m, err := tx.Membership(w.Workspace.ID, w.User.ID)
			require.NoError(t, err)
			m.Role = api.RoleViewer
			require.NoError(t, Memberships.Save(tx, m))
			// The two initial workspaces exchange their names, and one is deleted.
			w.Workspace.Name = "x"
			require.NoError(t, Workspaces.Save(tx, w.Workspace))
			swapped.Name = "Main"
			require.NoError(t, Workspaces.Save(tx, swapped))
			w.Workspace.Name = "Second"
			require.NoError(t, Workspaces.Save(tx, w.Workspace))
			require.NoError(t, Workspaces.Delete(tx, org, w.Workspace.ID))
			_, err = tx.WorkspaceByKey(w.Key)
			require.ErrorIs(t, err, ErrNotFound)
			_, err = Workspaces.Read(tx, org, w.Workspace.ID)
			require.ErrorIs(t, err, ErrNotFound)
			// A deleted workspace does not keep its name.
			require.NoError(t, Workspaces.Create(tx, &Workspace{OrganizationID: org, Name: "Second"}))
		})
		update(t, s, func(tx *Tx) { require.NoError(t, tx.ResetOrganization(org)) })
		update(t, s, func(tx *Tx) {
			all, total, err := Workspaces.List(tx, org, Page{Ascending: true})
			require.NoError(t, err)
			require.EqualValues(t, 2, total)
			require.Equal(t, []string{"Main", "Second"}, []string{all[0].Name, all[1].Name})
			requireRow(t, all[0])(tx.WorkspaceByKey(w.Key))
			key, err := tx.WorkspaceKey(w.Workspace.ID)
			require.NoError(t, err)
			require.Equal(t, w.Key, key)
			owner, err := tx.AccessTokenOwner(w.Token)
			require.NoError(t, err)
			require.Equal(t, api.RoleAdmin, owner.Role)
			require.True(t, owner.Notifications)
			members, total, err := tx.Members(w.Workspace.ID, Page{})
			require.NoError(t, err)
			require.EqualValues(t, 1, total)
			require.Equal(t, []Member{{owner, api.RoleOwner}}, members)
			_, total, err = Users.List(tx, org, Page{})
			require.NoError(t, err)
			require.EqualValues(t, 1, total)
			require.ErrorIs(t, tx.ResetOrganization(99), ErrNotFound)
		})
		require.Equal(t, other.secrets(), secrets(t, s, other))
		update(t, s, func(tx *Tx) { require.NoError(t, tx.DeleteOrganization(other.Organization.ID)) })
		require.Equal(t, map[string]int64{"organizations": 1, "users": 1, "access_tokens": 1, "workspaces": 2,
			"memberships": 1, "data_keys": 2}, rowsIn(t, s))
	})
}

// resetAll resets every organization.
func resetAll(tx *Tx) error {
	all, _, err := tx.Organizations(Page{Ascending: true})
	if err != nil {
		return err
	}
	for _, o := range all {
		if err := tx.ResetOrganization(o.ID); err != nil {
			return err
		}
	}
	return nil
}

func TestResetAll(t *testing.T) {
	s := open(t, Options{})
	update(t, s, func(tx *Tx) { build(t, tx, "acme"); build(t, tx, "other") })
	update(t, s, func(tx *Tx) {
		require.NoError(t, tx.SetSetting("kept", "yes"))
		require.NoError(t, resetAll(tx))
	})
	require.Equal(t, map[string]int64{"organizations": 2, "users": 2, "access_tokens": 2, "workspaces": 2,
		"memberships": 2, "data_keys": 3, "settings": 1}, rowsIn(t, s))
}

func TestDeleteWorkspace(t *testing.T) {
	s := open(t, Options{})
	update(t, s, func(tx *Tx) {
		w := build(t, tx, "acme")
		plain := &Workspace{OrganizationID: w.Organization.ID, Name: "plain"}
		require.NoError(t, Workspaces.Create(tx, plain))
		w.Workspace = plain
		require.NoError(t, Memberships.Create(tx, &Membership{WorkspaceID: plain.ID, UserID: w.User.ID}))
		buildConnections(t, tx, w)
		buildSyncs(t, tx, w)
		require.NoError(t, tx.appendAny(w.Topic.ID))
		require.NoError(t, Workspaces.Delete(tx, w.Organization.ID, plain.ID))
		n, err := tx.number("SELECT count(*) FROM topic_messages")
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = Invitations.Read(tx, w.Organization.ID, w.Invitation.ID)
		require.NoError(t, err)
	})
	require.EqualValues(t, 1, rowsIn(t, s)["syncs"])
}

// appendAny adds one message.
func (tx *Tx) appendAny(topicID int64) error {
	_, _, err := tx.AppendMessages(topicID, []json.RawMessage{json.RawMessage(`1`)})
	return err
}
