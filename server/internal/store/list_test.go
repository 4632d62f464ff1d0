package store

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPaging(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		o := &Organization{Name: "acme"}
		update(t, s, func(tx *Tx) {
			require.NoError(t, tx.CreateOrganization(o))
			for i := range 7 { // one transaction: one creation time, so ids decide
				require.NoError(t, Users.Create(tx, &User{OrganizationID: o.ID, Email: fmt.Sprint("u", i)}))
			}
			other := &Organization{Name: "other"}
			require.NoError(t, tx.CreateOrganization(other))
			require.NoError(t, Users.Create(tx, &User{OrganizationID: other.ID, Email: "u0"}))
		})
		for _, c := range []struct {
			page Page
			want []string
		}{
			{Page{}, []string{"u6", "u5", "u4", "u3", "u2", "u1", "u0"}},
			{Page{Number: 1, PerPage: 3}, []string{"u6", "u5", "u4"}},
			{Page{Number: 0, PerPage: 3}, []string{"u6", "u5", "u4"}},
			{Page{Number: 3, PerPage: 3}, []string{"u0"}},
			{Page{Number: 3, PerPage: 3, Ascending: true}, []string{"u6"}},
			{Page{Number: 4, PerPage: 3}, nil},
			{Page{Number: 10_000, PerPage: 100}, nil},
			{Page{Number: math.MaxInt64, PerPage: 100}, nil},
			{Page{Number: -5, PerPage: 2, Ascending: true}, []string{"u0", "u1"}},
		} {
			view(t, s, func(tx *Tx) {
				found, total, err := Users.List(tx, o.ID, c.page)
				require.NoError(t, err)
				require.EqualValues(t, 7, total)
				var emails []string
				for _, u := range found {
					emails = append(emails, u.Email)
				}
				require.Equal(t, c.want, emails, "%+v", c.page)
			})
		}
	})
}

// Rows are ordered by their creation, whatever happened to them later.
func TestOrderIsByCreation(t *testing.T) {
	s := open(t, Options{})
	o := &Organization{Name: "acme"}
	update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(o)) })
	var all []*Workspace
	for i := range 3 {
		update(t, s, func(tx *Tx) {
			w := &Workspace{OrganizationID: o.ID, Name: fmt.Sprint("w", i)}
			require.NoError(t, Workspaces.Create(tx, w))
			all = append(all, w)
		})
	}
	update(t, s, func(tx *Tx) {
		all[0].Name = "changed"
		require.NoError(t, Workspaces.Save(tx, all[0]))
		require.True(t, all[0].UpdatedAt.After(all[2].CreatedAt))
		require.EqualValues(t, 2, all[0].Version)
	})
	view(t, s, func(tx *Tx) {
		found, total, err := Workspaces.List(tx, o.ID, Page{Ascending: true})
		require.NoError(t, err)
		require.EqualValues(t, 3, total)
		require.Equal(t, all, found)
	})
}

func TestTimesAreMillisecondsUTC(t *testing.T) {
	zone := time.FixedZone("x", 3600)
	s := open(t, Options{Clock: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, zone) }})
	o := &Organization{Name: "acme"}
	update(t, s, func(tx *Tx) { require.NoError(t, tx.CreateOrganization(o)) })
	require.Equal(t, time.Date(2026, 1, 2, 2, 4, 5, 678_000_000, time.UTC), o.CreatedAt)
	view(t, s, func(tx *Tx) {
		requireRow(t, o)(tx.Organization(o.ID))
	})
}

// Deleted ids are never given again, across a restart either.
func TestIDsAreNeverUsedTwice(t *testing.T) {
	o := Options{MasterKey: testKey}.a(t, onDisk)
	var seen []int64
	for range 2 {
		s, err := Open(t.Context(), o)
		require.NoError(t, err)
		for range 3 {
			update(t, s, func(tx *Tx) {
				o := &Organization{Name: "gone"}
				require.NoError(t, tx.CreateOrganization(o))
				require.NotContains(t, seen, o.ID)
				seen = append(seen, o.ID)
				require.NoError(t, tx.DeleteOrganization(o.ID))
			})
		}
		require.NoError(t, s.Close())
	}
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6}, seen)
}

func TestSyncHeads(t *testing.T) {
	eachKind(t, func(t *testing.T, s *Store) {
		w := built(t, s)
		update(t, s, func(tx *Tx) {
			second := *w.Sync
			require.NoError(t, Syncs.Create(tx, &second))
			require.NoError(t, tx.SetSyncOutcome(w.Sync.ID, "Up to Date", nil))
			require.ErrorIs(t, tx.SetSyncOutcome(99, "Failing", nil), ErrNotFound)
		})
		view(t, s, func(tx *Tx) {
			heads, total, err := Syncs.Heads(tx, w.Workspace.ID, Page{PerPage: 1, Number: 2})
			require.NoError(t, err)
			require.EqualValues(t, 2, total)
			require.Equal(t, []Head{{ID: w.Sync.ID, Version: 2}}, heads)
			head, err := Syncs.Head(tx, w.Workspace.ID, w.Sync.ID)
			require.NoError(t, err)
			require.Equal(t, heads[0], head)
			_, err = Syncs.Head(tx, w.Workspace.ID+1, w.Sync.ID)
			require.ErrorIs(t, err, ErrNotFound)
			stored, err := Syncs.Read(tx, w.Workspace.ID, w.Sync.ID)
			require.NoError(t, err)
			require.Equal(t, "Up to Date", stored.Status)
			require.Nil(t, stored.MatchRate)
			require.Equal(t, w.Sync.UpdatedAt, stored.UpdatedAt)
			all, err := tx.EverySync(w.Sync.ID, 10)
			require.NoError(t, err)
			require.Len(t, all, 1)
		})
	})
}
