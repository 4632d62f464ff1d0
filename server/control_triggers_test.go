package server

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// waitsFor creates a sync with triggers of other products.
func (w *syncWorld) waitsFor(triggers map[string]any, changes map[string]any) int64 {
	w.t.Helper()
	body := map[string]any{"mode": map[string]any{"type": "triggered", "triggers": triggers}}
	for key, value := range changes {
		body[key] = value
	}
	return w.kept(body).id("data.id")
}

// fired says that a job has finished and gives the syncs that run, and those that
// are paused.
func (w *syncWorld) fired(product string, job map[string]any) (run, paused []int64) {
	w.t.Helper()
	var answer struct {
		Runs []struct {
			SyncRunID   int64 `json:"sync_run_id"`
			SyncID      int64 `json:"sync_id"`
			WorkspaceID int64 `json:"workspace_id"`
			Status      string
		}
		Paused []int64 `json:"paused_sync_ids"`
	}
	require.NoError(w.t, json.Unmarshal(w.control("POST", "/triggers/"+product, job).want(200).text, &answer))
	w.control("POST", "/settle", nil).want(200)
	for _, r := range answer.Runs {
		shown := w.do("GET", fmt.Sprintf("/sync_runs/%d", r.SyncRunID), w.key, nil).want(200)
		require.Equal(w.t, "completed", shown.at("data.status"), string(shown.text))
		require.Equal(w.t, r.SyncID, shown.id("data.sync_id"))
		run = append(run, r.SyncID)
	}
	return run, answer.Paused
}

// TestFinishedJobsStartSyncs: who waits for a job of another product runs when it
// has succeeded.
func TestFinishedJobsStartSyncs(t *testing.T) {
	proves(t, "F-2.6-33")
	w := newSyncWorld(t)
	dbt := func(project, job string) map[string]any {
		return map[string]any{"dbt_cloud": map[string]any{"project_id": project, "job_id": job}}
	}
	fivetran := func(job map[string]any) map[string]any { return map[string]any{"fivetran": job} }
	first := w.waitsFor(dbt("11", "12"), nil)
	w.waitsFor(dbt("11", "13"), nil)
	w.waitsFor(dbt("12", "12"), nil)
	asleep := w.waitsFor(dbt("11", "12"), map[string]any{"paused": true})
	flat := w.kept(map[string]any{"triggers": dbt("11", "12")}).id("data.id")
	byID := w.waitsFor(fivetran(map[string]any{"job_id": "a"}), nil)
	named := w.waitsFor(fivetran(map[string]any{"job_id": "a", "job_name": "Nightly"}), nil)
	other := w.waitsFor(fivetran(map[string]any{"job_id": "b", "job_name": "Nightly"}), nil)
	here := w.do("GET", "/workspace", w.key, nil).want(200).id("data.id")
	elsewhere := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Elsewhere"}).want(201).id("data.id")

	for _, tc := range []struct {
		name, product string
		job           map[string]any
		run, paused   []int64
	}{
		{"dbt", "dbt_cloud", map[string]any{"project_id": "11", "job_id": "12"}, []int64{first, flat}, []int64{asleep}},
		{"dbt, failed", "dbt_cloud", map[string]any{"project_id": "11", "job_id": "12", "status": "error"}, nil, []int64{}},
		{"dbt, unknown job", "dbt_cloud", map[string]any{"project_id": "11", "job_id": "14"}, nil, []int64{}},
		{"dbt, here", "dbt_cloud", map[string]any{"project_id": "11", "job_id": "12", "status": "success", "workspace_id": here}, []int64{first, flat}, []int64{asleep}},
		{"dbt, elsewhere", "dbt_cloud", map[string]any{"project_id": "11", "job_id": "12", "workspace_id": elsewhere}, nil, []int64{}},
		{"fivetran by id", "fivetran", map[string]any{"job_id": "a"}, []int64{byID, named}, []int64{}},
		{"fivetran by name", "fivetran", map[string]any{"job_name": "Nightly"}, []int64{named, other}, []int64{}},
		{"fivetran by both", "fivetran", map[string]any{"job_id": "a", "job_name": "Nightly"}, []int64{byID, named}, []int64{}},
		{"fivetran, another name", "fivetran", map[string]any{"job_id": "a", "job_name": "Hourly"}, []int64{byID}, []int64{}},
		{"fivetran, failed", "fivetran", map[string]any{"job_id": "a", "status": "error"}, nil, []int64{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run, paused := w.fired(tc.product, tc.job)
			require.Equal(t, tc.run, run)
			require.Equal(t, tc.paused, paused)
		})
	}

	reason := func(id int64) any {
		return w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).at("data.0.sync_trigger_reason")
	}
	require.Equal(t, map[string]any{"ui_tag": "dbt Cloud", "ui_detail": "dbt Cloud: job 12 of project 11 has finished"}, reason(first))
	require.Equal(t, map[string]any{"ui_tag": "Fivetran", "ui_detail": "Fivetran: job a (Hourly) has finished"}, reason(byID))
	require.Empty(t, w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", asleep), w.key, nil).want(200).at("data"))
}

// TestFinishedJobDuringARun: the second of two jobs is skipped while the first is
// still at work, as any other trigger is.
func TestFinishedJobDuringARun(t *testing.T) {
	w := newSyncWorld(t)
	id := w.waitsFor(map[string]any{"dbt_cloud": map[string]any{"project_id": "1", "job_id": "2"}}, nil)
	reached, release := w.hold()
	job := map[string]any{"project_id": "1", "job_id": "2"}
	require.Equal(t, "queued", w.control("POST", "/triggers/dbt_cloud", job).want(200).at("runs.0.status"))
	<-reached
	second := w.control("POST", "/triggers/dbt_cloud", job).want(200)
	require.Equal(t, "skipped", second.at("runs.0.status"))
	require.Equal(t, id, second.id("runs.0.sync_id"))
	release()
	w.control("POST", "/settle", nil).want(200)
}

// TestWrongJobs: a mistake in a test must not pass for a job that started nothing.
func TestWrongJobs(t *testing.T) {
	w := newWorld(t)
	for path, bodies := range map[string]map[string]any{
		"/triggers/dbt_cloud": {
			"job_id": map[string]any{"project_id": "1"}, "project_id": map[string]any{"job_id": "1"}, "projekt_id": map[string]any{"projekt_id": "1", "job_id": "1"},
			"status": map[string]any{"project_id": "1", "job_id": "1", "status": "done"}, "workspace_id": map[string]any{"project_id": "1", "job_id": "1", "workspace_id": 999},
		},
		"/triggers/fivetran": {"job_id": map[string]any{}, "status": map[string]any{"job_id": "1", "status": "failed"}, "workspace_id": map[string]any{"job_name": "a", "workspace_id": 999}},
	} {
		for field, body := range bodies {
			require.Contains(t, w.control("POST", path, body).want(400).problems(), field, path)
		}
	}
}
