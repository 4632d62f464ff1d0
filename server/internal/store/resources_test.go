package store

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// requireRow compares a row with what a read gives.
func requireRow[T any](t *testing.T, want *T) func(*T, error) {
	return func(got *T, err error) {
		t.Helper()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// Everything that is stored is read back as it was.
func TestRoundTrip(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w := built(t, s)
		requireStored(t, s, w)
	})
}

// requireStored reads a world back.
func requireStored(t *testing.T, s *Store, w *world) {
	t.Helper()
	view(t, s, func(tx *Tx) {
		ws, org := w.Workspace.ID, w.Organization.ID
		requireRow(t, w.Organization)(tx.Organization(org))
		requireRow(t, w.User)(Users.Read(tx, org, w.User.ID))
		requireRow(t, w.Workspace)(Workspaces.Read(tx, org, ws))
		requireRow(t, w.Destination)(Destinations.Read(tx, ws, w.Destination.ID))
		requireRow(t, w.Source)(Sources.Read(tx, ws, w.Source.ID))
		requireRow(t, w.Dataset)(Datasets.Read(tx, ws, w.Dataset.ID))
		requireRow(t, w.Model)(Models.Read(tx, w.Source.ID, w.Model.ID))
		requireRow(t, w.Topic)(Topics.Read(tx, w.Source.ID, w.Topic.ID))
		requireRow(t, w.Sync)(Syncs.Read(tx, ws, w.Sync.ID))
		requireRow(t, w.Run)(tx.SyncRun(ws, w.Run.ID))
		requireRow(t, w.Webhook)(Webhooks.Read(tx, ws, w.Webhook.ID))
		requireRow(t, w.Invitation)(Invitations.Read(tx, org, w.Invitation.ID))
		requireRow(t, w.Invited)(WorkspaceInvitations.Read(tx, ws, w.Invited.ID))
		requireRow(t, w.Refresh)(tx.Refresh(RefreshObjects, w.Destination.ID, w.Refresh.Key()))
		requireRow(t, w.Mail)(Mails.Any(tx, w.Mail.ID))
		requireRow(t, w.Segment)(Segments.Read(tx, w.Source.ID, w.Segment.ID))
		requireRow(t, w.Link)(tx.LinkByToken(w.Link.Token))
		listed, total, err := tx.Links(ws, "source", &w.Source.ID, Page{PerPage: 5})
		require.NoError(t, err)
		require.EqualValues(t, 1, total)
		require.Equal(t, []*Link{w.Link}, listed)
	})
}

// A changed row reads back changed, with the next version.
func TestSaves(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w := built(t, s)
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
	w := built(t, s)
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
		requireRow(t, cache)(tx.ObjectCache(w.Destination.ID))
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
	w := built(t, s)
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
		requireRow(t, gone)(found, err)
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
	w := built(t, s)
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
	w := built(t, s)
	update(t, s, func(tx *Tx) {
		second := &SyncRun{WorkspaceID: w.Workspace.ID, SyncID: w.Sync.ID, Run: api.SyncRun{Status: api.RunWorking}}
		require.NoError(t, SyncRuns.Create(tx, second))
		require.Equal(t, second.ID, second.Run.ID)
		require.Equal(t, w.Sync.ID, second.Run.SyncID)
		requireRow(t, w.Run)(tx.ActiveRun(w.Sync.ID))
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
	w := built(t, s)
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
		requireRow(t, done)(tx.Refresh(RefreshTables, w.Source.ID, done.Key()))
	})
}

func TestPeople(t *testing.T) {
	s := open(t, Options{})
	w := built(t, s)
	org, ws := w.Organization.ID, w.Workspace.ID
	update(t, s, func(tx *Tx) {
		requireRow(t, w.User)(tx.UserByEmail(org, "ada@ACME.example"))
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
	w, other := built(t, s), builtAs(t, s, "other")
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
