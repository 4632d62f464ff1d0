package store

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
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
		requireStored(t, s, w)
	})
}

// requireStored reads a world back.
func requireStored(t *testing.T, s *Store, w *world) {
	t.Helper()
	view(t, s, func(tx *Tx) {
		ws, org := w.Workspace.ID, w.Organization.ID
		organization, err := tx.Organization(org)
		same(t, w.Organization, organization, err)
		user, err := Users.Read(tx, org, w.User.ID)
		same(t, w.User, user, err)
		workspace, err := Workspaces.Read(tx, org, ws)
		same(t, w.Workspace, workspace, err)
		destination, err := Destinations.Read(tx, ws, w.Destination.ID)
		same(t, w.Destination, destination, err)
		source, err := Sources.Read(tx, ws, w.Source.ID)
		same(t, w.Source, source, err)
		dataset, err := Datasets.Read(tx, ws, w.Dataset.ID)
		same(t, w.Dataset, dataset, err)
		model, err := Models.Read(tx, w.Source.ID, w.Model.ID)
		same(t, w.Model, model, err)
		topic, err := Topics.Read(tx, w.Source.ID, w.Topic.ID)
		same(t, w.Topic, topic, err)
		sync, err := Syncs.Read(tx, ws, w.Sync.ID)
		same(t, w.Sync, sync, err)
		run, err := tx.SyncRun(ws, w.Run.ID)
		same(t, w.Run, run, err)
		webhook, err := Webhooks.Read(tx, ws, w.Webhook.ID)
		same(t, w.Webhook, webhook, err)
		invitation, err := Invitations.Read(tx, org, w.Invitation.ID)
		same(t, w.Invitation, invitation, err)
		invited, err := WorkspaceInvitations.Read(tx, ws, w.Invited.ID)
		same(t, w.Invited, invited, err)
		refresh, err := tx.Refresh(RefreshObjects, w.Destination.ID, w.Refresh.Key())
		same(t, w.Refresh, refresh, err)
		mail, err := Mails.Any(tx, w.Mail.ID)
		same(t, w.Mail, mail, err)
		segment, err := Segments.Read(tx, w.Source.ID, w.Segment.ID)
		same(t, w.Segment, segment, err)
		link, err := tx.LinkByToken(w.Link.Token)
		same(t, w.Link, link, err)
		listed, total, err := tx.Links(ws, "source", &w.Source.ID, Page{PerPage: 5})
		require.NoError(t, err)
		require.EqualValues(t, 1, total)
		require.Equal(t, []*Link{w.Link}, listed)
	})
}

// What is changed is read back changed, with the next version.
func TestSaves(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		var w *world
		update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
		at := time.UnixMilli(1_800_000_000_000).UTC()
		update(t, s, func(tx *Tx) {
			w.User.Role, w.Workspace.NotificationEmails = "member", nil
			w.Destination.TestResults, w.Destination.TestSucceeded = nil, api.Ptr(true)
			w.Source.WritebackRetention, w.Source.TestedAt = nil, at
			w.Dataset.Description, w.Model.Description = nil, api.Ptr("d")
			w.Topic.SampleMessage, w.Topic.Schema = nil, nil
			w.Sync.DatasetID, w.Sync.SegmentID, w.Sync.Config.AlertAttributes = nil, nil, nil
			w.Segment.Description, w.Segment.Name, w.Segment.CachedRecordCount = nil, "Other", nil
			w.Run.Run.Status, w.Run.Run.CompletedAt = api.RunFailed, api.At(at)
			w.Webhook.Endpoint = "https://other.example/p"
			w.Invitation.ClaimedAt, w.Invitation.ClaimedByID = at, &w.User.ID
			w.Invited.Role = api.RoleOwner
			w.Refresh.Status, w.Refresh.CompletedAt = RefreshCompleted, at
			for _, err := range []error{
				Users.Save(tx, w.User), Workspaces.Save(tx, w.Workspace),
				tx.SaveDestination(w.Destination, nil), tx.SaveSource(w.Source, nil), Datasets.Save(tx, w.Dataset),
				Models.Save(tx, w.Model), Topics.Save(tx, w.Topic), Syncs.Save(tx, w.Sync), SyncRuns.Save(tx, w.Run),
				Webhooks.Save(tx, w.Webhook), Invitations.Save(tx, w.Invitation), WorkspaceInvitations.Save(tx, w.Invited), Refreshes.Save(tx, w.Refresh), Segments.Save(tx, w.Segment), tx.UseLink(w.Link), tx.ReopenLink(w.Link), tx.UseLink(w.Link),
			} {
				require.NoError(t, err)
			}
		})
		require.EqualValues(t, 2, w.Sync.Version)
		require.Equal(t, "https://other.example", w.Webhook.Site)
		requireStored(t, s, w)
	})
}

func TestObjectCache(t *testing.T) {
	s := open(t, Options{})
	var w *world
	update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
	cache := &ObjectCache{FetchedAt: time.UnixMilli(7).UTC(), Objects: []*api.DestinationObject{{
		FullName: "Contact", SupportedCustomFieldTypes: &[]api.CustomFieldType{}, IsAudienceDestination: api.Ptr(false),
		AdvancedConfigurationFields: []api.AdvancedField{{Name: "n", Default: json.RawMessage("1")}},
		Fields:                      []api.DestinationField{{FullName: "Id", Operations: []string{"overwrite"}}},
	}}}
	update(t, s, func(tx *Tx) {
		_, err := tx.ObjectCache(w.Destination.ID)
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, tx.PutObjectCache(w.Destination.ID, &ObjectCache{FetchedAt: time.UnixMilli(1)}))
		require.NoError(t, tx.PutObjectCache(w.Destination.ID, cache))
		require.Error(t, tx.PutObjectCache(99, cache))
	})
	view(t, s, func(tx *Tx) {
		stored, err := tx.ObjectCache(w.Destination.ID)
		same(t, cache, stored, err)
	})
	update(t, s, func(tx *Tx) {
		require.NoError(t, tx.DropObjectCache(w.Destination.ID))
		_, err := tx.ObjectCache(w.Destination.ID)
		require.ErrorIs(t, err, ErrNotFound)
	})
}

// Ids of tables stay, whether a table goes, comes back or gets columns.
func TestSourceTables(t *testing.T) {
	s := open(t, Options{})
	var w *world
	update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
	source := w.Source.ID
	table := func(name string, columns ...api.Column) api.Table {
		return api.Table{TableCatalog: "main", TableSchema: "main", TableName: name, Columns: columns}
	}
	put := func(tables ...api.Table) (names []string) {
		update(t, s, func(tx *Tx) {
			require.NoError(t, tx.PutSourceTables(source, tables))
			found, total, err := tx.SourceTables(source, Page{Ascending: true})
			require.NoError(t, err)
			require.EqualValues(t, len(found), total)
			for _, f := range found {
				names = append(names, fmt.Sprintf("%d %s v%d columns=%d", f.ID, f.Name, f.Version, len(f.Columns)))
			}
		})
		return names
	}
	id := api.Column{Name: "id", Type: "bigint", Kind: api.KindInteger}
	require.Equal(t, []string{"1 users v1 columns=1", "2 orders v1 columns=0"}, put(table("users"), table("orders")), "nothing has changed")
	require.Equal(t, []string{"2 orders v2 columns=1", "3 new v1 columns=0"}, put(table("new"), table("orders", id)))
	require.Equal(t, []string{"1 users v3 columns=1", "2 orders v2 columns=1"}, put(table("users"), table("orders", id)))
	require.Empty(t, put())
	update(t, s, func(tx *Tx) {
		gone, err := SourceTables.Read(tx, source, 1)
		require.NoError(t, err)
		require.True(t, gone.Gone)
		found, err := tx.FindSourceTable(source, "main", "main", "users")
		same(t, gone, found, err)
		require.Equal(t, []api.Column{id}, found.Columns)
		_, err = tx.FindSourceTable(source, "main", "main", "Users")
		require.ErrorIs(t, err, ErrNotFound)
		found.Columns = []api.Column{}
		require.NoError(t, SourceTables.Save(tx, found))
		_, err = SourceTables.Read(tx, 99, 1)
		require.ErrorIs(t, err, ErrNotFound)
		err = tx.PutSourceTables(source, []api.Table{table("twice"), table("twice")})
		require.ErrorContains(t, err, "put tables of source")
	})
}

func TestMessages(t *testing.T) {
	s := open(t, Options{})
	var w *world
	update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
	topic := w.Topic.ID
	bodies := func(texts ...string) (found []json.RawMessage) {
		for _, text := range texts {
			found = append(found, json.RawMessage(text))
		}
		return found
	}
	update(t, s, func(tx *Tx) {
		for _, c := range []struct {
			bodies      []json.RawMessage
			first, last int64
		}{
			{nil, 0, 0},
			{bodies(`{"n":1}`, `12345678901234567890.50`, `"☃"`), 1, 3},
			{nil, 3, 3},
			{bodies(`null`), 4, 4},
		} {
			first, last, err := tx.AppendMessages(topic, c.bodies)
			require.NoError(t, err)
			require.Equal(t, []int64{c.first, c.last}, []int64{first, last})
		}
		_, _, err := tx.AppendMessages(99, bodies(`1`))
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, Topics.Save(tx, w.Topic), "messages do not change the topic's version")
	})
	view(t, s, func(tx *Tx) {
		found, err := tx.Messages(topic, 1, 2)
		require.NoError(t, err)
		require.Equal(t, []Message{{2, found[0].At, bodies(`12345678901234567890.50`)[0]}, {3, found[0].At, bodies(`"☃"`)[0]}}, found)
		found, err = tx.Messages(topic, 4, 10)
		require.NoError(t, err)
		require.Empty(t, found)
	})
}

func TestRuns(t *testing.T) {
	s := open(t, Options{})
	var w *world
	update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
	update(t, s, func(tx *Tx) {
		second := &SyncRun{WorkspaceID: w.Workspace.ID, SyncID: w.Sync.ID, Run: api.SyncRun{Status: api.RunWorking}}
		require.NoError(t, SyncRuns.Create(tx, second))
		require.Equal(t, second.ID, second.Run.ID)
		require.Equal(t, w.Sync.ID, second.Run.SyncID)
		active, err := tx.ActiveRun(w.Sync.ID)
		same(t, w.Run, active, err)
		all, err := tx.EveryActiveRun()
		require.NoError(t, err)
		require.Equal(t, []*SyncRun{w.Run, second}, all)
		for _, run := range all {
			run.Run.Status = api.RunSkipped
			require.NoError(t, SyncRuns.Save(tx, run))
		}
		_, err = tx.ActiveRun(w.Sync.ID)
		require.ErrorIs(t, err, ErrNotFound)
		last, err := tx.LastRun(w.Sync.ID)
		require.NoError(t, err)
		require.Equal(t, second.ID, last.ID)
		_, total, err := SyncRuns.List(tx, w.Sync.ID, Page{PerPage: 1})
		require.NoError(t, err)
		require.EqualValues(t, 2, total)
	})
}

func TestRefreshes(t *testing.T) {
	s := open(t, Options{})
	var w *world
	update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
	update(t, s, func(tx *Tx) {
		require.Equal(t, RefreshProcessing, w.Refresh.Status)
		done := &Refresh{WorkspaceID: w.Workspace.ID, Kind: RefreshTables, TargetID: w.Source.ID, Status: RefreshCompleted}
		require.NoError(t, Refreshes.Create(tx, done))
		require.NoError(t, tx.AbandonRefreshes())
		failed, err := tx.Refresh(RefreshObjects, w.Destination.ID, w.Refresh.Key())
		require.NoError(t, err)
		require.Equal(t, RefreshFailed, failed.Status)
		require.Equal(t, "the service was stopped", failed.Error)
		require.Equal(t, tx.Now(), failed.CompletedAt)
		stored, err := tx.Refresh(RefreshTables, w.Source.ID, done.Key())
		same(t, done, stored, err)
	})
}

func TestPeople(t *testing.T) {
	s := open(t, Options{})
	var w *world
	update(t, s, func(tx *Tx) { w = build(t, tx, "acme") })
	org, ws := w.Organization.ID, w.Workspace.ID
	update(t, s, func(tx *Tx) {
		user, err := tx.UserByEmail(org, "ada@ACME.example")
		same(t, w.User, user, err)
		all, err := tx.UsersByEmail("ADA@acme.example")
		require.NoError(t, err)
		require.Equal(t, []*User{w.User}, all)

		list, total, err := Invitations.List(tx, org, Page{})
		require.NoError(t, err)
		require.EqualValues(t, 1, total)
		require.Equal(t, []*Invitation{w.Invitation}, list)
		_, total, err = WorkspaceInvitations.List(tx, ws, Page{})
		require.NoError(t, err)
		require.EqualValues(t, 2, total, "the part of the organization's invitation too")
		require.NoError(t, Invitations.Delete(tx, org, w.Invitation.ID))
		_, total, err = WorkspaceInvitations.List(tx, ws, Page{})
		require.NoError(t, err)
		require.EqualValues(t, 1, total)

		joined, err := tx.Membership(ws, w.User.ID)
		require.NoError(t, err)
		require.NoError(t, Memberships.Delete(tx, ws, joined.ID))
		_, err = tx.Membership(ws, w.User.ID)
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, Users.Delete(tx, org, w.User.ID))
		_, err = tx.AccessTokenOwner(w.Token)
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestMailbox(t *testing.T) {
	s := open(t, Options{})
	var w, other *world
	update(t, s, func(tx *Tx) { w, other = build(t, tx, "acme"), build(t, tx, "other") })
	update(t, s, func(tx *Tx) {
		list, total, err := Mails.List(tx, w.Organization.ID, Page{})
		require.NoError(t, err)
		require.EqualValues(t, 1, total)
		require.Equal(t, []*Mail{w.Mail}, list)
		require.Equal(t, w.Mail.CreatedAt, w.Mail.At)
		require.NoError(t, tx.DeleteMails(w.Organization.ID))
		_, total, err = Mails.List(tx, w.Organization.ID, Page{})
		require.NoError(t, err)
		require.Zero(t, total)
		_, total, err = Mails.List(tx, other.Organization.ID, Page{})
		require.NoError(t, err)
		require.EqualValues(t, 1, total)
	})
}

func TestSettings(t *testing.T) {
	s := open(t, Options{})
	update(t, s, func(tx *Tx) {
		_, err := tx.Setting("k")
		require.ErrorIs(t, err, ErrNotFound)
		require.NoError(t, tx.SetSetting("k", ""))
		require.NoError(t, tx.SetSetting("k", "v"))
		value, err := tx.Setting("k")
		require.NoError(t, err)
		require.Equal(t, "v", value)
		require.NoError(t, tx.SetSetting("k of 2", "w"))
		all, err := tx.Settings("k")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k": "v", "k of 2": "w"}, all)
		all, err = tx.Settings("k of ")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"k of 2": "w"}, all)
		require.NoError(t, tx.DeleteSetting("k"))
		require.NoError(t, tx.DeleteSetting("k"))
	})
}
