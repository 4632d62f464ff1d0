package server

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// upload sends a form with a file.
func (v *visitor) upload(path string, file []byte) *seen {
	v.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part := must(form.CreateFormFile("file", "file"))(v.t)
	must(part.Write(file))(v.t)
	require.NoError(v.t, form.Close())
	r := httptest.NewRequest("POST", "http://"+v.host+consoleAt+path, &body)
	r.RemoteAddr, r.Host = v.from, v.host
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "text/html")
	w := serve(v.s, r)
	if w.Code == http.StatusSeeOther {
		return v.ask("GET", w.Header().Get("Location"), nil)
	}
	return &seen{w, v.t, path}
}

// consoleWorld has a sync that ran, with a record that the destination refuses and a
// hostile one.
func consoleWorld(t *testing.T) (*world, *visitor, int64) {
	w := newWorld(t)
	w.changeSource(`INSERT INTO customers (id, email, name) VALUES (2, 'bob@example.com', NULL), (3, '"><script>alert(1)</script>', 'Eve')`)
	id := w.newSync()
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	return w, newVisitor(t, w.s), id
}

// TestConsoleWalk: from an empty workspace to a record that is explained, by forms alone.
func TestConsoleWalk(t *testing.T) {
	w, v, _ := consoleWorld(t)
	v.open("/workspaces/1/sources/new").want(200).has("SQLite", "Choose")
	v.open("/workspaces/1/sources/new?type=sqlite").want(200).has(`name="c.path"`)
	v.send("/workspaces/1/sources/new/sqlite", "name", "Second", "c.path", "/nothing/there.db").want(200).has("and its test failed")
	v.send("/workspaces/1/sources/new/sqlite", "name", "", "c.path", w.sourceFile()).want(400)
	v.send("/workspaces/1/sources/new/sqlite", "name", "Shop <b>", "c.path", w.sourceFile()).want(200).has("Source 3 is made.", "Shop &lt;b&gt;")
	v.send("/workspaces/1/destinations/new/custom_api", "name", "Mine", "c.api_version", "1", "c.webhook_url", w.destination(),
		"c.auth_token", "destination-token", "c.custom_headers", "{").want(400).has("custom_headers")
	v.send("/workspaces/1/destinations/new/custom_api", "name", "Mine", "c.api_version", "1", "c.webhook_url", w.destination(),
		"c.auth_token", "destination-token").want(200).has("Destination 2 is made.")
	v.open("/workspaces/1/syncs/new").want(200).has("Next")
	v.open("/workspaces/1/syncs/new?source=3&destination=2").want(200).has("table customers", "What it writes")
	form := v.open("/workspaces/1/syncs/new?source=3&destination=2&object=table:2&target=person")
	if form.Code != 200 || !strings.Contains(form.Body.String(), "map.email") {
		t.Fatal(form.Body)
	}
	object := regexp.MustCompile(`value="(table:\d+)"`).FindStringSubmatch(form.Body.String())[1]
	pairs := []string{"source", "3", "destination", "2", "object", object, "target", "person", "label", "People", "operation", "upsert",
		"schedule", "daily", "map.email", "email", "map.last_name", "name"}
	v.send("/workspaces/1/syncs/new", pairs...).want(400)
	v.send("/workspaces/1/syncs/new", append(pairs, "identifier", "email")...).want(200).has("Sync 2 is made.", "People", "table customers", "identifies", "daily")
	v.open("/workspaces/1/syncs/2/plan").want(200).has("Dry run", "created", "bob@example.com", "doubtful")
	v.open("/workspaces/1/syncs/2/plan?full=true").want(200)
	v.send("/workspaces/1/syncs/2/pause", "paused", "true").want(200).has("The sync is paused", "Resume")
	v.send("/workspaces/1/syncs/2/pause", "paused", "false").want(200).has("The sync goes on", "Pause")
	v.send("/workspaces/1/syncs/2/trigger").want(200).has("Run 1 is started.")
	w.advance(time.Minute)
	run := v.open("/workspaces/1/runs/1").want(200).has("completed", "Errors", "last_name", "bob@example.com", "&lt;script&gt;", "sync_batch", "records")
	require.NotContains(t, run.Body.String(), "<script>alert")
	v.open("/workspaces/1/runs/1?status=rejected").want(200).has("bob@example.com")
	v.open("/workspaces/1/runs/1?status=nonsense").want(400)
	record := v.open("/workspaces/1/runs/1/record?identifier=" + url.QueryEscape(`"bob@example.com"`)).want(200)
	record.has("Row of the source", "Mapped record", "Decision: sent", "Attempt 1: upsert", "rejected", "Next retry: next run", "last_name", "Ask the destination")
	call := regexp.MustCompile(`/calls/(call_\d+)`).FindStringSubmatch(record.Body.String())
	v.open("/calls/"+call[1]).want(200).has("Nothing in this breaks the OpenRPC document", "sync_batch", "curl")
	v.open("/workspaces/1/runs/1/record?audit=1&identifier=bob@example.com&readback=" + url.QueryEscape(w.dest.URL+"/_control/readback")).want(200).has("refused")
	v.open("/workspaces/1/runs/1/record?audit=1&identifier=ada@example.com&readback=" + url.QueryEscape(w.dest.URL+"/_control/readback")).want(200).
		has("The destination holds what it acknowledged")
	v.open("/workspaces/1/runs/1/record?audit=1&identifier=ada@example.com").want(200).has("readback")
	v.open("/workspaces/1/runs/1/record?identifier=nobody").want(404)
	require.Equal(t, consoleAt+"/workspaces/1/runs/1", v.open("/runs/1").want(303).Header().Get("Location"))
	v.open("/runs/99").want(404)
	v.open("/calls?sync_run=1").want(200).has("sync_batch", "run 1")
	v.send("/workspaces/1/syncs/2/trigger", "full", "true").want(200).has("Run 2 is started")
	w.advance(time.Minute)
	v.open("/workspaces/1/syncs/2").want(200).has("full", "Runs", "Manual")
	refused := v.send("/workspaces/1/runs/1/cancel").has("Refused")
	require.Less(t, refused.Code, 500)
	v.send("/workspaces/1/syncs/2/delete").want(200).has("Sync 2 is deleted")
	v.open("/workspaces/1/syncs/2").want(404)
	v.open("/workspaces/99").want(404)
}

func TestConsoleFaults(t *testing.T) {
	_, v := newVisited(t)
	v.open("/faults").want(200).has("No faults are armed")
	v.send("/faults", "kind", "status", "status", "503", "operation", "listSyncs", "times", "1", "message", "<b>down").want(200).has("fault_1 is armed", "never", "&lt;b&gt;down")
	v.send("/faults", "kind", "status", "status", "200").want(400).has("Refused")
	v.send("/faults", "kind", "status", "status", "many").want(400).has("status: must be a whole number", `value="many"`)
	v.open("/send?workspace=1").want(200).has("/api/v1/syncs")
	v.send("/send", "workspace", "1", "method", "GET", "target", "/api/v1/syncs").want(200).has("was answered with 503", "Struck by", "fault_1")
	v.open("/faults").want(200).has(`href="/_control/console/requests?fault=fault_1">1</a>`)
	v.send("/send", "workspace", "1", "method", "GET", "target", "/api/v1/syncs?page=2").want(200).has("was answered with 200", "page=2")
	v.send("/faults", "kind", "drop", "operation", "fetchOwnWorkspace").want(200)
	v.send("/send", "workspace", "1", "method", "GET", "target", "/api/v1/workspace").want(200).has("the connection was dropped")
	v.send("/faults/disarm", "id", "fault_2").want(200).has("fault_2 is taken away")
	v.send("/faults/disarm").want(200).has("All faults are taken away", "No faults are armed")
	v.send("/faults/disarm", "id", "fault_9").want(404)
	for _, target := range []string{"/_control/reset", "http://192.0.2.1/api/v1/syncs", "/api/v1/../../_control/reset"} {
		got := v.send("/send", "workspace", "1", "method", "POST", "target", target)
		require.NotContains(t, got.Body.String(), "was answered with 200", target)
	}
	v.send("/send", "workspace", "1", "method", "TRACE", "target", "/api/v1/syncs").want(400)
	v.send("/send", "method", "GET", "target", "/api/v1/syncs").want(400).has("choose the workspace")
}

// TestConsoleReplay: a request again, with its body changed, and the rules that it breaks.
func TestConsoleReplay(t *testing.T) {
	w, v := newVisited(t)
	w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "Shop", "type": "sqlite", "credentials": map[string]any{"path": 7}}}).want(400)
	page := v.open("/requests/req_000000000001").want(200).has("Replay with changes")
	link := regexp.MustCompile(`href="/_control/console(/send\?[^"]+)"`).FindStringSubmatch(page.Body.String())[1]
	v.open(strings.ReplaceAll(link, "&amp;", "&")).want(200).has("Shop", `value="/api/v1/sources"`)
	v.send("/send", "workspace", "1", "method", "POST", "target", "/api/v1/sources", "body", `{"connection":{"nam":1}}`).want(200).
		has("was answered with 400", "This breaks the OpenAPI document", "connection.")
}

func TestConsoleMailAndWebhooks(t *testing.T) {
	w, v, id := consoleWorld(t)
	v.open("/mailbox").want(200).has("No e-mails")
	v.open("/webhooks").want(200).has("No deliveries")
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "bob@example.com", "role": "member"}).want(200)
	w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://127.0.0.1:1/secret-path", "events": []string{"sync.completed"}}).want(201)
	w.trigger(id)
	w.advance(time.Minute)
	v.open("/mailbox").want(200).has("bob@example.com", "invitation")
	v.open("/mailbox?to=nobody@example.com").want(200).has("No e-mails")
	page := v.open("/webhooks").want(200).has("sync.completed", "https://127.0.0.1:1")
	require.NotContains(t, page.Body.String(), "secret-path")
	v.open("/webhooks?event=nothing").want(200).has("No deliveries")
	v.send("/mailbox/empty").want(200).has("The mailbox is empty")
}

// TestConsoleWorld: export as a seed, and take and restore a snapshot.
func TestConsoleWorld(t *testing.T) {
	_, v := newVisited(t)
	v.send("/seed", "seed", "organizations: [{name: A, workspaces: [{name: W}]}]").want(200).has("Shown once", "API key of the workspace W")
	v.send("/seed", "seed", "organisations: []").want(400).has("unknown key", "organisations: []")
	v.send("/seed").want(400)
	made := v.upload("/seed", []byte(exampleSeed(t))).want(200).has("Shown once", "bob@acme.example")
	tokens := regexp.MustCompile(`class="secret">([^<]+)`).FindAllStringSubmatch(made.Body.String(), -1)
	require.GreaterOrEqual(t, len(tokens), 4)
	exported := v.open("/seed.yaml").want(200)
	require.Equal(t, "application/yaml; charset=utf-8", exported.Header().Get("Content-Type"))
	for _, token := range tokens {
		require.NotContains(t, exported.Body.String(), token[1])
	}
	exported.has("first: true", "name: Acme", "label: Contacts", "replace-me", "sync_sequence")
	// The export is a seed: another service takes it.
	other := newWorld(t)
	text := strings.Replace(exported.Body.String(), "type: snowflake\n", "type: snowflake\n            execute: CREATE TABLE LEADS (EMAIL TEXT, LAST_NAME TEXT, COMPANY TEXT);\n", 1)
	other.control("POST", "/seed", text).want(201)
	again := newVisitor(t, other.s).open("/seed.yaml").want(200)
	require.Equal(t, exported.Body.String(), again.Body.String(), "exported twice, it is the same")

	snapshot := v.open("/snapshot.tar").want(200).Body.Bytes()
	require.NotEmpty(t, snapshot)
	v.send("/organizations", "name", "Later").want(200)
	v.open("/").want(200).has("Later")
	v.upload("/restore", []byte("nonsense")).want(400)
	page := v.upload("/restore", snapshot).want(200)
	require.NotContains(t, page.Body.String(), "Later")
	v.send("/restore").want(400)
}

func TestConsoleClockJournal(t *testing.T) {
	w, v, id := consoleWorld(t)
	v.open("/clock").want(200)
	w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, withSchedule(w, id)).want(200)
	v.send("/clock", "do", "advance", "by", "1h", "next", "/clock").want(200).has("Advanced", "sync", "things ran")
	v.send("/clock", "do", "set", "to", "2030-01-01T00:00:00Z", "next", "/clock").want(200).has("2030-01-01 00:00:00", "Set")
	require.Equal(t, "set", w.control("GET", "/clock/journal", nil).want(200).at("changes.0.change"))
	w.control("GET", "/clock/journal?x=1", nil).want(400)
}

// withSchedule is a sync that starts each quarter of an hour.
func withSchedule(w *world, id int64) map[string]any {
	var body map[string]any
	read := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200)
	body, _ = read.at("data").(map[string]any)
	for key := range body {
		if strings.HasPrefix(key, "schedule_") || key == "triggers" || key == "cron_expression" {
			delete(body, key)
		}
	}
	body["mode"] = map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "quarter_hourly"}}}
	return body
}

// TestConsoleTellsNoSecret: every page of a world with every kind of secret.
func TestConsoleTellsNoSecret(t *testing.T) {
	w, v, id := consoleWorld(t)
	made := v.upload("/seed", []byte(exampleSeed(t))).want(200)
	secrets := []string{w.pat, w.key, "destination-token", "header-secret", "unguessable-segment", "hooks/42", "client_secret: anything"}
	for _, token := range regexp.MustCompile(`class="secret">([^<]+)`).FindAllStringSubmatch(made.Body.String(), -1) {
		secrets = append(secrets, token[1])
	}
	hook := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://127.0.0.1:1/secret-path", "events": []string{"sync.completed"}}).want(201)
	if secret, ok := hook.at("data.secret").(string); ok {
		secrets = append(secrets, secret)
	}
	secrets = append(secrets, "secret-path")
	w.trigger(id)
	w.advance(time.Minute)
	pages := v.crawl(consoleAt+"/", consoleAt+"/requests", consoleAt+"/calls", consoleAt+"/faults", consoleAt+"/mailbox", consoleAt+"/webhooks", consoleAt+"/clock", consoleAt+"/world", consoleAt+"/send")
	require.Greater(t, len(pages), 40)
	for path, page := range pages {
		lacks(t, path+"\n"+page.Body.String(), secrets...)
	}
}

// TestConsoleOfManyRequests: a page has its rows and no more, however many requests there
// are; the oldest are forgotten beyond the limit.
func TestConsoleOfManyRequests(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Development = false })
	const made = 12_000
	for range made {
		serve(w.s, request("GET", api.BasePath+"/syncs", w.key, nil))
	}
	v := newVisitor(t, w.s)
	row := regexp.MustCompile(`<tr id="x-req_`)
	for _, path := range []string{"/requests", "/requests?before=9000", "/requests?status=200"} {
		page := v.open(path).want(200)
		require.Len(t, row.FindAllString(page.Body.String(), -1), 50, path)
		require.Less(t, page.Body.Len(), 64<<10, path)
	}
	v.open("/requests").has(fmt.Sprintf("%d,000 exchanges so far", made/1000))
	require.NotContains(t, v.open("/requests").Body.String(), "are forgotten")
	require.Len(t, row.FindAllString(v.open("/requests?before=11").want(200).Body.String(), -1), 10)
}
