package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTopicMessages(t *testing.T) {
	w := newWorld(t)
	source := w.newTopicSource()
	topic := w.do("POST", fmt.Sprintf("/sources/%d/topics", source), w.key, map[string]any{"name": "t", "sample_message": map[string]any{"n": 1}}).want(201).id("data.id")
	path := fmt.Sprintf("/topics/%d/messages", topic)
	a := w.control("POST", path, `[{"n":1},{"n":12345678901234567890}]`).want(201)
	a.is("first", 1, "last", 2)
	require.EqualValues(t, 4, w.control("POST", path, "{\"n\":3}\n\n{\"n\":4}\n").want(201).id("last"))
	list := w.control("GET", path+"?after=1&limit=2", nil).want(200)
	require.Len(t, list.at("messages"), 2)
	require.Contains(t, string(list.text), "12345678901234567890")
	require.EqualValues(t, 3, list.id("messages.1.number"))
}

func TestExecute(t *testing.T) {
	w := newWorld(t)
	source := w.newEmulated("warehouse-secret").id("data.id")
	run := func(sql string, code int) *answer {
		return w.control("POST", fmt.Sprintf("/sources/%d/execute", source), map[string]any{"sql": sql}).want(code)
	}
	run("CREATE TABLE EXTRA (A TEXT); INSERT INTO EXTRA VALUES ('x')", 200)
	require.Contains(t, run("INSERT INTO MISSING VALUES (1)", 400).at("message"), "sql:")
	dataset := map[string]any{"name": "Extra", "type": "sql", "source_id": source, "query": "SELECT A FROM EXTRA"}
	w.do("POST", "/datasets", w.key, dataset).want(201)

	file := w.newSource()
	a := w.control("POST", fmt.Sprintf("/sources/%d/execute", file), map[string]any{"sql": "DROP TABLE customers"}).want(400)
	require.Contains(t, a.at("message"), "emulated warehouses only")
}

func TestRecordsOfDestinations(t *testing.T) {
	w := newWorld(t)
	id := w.do("POST", "/destinations", w.key, map[string]any{"service_connection": emulatedConnection}).want(201).id("data.id")
	write(t, w, id, "Contact", `{"Email":"ada@example.com","LastName":"Lovelace"}`)
	a := w.control("GET", fmt.Sprintf("/destinations/%d/records?object=Contact", id), nil).want(200)
	require.EqualValues(t, 1, a.id("total"))
	require.Contains(t, string(a.text), "Lovelace")
	w.control("GET", fmt.Sprintf("/destinations/%d/records?object=Nothing", id), nil).want(400)
	custom := w.newDestination()
	require.Contains(t, w.control("GET", fmt.Sprintf("/destinations/%d/records?object=x", custom), nil).want(400).at("message"), "keeps no records here")
}

// write puts a record into an emulated destination, as a sync would.
func write(t testing.TB, w *world, id int64, object, record string) {
	kept := must(w.s.gate.Store(id, "salesforce"))(t)
	body := fmt.Sprintf(`{"jsonrpc":"2.0","method":"sync_batch","id":"1","params":{"sync_plan":{"object":{"object_api_name":%q,"label":"x"},"operation":"upsert","schema":{"Email":{"active_identifier":true,"field":{"field_api_name":"Email","label":"x","type":"string","identifier":true,"required":true,"createable":true,"updateable":true,"array":false}},"LastName":{"active_identifier":false,"field":{"field_api_name":"LastName","label":"x","type":"string","identifier":false,"required":true,"createable":true,"updateable":true,"array":false}}}},"records":[%s]}}`, object, record)
	recorder := serve(kept.Endpoint, httptest.NewRequest("POST", "/", strings.NewReader(body)))
	require.Equal(t, 200, recorder.Code)
	require.Contains(t, recorder.Body.String(), `"success":true`)
}

// TestClaimOfWorkspaceInvitation: the role that an update set is what counts.
func TestClaimOfWorkspaceInvitation(t *testing.T) {
	proves(t, "F-4.1-10")
	w := newWorld(t)
	workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
	base := fmt.Sprintf("/workspaces/%d/invitations", workspace)
	id := w.do("POST", base, w.pat, map[string]any{"emails": []string{"eve@example.com"}, "role": "viewer"}).want(200).id("data.id")
	w.do("PUT", fmt.Sprintf("%s/%d", base, id), w.pat, map[string]any{"role": "editor"}).want(200)
	claim := fmt.Sprintf("/workspace_invitations/%d/claim", id)
	claimed := w.control("POST", claim, map[string]any{"email": "eve.other@example.com"}).want(200)
	require.Equal(t, "eve.other@example.com", claimed.at("user.email"))
	members := w.do("GET", fmt.Sprintf("/workspaces/%d/users?order=asc", workspace), w.pat, nil).want(200)
	require.Equal(t, "editor", members.at("data.1.role"))
	w.control("POST", claim, nil).want(409)
}

// TestClaimByMember: who is a member keeps the role, and rises to admin only.
func TestClaimByMember(t *testing.T) {
	w := newWorld(t)
	invite := func(email, role string) int64 {
		return w.do("POST", "/invitations", w.pat, map[string]any{"email": email, "role": role}).want(200).id("data.id")
	}
	first := invite("one@example.com", "member")
	second := invite("two@example.com", "admin")
	third := invite("three@example.com", "member")
	role := func(id int64) any {
		return w.control("POST", fmt.Sprintf("/invitations/%d/claim", id), map[string]any{"email": "one@example.com"}).want(200).at("user.role")
	}
	require.Equal(t, "member", role(first))
	require.Equal(t, "admin", role(second))
	require.Equal(t, "admin", role(third))
	require.EqualValues(t, 2, w.do("GET", "/users", w.pat, nil).want(200).id("pagination.total_records"))
}

func TestControlChangesUser(t *testing.T) {
	w := newWorld(t)
	id := w.do("GET", "/users", w.pat, nil).want(200).id("data.0.id")
	a := w.control("PATCH", fmt.Sprintf("/users/%d", id), map[string]any{"notifications_enabled": false, "role": "member"}).want(200)
	require.Equal(t, false, a.at("notifications_enabled"))
	require.Equal(t, "member", w.do("GET", "/users", w.pat, nil).want(200).at("data.0.role"))
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Not mine"}).want(403)
}

func TestMailbox(t *testing.T) {
	w := newWorld(t)
	for _, email := range []string{"bob@example.com", "eve@example.com"} {
		w.do("POST", "/invitations", w.pat, map[string]any{"email": email, "role": "member"}).want(200)
	}
	all := w.control("GET", "/mailbox", nil).want(200)
	require.EqualValues(t, 2, all.id("total"))
	require.Equal(t, "eve@example.com", all.at("mails.0.to.0"), "newest first")
	one := w.control("GET", "/mailbox?to=BOB@example.com&kind=invitation", nil).want(200)
	require.EqualValues(t, 1, one.id("total"))
	require.Contains(t, one.at("mails.0.text"), "member")
	require.EqualValues(t, 0, w.control("GET", "/mailbox?kind=alert", nil).want(200).id("total"))
	w.control("DELETE", "/mailbox", nil).want(200)
	require.EqualValues(t, 0, w.control("GET", "/mailbox", nil).want(200).id("total"))
}

// waitsFor creates a sync with triggers of other products.
func (w *syncWorld) waitsFor(triggers map[string]any, changes map[string]any) int64 {
	w.t.Helper()
	body := map[string]any{"mode": map[string]any{"type": "triggered", "triggers": triggers}}
	maps.Copy(body, changes)
	return w.kept(body).id("data.id")
}

// fired reports a finished job and returns the syncs that run, and those that are
// paused.
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
		shown := w.do("GET", fmt.Sprintf("/sync_runs/%d", r.SyncRunID), w.key, nil).want(200).ended("completed")
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
