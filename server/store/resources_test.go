package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// same reads a row back and compares.
func same[T any](t *testing.T, want *T, got *T, err error) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Everything that is stored is read back as it was.
func TestRoundTrip(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		var w *world
		update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
		view(t, s, func(tx *Tx) {
			ws, org := w.Workspace.ID, w.Organization.ID
			organization, err := tx.Organization(org)
			same(t, w.Organization, organization, err)
			user, err := tx.User(org, w.User.ID)
			same(t, w.User, user, err)
			workspace, err := tx.Workspace(org, ws)
			same(t, w.Workspace, workspace, err)
			destination, err := tx.Destination(ws, w.Destination.ID)
			same(t, w.Destination, destination, err)
			source, err := tx.Source(ws, w.Source.ID)
			same(t, w.Source, source, err)
			dataset, err := tx.Dataset(ws, w.Dataset.ID)
			same(t, w.Dataset, dataset, err)
			model, err := tx.Model(w.Source.ID, w.Model.ID)
			same(t, w.Model, model, err)
			topic, err := tx.Topic(w.Source.ID, w.Topic.ID)
			same(t, w.Topic, topic, err)
			sync, err := tx.Sync(ws, w.Sync.ID)
			same(t, w.Sync, sync, err)
			run, err := tx.SyncRun(ws, w.Run.ID)
			same(t, w.Run, run, err)
			webhook, err := tx.Webhook(ws, w.Webhook.ID)
			same(t, w.Webhook, webhook, err)
			invitation, err := tx.Invitation(org, w.Invitation.ID)
			same(t, w.Invitation, invitation, err)
			invited, err := tx.WorkspaceInvitation(ws, w.Invited.ID)
			same(t, w.Invited, invited, err)
			refresh, err := tx.Refresh(RefreshObjects, w.Destination.ID, w.Refresh.Key())
			same(t, w.Refresh, refresh, err)
			mail, err := tx.Mail(org, w.Mail.ID)
			same(t, w.Mail, mail, err)
		})
	})
}
