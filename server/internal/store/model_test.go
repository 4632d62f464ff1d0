package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
)

// The store behaves like a few maps, whatever is done to it in which order.
func TestMatrixStoreBehavesLikeMaps(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("one goroutine: the race detector has nothing to see, and takes a minute for it")
	}
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t, Options{})
		defer func() { require.NoError(t, m.store.Close()) }()
		t.Repeat(rapid.StateMachineActions(m))
	})
}

// machine is the store with its model; rapid calls the exported methods.
type machine struct {
	store        *Store
	organization int64
	workspaces   map[int64]Workspace
	destinations map[int64]Destination
	syncs        map[int64]Sync
	highest      int64 // id of any workspace
}

func newMachine(t *rapid.T, o Options) *machine {
	o.Clock, o.MasterKey = testClock(), testKey
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	m := &machine{store: s, workspaces: map[int64]Workspace{}, destinations: map[int64]Destination{}, syncs: map[int64]Sync{}}
	m.change(t, func(tx *Tx) error {
		o := &Organization{Name: "acme"}
		err := tx.CreateOrganization(o)
		m.organization = o.ID
		return err
	})
	return m
}

func (m *machine) change(t *rapid.T, change func(*Tx) error) {
	require.NoError(t, m.store.Update(t.Context(), change))
}

var someName = rapid.SampledFrom([]string{"a", "b", "c", "", "é"})

// pick chooses an id of the model, or one that does not exist.
func pick[T any](t *rapid.T, from map[int64]T) int64 {
	ids := []int64{999}
	for id := range from {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(t, "id")
}

func (m *machine) named(name string, but int64) bool {
	for id, w := range m.workspaces {
		if w.Name == name && id != but {
			return true
		}
	}
	return false
}

func (m *machine) CreateWorkspace(t *rapid.T) {
	w := Workspace{OrganizationID: m.organization, Name: someName.Draw(t, "name")}
	err := m.store.Update(t.Context(), func(tx *Tx) error { return Workspaces.Create(tx, &w) })
	if m.named(w.Name, 0) {
		require.ErrorAs(t, err, new(*DuplicateError))
		return
	}
	require.NoError(t, err)
	require.Greater(t, w.ID, m.highest)
	m.highest = w.ID
	m.workspaces[w.ID] = w
}

func (m *machine) SaveWorkspace(t *rapid.T) {
	id := pick(t, m.workspaces)
	w := m.workspaces[id]
	w.ID = id
	stale := rapid.Bool().Draw(t, "stale")
	if stale {
		w.Version--
	}
	w.Name = someName.Draw(t, "name")
	err := m.store.Update(t.Context(), func(tx *Tx) error { return Workspaces.Save(tx, &w) })
	_, exists := m.workspaces[id]
	switch {
	case !exists:
		require.ErrorIs(t, err, ErrNotFound)
	case stale:
		require.ErrorIs(t, err, ErrConflict)
	case m.named(w.Name, id):
		require.ErrorAs(t, err, new(*DuplicateError))
	default:
		require.NoError(t, err)
		m.workspaces[id] = w
	}
}

func (m *machine) DeleteWorkspace(t *rapid.T) {
	id := pick(t, m.workspaces)
	err := m.store.Update(t.Context(), func(tx *Tx) error { return Workspaces.Delete(tx, m.organization, id) })
	if _, exists := m.workspaces[id]; !exists {
		require.ErrorIs(t, err, ErrNotFound)
		return
	}
	require.NoError(t, err)
	delete(m.workspaces, id)
	for d, v := range m.destinations {
		if v.WorkspaceID == id {
			delete(m.destinations, d)
		}
	}
	for s, v := range m.syncs {
		if v.WorkspaceID == id {
			delete(m.syncs, s)
		}
	}
}

func (m *machine) CreateDestination(t *rapid.T) {
	workspace := pick(t, m.workspaces)
	if _, ok := m.workspaces[workspace]; !ok {
		return
	}
	d := Destination{WorkspaceID: workspace, Name: someName.Draw(t, "name")}
	m.change(t, func(tx *Tx) error { return tx.CreateDestination(&d, credentials("k", d.Name)) })
	m.destinations[d.ID] = d
}

func (m *machine) CreateSync(t *rapid.T) {
	destination, ok := m.destinations[pick(t, m.destinations)]
	if !ok {
		return
	}
	var s Sync
	m.change(t, func(tx *Tx) error {
		source := Source{WorkspaceID: destination.WorkspaceID}
		err := tx.CreateSource(&source, nil)
		s = Sync{WorkspaceID: destination.WorkspaceID, DestinationID: destination.ID, SourceID: source.ID, Status: api.SyncReady}
		return errors.Join(err, Syncs.Create(tx, &s))
	})
	m.syncs[s.ID] = s
}

func (m *machine) DeleteSync(t *rapid.T) {
	id := pick(t, m.syncs)
	s, exists := m.syncs[id]
	err := m.store.Update(t.Context(), func(tx *Tx) error { return Syncs.Delete(tx, s.WorkspaceID, id) })
	if !exists {
		require.ErrorIs(t, err, ErrNotFound)
		return
	}
	require.NoError(t, err)
	delete(m.syncs, id)
}

func (m *machine) DeleteDestination(t *rapid.T) {
	id := pick(t, m.destinations)
	d, exists := m.destinations[id]
	uses := 0
	for _, s := range m.syncs {
		if s.DestinationID == id {
			uses++
		}
	}
	err := m.store.Update(t.Context(), func(tx *Tx) error { return Destinations.Delete(tx, d.WorkspaceID, id) })
	var used *InUseError
	switch {
	case !exists:
		require.ErrorIs(t, err, ErrNotFound)
	case uses > 0:
		require.ErrorAs(t, err, &used)
		require.Equal(t, uses, used.Count)
	default:
		require.NoError(t, err)
		delete(m.destinations, id)
	}
}

func (m *machine) Undo(t *rapid.T) {
	undone := errors.New("undone")
	err := m.store.Update(t.Context(), func(tx *Tx) error {
		for id := range m.workspaces {
			if err := Workspaces.Delete(tx, m.organization, id); err != nil {
				return err
			}
		}
		if err := Workspaces.Create(tx, &Workspace{OrganizationID: m.organization, Name: "undone"}); err != nil {
			return err
		}
		return undone
	})
	require.ErrorIs(t, err, undone)
}

func (m *machine) RotateKeys(t *rapid.T) {
	require.NoError(t, m.store.RotateDataKeys(t.Context()))
}

func (m *machine) StartFromCopy(t *rapid.T) {
	var b bytes.Buffer
	require.NoError(t, m.store.Copy(t.Context(), &b))
	if rapid.Bool().Draw(t, "in place") {
		m.change(t, resetAll)
		require.NoError(t, m.store.Restore(t.Context(), &b))
		return
	}
	s, err := Open(t.Context(), Options{Clock: m.store.clock, MasterKey: testKey, From: &b})
	require.NoError(t, err)
	require.NoError(t, m.store.Close())
	m.store = s
}

// Check reads everything, in pages; rapid runs it after every step.
func (m *machine) Check(t *rapid.T) {
	require.NoError(t, m.store.View(t.Context(), func(tx *Tx) error {
		perPage := rapid.Int64Range(1, 4).Draw(t, "per page")
		got := map[int64]Workspace{}
		for page := int64(1); page <= int64(len(m.workspaces))/perPage+1; page++ {
			list, total, err := Workspaces.List(tx, m.organization, Page{Number: page, PerPage: perPage})
			require.NoError(t, err)
			require.EqualValues(t, len(m.workspaces), total)
			for _, w := range list {
				got[w.ID] = *w
			}
		}
		require.Equal(t, m.workspaces, got)
		for workspace := range m.workspaces {
			if err := m.checkWorkspace(t, tx, workspace); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (m *machine) checkWorkspace(t *rapid.T, tx *Tx, workspace int64) error {
	destinations, total, err := Destinations.List(tx, workspace, Page{})
	require.NoError(t, err)
	require.EqualValues(t, len(destinations), total)
	for _, d := range destinations {
		require.Equal(t, m.destinations[d.ID], *d)
		stored, err := tx.DestinationCredentials(d.ID)
		require.NoError(t, err)
		require.Equal(t, credentials("k", d.Name), stored)
	}
	syncs, total, err := Syncs.List(tx, workspace, Page{})
	require.NoError(t, err)
	require.EqualValues(t, len(syncs), total)
	for _, s := range syncs {
		require.Equal(t, m.syncs[s.ID], *s, fmt.Sprint(s.ID))
	}
	want := 0
	for _, s := range m.syncs {
		if s.WorkspaceID == workspace {
			want++
		}
	}
	require.Len(t, syncs, want)
	return nil
}
