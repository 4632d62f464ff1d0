package store

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestDuplicates(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w, other := built(t, s), builtAs(t, s, "other")
		second := &Workspace{OrganizationID: w.Organization.ID, Name: "Second"}
		update(t, s, func(tx *Tx) { require.NoError(t, Workspaces.Create(tx, second)) })
		for name, c := range map[string]struct {
			change func(tx *Tx) error
			want   DuplicateError
		}{
			"user, other case": {func(tx *Tx) error {
				return Users.Create(tx, &User{OrganizationID: w.Organization.ID, Email: "ADA@ACME.example"})
			}, DuplicateError{"user", "email", "ADA@ACME.example"}},
			"workspace": {func(tx *Tx) error {
				return Workspaces.Create(tx, &Workspace{OrganizationID: w.Organization.ID, Name: "Main"})
			}, DuplicateError{"workspace", "name", "Main"}},
			"renamed workspace": {func(tx *Tx) error {
				renamed := *second
				renamed.Name = "Main"
				return Workspaces.Save(tx, &renamed)
			}, DuplicateError{"workspace", "name", "Main"}},
			"membership": {func(tx *Tx) error {
				return Memberships.Create(tx, &Membership{WorkspaceID: w.Workspace.ID, UserID: w.User.ID})
			}, DuplicateError{"membership", "user", "1"}},
			"topic": {func(tx *Tx) error {
				return Topics.Create(tx, &Topic{SourceID: w.Source.ID, Name: "events"})
			}, DuplicateError{"topic", "name", "events"}},
			"dataset": {func(tx *Tx) error {
				return Datasets.Create(tx, &Dataset{WorkspaceID: w.Workspace.ID, SourceID: w.Source.ID, Slug: "active"})
			}, DuplicateError{"dataset", "slug", "active"}},
			"model of the same dataset": {func(tx *Tx) error {
				return Models.Create(tx, &Model{SourceID: w.Source.ID, DatasetID: w.ModelDataset.ID})
			}, DuplicateError{"model", "dataset", ""}},
			"token of another user": {func(tx *Tx) error {
				return tx.AdoptAccessToken(other.User.ID, w.Token)
			}, DuplicateError{"access token", "text", ""}},
			"key of another workspace": {func(tx *Tx) error {
				return tx.AdoptWorkspaceKey(other.Workspace.ID, w.Key)
			}, DuplicateError{"workspace", "API key", ""}},
		} {
			t.Run(name, func(t *testing.T) {
				err := s.Update(t.Context(), c.change)
				var got *DuplicateError
				require.ErrorAs(t, err, &got)
				require.Equal(t, c.want, *got)
				require.NotContains(t, err.Error(), w.Token)
				require.NotContains(t, err.Error(), w.Key)
			})
		}
		t.Run("the transaction goes on", func(t *testing.T) {
			update(t, s, func(tx *Tx) {
				require.Error(t, Topics.Create(tx, &Topic{SourceID: w.Source.ID, Name: "events"}))
				require.NoError(t, Topics.Create(tx, &Topic{SourceID: w.Source.ID, Name: "events 2"}))
			})
		})
	})
}

func TestInUse(t *testing.T) {
	s := open(t, Options{})
	w := built(t, s)
	ws, source := w.Workspace.ID, w.Source.ID
	deletions := []struct {
		name   string
		delete func(tx *Tx) error
		want   InUseError // the zero value: done
	}{
		{"destination of a sync", func(tx *Tx) error { return Destinations.Delete(tx, ws, w.Destination.ID) }, InUseError{"destination", 1, "sync", 1}},
		{"source of a sync", func(tx *Tx) error { return Sources.Delete(tx, ws, source) }, InUseError{"source", 1, "sync", 1}},
		{"dataset of a sync", func(tx *Tx) error { return Datasets.Delete(tx, ws, w.Dataset.ID) }, InUseError{"dataset", 1, "sync", 1}},
		{"segment of a sync", func(tx *Tx) error { return Segments.Delete(tx, source, w.Segment.ID) }, InUseError{"segment", 1, "sync", 1}},
		{"topic of a sync", func(tx *Tx) error { return Topics.Delete(tx, source, w.Topic.ID) }, InUseError{"topic", 1, "sync", 1}},
		{"sync with a queued run", func(tx *Tx) error { return Syncs.Delete(tx, ws, w.Sync.ID) }, InUseError{"sync", 1, "active run", 1}},
		{"end of the run", func(tx *Tx) error {
			w.Run.Run.Status = api.RunCompleted
			return SyncRuns.Save(tx, w.Run)
		}, InUseError{}},
		{"sync", func(tx *Tx) error { return Syncs.Delete(tx, ws, w.Sync.ID) }, InUseError{}},
		{"destination", func(tx *Tx) error { return Destinations.Delete(tx, ws, w.Destination.ID) }, InUseError{}},
		{"source of a dataset", func(tx *Tx) error { return Sources.Delete(tx, ws, source) }, InUseError{"source", 1, "dataset", 1}},
		{"dataset with a segment", func(tx *Tx) error { return Datasets.Delete(tx, ws, w.Dataset.ID) }, InUseError{}},
		{"segment that went with it", func(tx *Tx) error {
			require.ErrorIs(t, second(Segments.Read(tx, source, w.Segment.ID)), ErrNotFound)
			return nil
		}, InUseError{}},
		{"source with a model and a topic", func(tx *Tx) error { return Sources.Delete(tx, ws, source) }, InUseError{}},
	}
	for _, d := range deletions {
		err := s.Update(t.Context(), d.delete)
		var got *InUseError
		if d.want == (InUseError{}) {
			require.NoError(t, err, d.name)
			continue
		}
		require.ErrorAs(t, err, &got, d.name)
		require.Equal(t, d.want, *got, d.name)
	}
	view(t, s, func(tx *Tx) {
		_, err := Models.Read(tx, source, w.Model.ID)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = Datasets.Read(tx, ws, w.ModelDataset.ID)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = tx.ObjectCache(w.Destination.ID)
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestModelAndDatasetGoTogether(t *testing.T) {
	s := open(t, Options{})
	w := built(t, s)
	update(t, s, func(tx *Tx) {
		sync := *w.Sync
		sync.DatasetID = &w.ModelDataset.ID
		require.NoError(t, Syncs.Create(tx, &sync))
		var used *InUseError
		require.ErrorAs(t, Models.Delete(tx, w.Source.ID, w.Model.ID), &used)
		require.Equal(t, InUseError{"model", w.Model.ID, "sync", 1}, *used)
		require.NoError(t, Syncs.Delete(tx, w.Workspace.ID, sync.ID))
		require.NoError(t, Models.Delete(tx, w.Source.ID, w.Model.ID))
		_, err := Datasets.Read(tx, w.Workspace.ID, w.ModelDataset.ID)
		require.ErrorIs(t, err, ErrNotFound)
	})
}

// A row of another owner is not there: not to be read and not to be deleted.
func TestScopes(t *testing.T) {
	s := open(t, Options{})
	w, other := built(t, s), builtAs(t, s, "other")
	org, ws, source := other.Organization.ID, other.Workspace.ID, other.Source.ID
	reads := map[string]func(tx *Tx) error{
		"user":                 func(tx *Tx) error { return second(Users.Read(tx, org, w.User.ID)) },
		"user by e-mail":       func(tx *Tx) error { return second(tx.UserByEmail(org, w.User.Email)) },
		"workspace":            func(tx *Tx) error { return second(Workspaces.Read(tx, org, w.Workspace.ID)) },
		"invitation":           func(tx *Tx) error { return second(Invitations.Read(tx, org, w.Invitation.ID)) },
		"workspace invitation": func(tx *Tx) error { return second(WorkspaceInvitations.Read(tx, ws, w.Invited.ID)) },
		"destination":          func(tx *Tx) error { return second(Destinations.Read(tx, ws, w.Destination.ID)) },
		"source":               func(tx *Tx) error { return second(Sources.Read(tx, ws, w.Source.ID)) },
		"dataset":              func(tx *Tx) error { return second(Datasets.Read(tx, ws, w.Dataset.ID)) },
		"model":                func(tx *Tx) error { return second(Models.Read(tx, source, w.Model.ID)) },
		"topic":                func(tx *Tx) error { return second(Topics.Read(tx, source, w.Topic.ID)) },
		"segment":              func(tx *Tx) error { return second(Segments.Read(tx, source, w.Segment.ID)) },
		"link":                 func(tx *Tx) error { return second(tx.LinkByToken(w.Link.Token + "x")) },
		"sync":                 func(tx *Tx) error { return second(Syncs.Read(tx, ws, w.Sync.ID)) },
		"sync run":             func(tx *Tx) error { return second(tx.SyncRun(ws, w.Run.ID)) },
		"webhook":              func(tx *Tx) error { return second(Webhooks.Read(tx, ws, w.Webhook.ID)) },
		"refresh":              func(tx *Tx) error { return second(tx.Refresh(RefreshTables, w.Refresh.TargetID, w.Refresh.ID)) },
	}
	for name, read := range reads {
		require.ErrorIs(t, s.View(t.Context(), read), ErrNotFound, name)
	}
	deletions := map[string]func(tx *Tx) error{
		"user":                 func(tx *Tx) error { return Users.Delete(tx, org, w.User.ID) },
		"workspace":            func(tx *Tx) error { return Workspaces.Delete(tx, org, w.Workspace.ID) },
		"invitation":           func(tx *Tx) error { return Invitations.Delete(tx, org, w.Invitation.ID) },
		"workspace invitation": func(tx *Tx) error { return WorkspaceInvitations.Delete(tx, ws, w.Invited.ID) },
		"destination":          func(tx *Tx) error { return Destinations.Delete(tx, ws, w.Destination.ID) },
		"source":               func(tx *Tx) error { return Sources.Delete(tx, ws, w.Source.ID) },
		"dataset":              func(tx *Tx) error { return Datasets.Delete(tx, ws, w.Dataset.ID) },
		"model":                func(tx *Tx) error { return Models.Delete(tx, source, w.Model.ID) },
		"topic":                func(tx *Tx) error { return Topics.Delete(tx, source, w.Topic.ID) },
		"segment":              func(tx *Tx) error { return Segments.Delete(tx, source, w.Segment.ID) },
		"sync":                 func(tx *Tx) error { return Syncs.Delete(tx, ws, w.Sync.ID) },
		"webhook":              func(tx *Tx) error { return Webhooks.Delete(tx, ws, w.Webhook.ID) },
		"membership":           func(tx *Tx) error { return Memberships.Delete(tx, ws, 1) },
	}
	for name, change := range deletions {
		require.ErrorIs(t, s.Update(t.Context(), change), ErrNotFound, name)
	}
}

func second[T any](_ T, err error) error { return err }

// Any text that JSON can hold is a name; two forms of one letter are two names.
func TestNamesOfAnyUnicode(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		o := &Organization{Name: "acme"}
		update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(o)) })
		for _, name := range []string{"", " ", "a\x00b", "\x00", "e\u0301", "\u00e9", "日本語", "🦊\u200d", "\u202eright", "'; DROP TABLE users; --", "\ufffd", "\U0010ffff"} {
			w := &Workspace{OrganizationID: o.ID, Name: name, NotificationEmails: []string{name}}
			update(t, s, func(tx *Tx) { require.NoError(t, Workspaces.Create(tx, w), "%q", name) })
			view(t, s, func(tx *Tx) {
				requireRow(t, w)(Workspaces.Read(tx, o.ID, w.ID))
			})
		}
	})
}

func TestConflictOfVersions(t *testing.T) {
	s := open(t, Options{})
	w := built(t, s)
	first, second := *w.Sync, *w.Sync
	first.Config.Paused = true
	update(t, s, func(tx *Tx) { require.NoError(t, Syncs.Save(tx, &first)) })
	require.EqualValues(t, 2, first.Version)
	err := s.Update(t.Context(), func(tx *Tx) error { return Syncs.Save(tx, &second) })
	require.ErrorIs(t, err, ErrConflict)
	require.EqualValues(t, 1, second.Version)
	missing := Sync{Row: Row{ID: 99, Version: 1}, WorkspaceID: w.Workspace.ID, DestinationID: 1, SourceID: 1}
	err = s.Update(t.Context(), func(tx *Tx) error { return Syncs.Save(tx, &missing) })
	require.ErrorIs(t, err, ErrNotFound)
}

// Of writers that read the same version one wins and the others get an error.
func TestConcurrentWriters(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w := built(t, s)
		const writers = 8
		results := make(chan error, writers)
		for i := range writers {
			mine := *w.Sync
			mine.NextAlertID = int64(100 + i)
			go func() {
				results <- s.Update(t.Context(), func(tx *Tx) error { return Syncs.Save(tx, &mine) })
			}()
		}
		won := 0
		for range writers {
			if err := <-results; err == nil {
				won++
			} else {
				require.ErrorIs(t, err, ErrConflict)
			}
		}
		require.Equal(t, 1, won)
		view(t, s, func(tx *Tx) {
			stored, err := Syncs.Read(tx, w.Workspace.ID, w.Sync.ID)
			require.NoError(t, err)
			require.EqualValues(t, 2, stored.Version)
			require.GreaterOrEqual(t, stored.NextAlertID, int64(100))
		})
	})
}

func TestCredentialsAreKeptUnlessGiven(t *testing.T) {
	s := open(t, Options{})
	w := built(t, s)
	check := func(want map[string]json.RawMessage) {
		t.Helper()
		view(t, s, func(tx *Tx) {
			got, err := tx.DestinationCredentials(w.Destination.ID)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
	check(credentials("auth_token", secretToken))
	update(t, s, func(tx *Tx) {
		w.Destination.Name = "renamed"
		require.NoError(t, tx.SaveDestination(w.Destination, nil))
	})
	check(credentials("auth_token", secretToken))
	update(t, s, func(tx *Tx) {
		require.NoError(t, tx.SaveDestination(w.Destination, map[string]json.RawMessage{"n": json.RawMessage("12345678901234567890")}))
	})
	check(map[string]json.RawMessage{"n": json.RawMessage("12345678901234567890")})
	view(t, s, func(tx *Tx) {
		got, err := tx.SourceCredentials(w.Source.ID)
		require.NoError(t, err)
		require.Equal(t, credentials("password", secretPassword), got)
		_, err = tx.SourceCredentials(99)
		require.ErrorIs(t, err, ErrNotFound)
	})
	err := s.Update(t.Context(), func(tx *Tx) error {
		return tx.SaveDestination(w.Destination, map[string]json.RawMessage{"x": json.RawMessage("{" + secretToken)})
	})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "SECRET")
	require.False(t, errors.Is(err, ErrConflict))
}
