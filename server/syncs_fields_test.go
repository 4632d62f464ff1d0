package server

import (
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// syncWorld is a world with a source and a destination, and the means to try
// bodies of syncs.
type syncWorld struct {
	*world
	source, dest int64
}

func newSyncWorld(t testing.TB, change ...func(*Config)) *syncWorld {
	w := newWorld(t, change...)
	return &syncWorld{w, w.newSource(), w.newDestination()}
}

// body is a valid sync with changes laid over it.
func (w *syncWorld) body(changes map[string]any) map[string]any {
	body := syncBody(w.source, w.dest)
	maps.Copy(body, changes)
	return body
}

// kept creates a sync and reads it back.
func (w *syncWorld) kept(changes map[string]any) *answer {
	w.t.Helper()
	id := w.do("POST", "/syncs", w.key, w.body(changes)).want(200).id("data.sync_id")
	return w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
}

// refused tries a sync that must not be, and gives its problems.
func (w *syncWorld) refused(changes map[string]any) map[string]string {
	w.t.Helper()
	return w.do("POST", "/syncs", w.key, w.body(changes)).want(400).problems()
}

// spreadsheet makes the sync write to an object with field ordering and append.
func (w *syncWorld) spreadsheet(changes map[string]any) map[string]any {
	w.t.Helper()
	id := w.emulated("google_sheets").id("data.id")
	out := map[string]any{
		"destination_attributes": map[string]any{"connection_id": id, "object": "Sheet1"},
		"operation":              "append",
		"mappings":               []any{column("name", "name", false)},
	}
	maps.Copy(out, changes)
	return out
}

// TestSettingsThatExcludeEachOther: a form of names without all properties, and the
// mapping of records in a live sync of a streaming database (spec 2.6).
func TestSettingsThatExcludeEachOther(t *testing.T) {
	proves(t, "F-2.6-14", "F-2.6-17")
	w := newSyncWorld(t)
	require.Contains(t, w.refused(map[string]any{"field_normalization": "snake_case"}), "field_normalization")
	database := w.sourceOf("materialize", map[string]any{"host": "db.example.com", "port": 6875, "database": "materialize", "user": "reader", "password": "p"}).id("data.id")
	table := w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc", database), w.key, nil).want(200).at("data.0")
	require.Contains(t, w.refused(map[string]any{
		"source_attributes":    map[string]any{"connection_id": database, "object": table},
		"mode":                 map[string]any{"type": "live"},
		"sync_behavior_family": "mapRecords",
	}), "sync_behavior_family")
}
