//go:build linux

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/testdata/crowd"
	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/server/api"
)

// mostServiceMemory is what a service may hold at its highest, whatever one workspace
// key lets it do: 512 MiB.
const mostServiceMemory = 512 << 20

// TestMatrixOfTheServicesMemory: replies of 15 MB that are nothing but results, values
// and rows without measure, templates that grow with each step and large bodies, all
// at once.
func TestMatrixOfTheServicesMemory(t *testing.T) {
	matrixtest.Long(t)
	matrixtest.NotShort(t)
	const each = 8
	w := newCrowded(t)
	id := func(path string, body any) int64 {
		var made struct {
			ID   int64 `json:"id"`
			Sync int64 `json:"sync_id"`
		}
		require.NoError(t, w.api.Post(t.Context(), path, body, &made))
		return max(made.ID, made.Sync)
	}
	from := id("/sources", map[string]any{"connection": map[string]any{"name": "Shop", "type": "sqlite", "credentials": map[string]any{"path": w.source}}})
	connect := func(name, url string) int64 {
		return id("/destinations", map[string]any{"service_connection": map[string]any{
			"name": name, "type": "custom_api", "credentials": map[string]any{"api_version": 1, "webhook_url": url}}})
	}
	many := whole(okHead, `{"jsonrpc":"2.0","id":$ID,"result":{"record_results":[{}`, `,{}`, 5<<20, `]}}`)
	flooding := connect("Flooding", sabotage(t, "sync_batch", many, things(each)...))
	good := connect("Good", sabotage(t, "nothing", nil, things(3*each)...))
	var syncs, wide []int64
	// write is a sync of four rows into its own object.
	write := func(to int64, object, query string, mapping map[string]any) {
		dataset := id("/datasets", map[string]any{"name": fmt.Sprintf("Rows of %s for %d", object, to), "type": "sql", "source_id": from, "query": query + " FROM rows WHERE id <= 4"})
		body := crowd.SyncBody(from, to, object, api.OperationUpsert)
		body["source_attributes"] = map[string]any{"connection_id": from, "object": map[string]any{"type": "dataset", "id": dataset}}
		if mapping != nil {
			body["mappings"].([]map[string]any)[1]["from"] = mapping
		}
		syncs = append(syncs, id("/syncs", body))
	}
	const plain = "SELECT id, first, second"
	grown := map[string]any{"type": "liquid_template", "data": "{{ 'aaaaaaaaaa'" + strings.Repeat(" | replace: 'a', 'aaaaaaaaaa'", 10) + " }}"}
	for i := range each {
		write(flooding, thing(i), plain, nil)
		write(good, thing(i), plain, grown)
		write(good, thing(each+i), "SELECT id, first, randomblob(400000000) AS second", nil)
		write(good, thing(2*each+i), "SELECT id, first, hex(zeroblob(8000000)) AS second", nil)
		wide = append(wide, syncs[len(syncs)-1])
	}
	var calls sync.WaitGroup
	for _, one := range syncs {
		calls.Go(func() { _, _ = w.api.Trigger(t.Context(), one, false) })
	}
	for range each {
		calls.Go(func() {
			_ = w.api.Post(t.Context(), "/syncs", map[string]any{"label": strings.Repeat("x", 3<<20)}, nil)
		})
	}
	calls.Wait()
	active := int64(1)
	for began := time.Now(); active > 0 && time.Since(began) < 5*time.Minute; time.Sleep(100 * time.Millisecond) {
		active = 0
		for _, status := range []string{api.RunQueued, api.RunWorking} {
			n, err := w.metric("destkit_sync_runs", `"`+status+`"`)
			require.NoError(t, err)
			active += n
		}
	}
	completed := 0
	for _, one := range wide {
		runs, err := w.api.LastRuns(t.Context(), one, 1)
		require.NoError(t, err)
		require.NotEmpty(t, runs)
		if runs[0].Status == api.RunCompleted {
			completed++
			continue
		}
		require.NotNil(t, runs[0].ErrorMessage, "%s", api.Raw(runs[0]))
		require.Contains(t, *runs[0].ErrorMessage, "the memory for queries of all syncs together is used up: run it again")
	}
	peak := highWater(w.cmd.Process.Pid)
	t.Logf("%d syncs, %d MiB at the highest, %d of %d with rows of 16 MB completed", len(syncs), peak>>20, completed, each)
	require.Positive(t, peak)
	require.Less(t, peak, int64(mostServiceMemory))
	require.Zero(t, active, "runs that do not end")
	require.Positive(t, completed, "no long row was sent")
	answer, err := http.Get(w.api.Root + "/healthz")
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}
