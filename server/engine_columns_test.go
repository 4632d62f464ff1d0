package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// mapped are the mappings that a sync shows, each as "column > field".
func (w *syncWorld) mapped(id int64) (out []string) {
	w.t.Helper()
	list := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200).at("data.mappings").([]any)
	for _, one := range list {
		m := one.(map[string]any)
		out = append(out, fmt.Sprint(m["from"].(map[string]any)["data"], " > ", m["to"]))
	}
	return out
}

// TestMappingsFollowColumns: with sync_all_properties a column that the source has
// got or lost is in the next run, without a refresh, and the sync shows what the
// run has made (spec 2.6).
func TestMappingsFollowColumns(t *testing.T) {
	w := newSyncWorld(t)
	w.changeSource(threePeople)
	own := []any{column("email", "email", true), column("name", "last_name", false)}
	id := w.kept(map[string]any{"field_behavior": "sync_all_properties", "field_normalization": "match_source_names", "mappings": own}).id("data.id")
	before := w.mapped(id)
	require.Equal(t, []string{"email > email", "name > last_name", "id > id"}, before[:3], "they are made as it is saved")
	w.runsThrough(id)
	require.Equal(t, before, w.mapped(id))
	require.NotContains(t, before, "city > city")

	w.changeSource(`ALTER TABLE customers ADD COLUMN city TEXT DEFAULT 'Graz'`)
	run := w.runsThrough(id)
	require.Equal(t, true, run.at("data.full_sync"), string(run.text))
	require.Contains(t, w.mapped(id), "city > city")

	// What a client sends back as it was shown goes on following the source.
	shown := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200).at("data").(map[string]any)
	for _, name := range []string{"id", "status", "created_at", "updated_at"} {
		delete(shown, name)
	}
	w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, shown).want(200)
	w.changeSource(`ALTER TABLE customers DROP COLUMN city`)
	w.runsThrough(id)
	require.Equal(t, before, w.mapped(id))
}
