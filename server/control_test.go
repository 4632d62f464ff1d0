package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/reach"
)

// knock calls the control API as some client would.
func knock(s *Server, change func(*http.Request)) int {
	r := httptest.NewRequest("GET", "http://127.0.0.1:8080/_control/clock", nil)
	r.RemoteAddr = "127.0.0.1:4711"
	change(r)
	return serve(s, r).Code
}

func TestControlIsForThisMachine(t *testing.T) {
	plain := newWorld(t).s
	locked := newWorld(t, func(c *Config) { c.ControlToken = "control-token" }).s
	for name, tc := range map[string]struct {
		change         func(*http.Request)
		plain, secured int
	}{
		"loopback":           {func(*http.Request) {}, 200, 401},
		"IPv6 loopback":      {func(r *http.Request) { r.RemoteAddr, r.Host = "[::1]:9", "[::1]:8080" }, 200, 401},
		"mapped loopback":    {func(r *http.Request) { r.RemoteAddr = "[::ffff:127.0.0.1]:9" }, 200, 401},
		"Unix socket":        {func(r *http.Request) { r.RemoteAddr = "@" }, 200, 401},
		"localhost":          {func(r *http.Request) { r.Host = "localhost:8080" }, 200, 401},
		"another machine":    {func(r *http.Request) { r.RemoteAddr = "192.0.2.7:9" }, 403, 401},
		"behind a proxy":     {func(r *http.Request) { r.Header.Set("X-Forwarded-For", "192.0.2.7") }, 403, 401},
		"rebound name":       {func(r *http.Request) { r.Host = "evil.example:8080" }, 403, 401},
		"name like loopback": {func(r *http.Request) { r.Host = "127.0.0.1.evil.example" }, 403, 401},
		"another origin":     {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403, 401},
		"null origin":        {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403, 401},
		"own origin":         {func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:8080") }, 200, 401},
		"cross-site fetch":   {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403, 401},
		"token from afar": {func(r *http.Request) {
			r.RemoteAddr, r.Host = "192.0.2.7:9", "service.example"
			r.Header.Set("Authorization", "Bearer control-token")
		}, 403, 200},
		"token on loopback": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer control-token") }, 200, 200},
		"call of a service": {func(r *http.Request) { r.Header.Set(reach.Outbound, "service") }, 403, 403},
		"its empty mark":    {func(r *http.Request) { r.Header[reach.Outbound] = []string{""} }, 403, 403},
		"it has the token": {func(r *http.Request) {
			r.Header.Set(reach.Outbound, "service")
			r.Header.Set("Authorization", "Bearer control-token")
		}, 403, 403},
		"wrong token from afar": {func(r *http.Request) {
			r.RemoteAddr = "192.0.2.7:9"
			r.Header.Set("Authorization", "Bearer control-tokem")
		}, 403, 401},
		"wrong token": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 200, 401},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.plain, knock(plain, tc.change), "without a control token")
			require.Equal(t, tc.secured, knock(locked, tc.change), "with a control token")
		})
	}
}

func TestMetricsAreGuarded(t *testing.T) {
	s := newWorld(t).s
	for remote, code := range map[string]int{"127.0.0.1:1": 200, "192.0.2.7:1": 403} {
		r := httptest.NewRequest("GET", "http://127.0.0.1/metrics", nil)
		r.RemoteAddr = remote
		require.Equal(t, code, serve(s, r).Code, remote)
	}
}

// TestControlIndex: every route answers below the path that the index gives,
// and has a line.
func TestControlIndex(t *testing.T) {
	w := newWorld(t)
	var index struct {
		Routes []struct{ Method, Path, Does string }
	}
	require.NoError(t, json.Unmarshal(w.control("GET", "", nil).want(200).text, &index))
	require.Greater(t, len(index.Routes), 35)
	seen := map[string]bool{}
	for _, route := range index.Routes {
		require.NotEmpty(t, route.Does, route.Path)
		key := route.Method + " " + route.Path
		require.False(t, seen[key], key)
		seen[key] = true
		path := strings.TrimPrefix(strings.NewReplacer("{id}", "987654", "{name}", "none").Replace(route.Path), "/_control")
		if route.Path == "/_control/snapshot" || route.Path == "/_control/reset" {
			continue // they have their documented effect
		}
		a := w.control(route.Method, path, nil)
		require.NotEqual(t, 405, a.code, key)
		if a.code == 404 {
			require.Contains(t, string(a.text), "there is no", key)
		}
		require.Less(t, a.code, 500, "%s: %s", key, a.text)
	}
}

// TestControlErrors: whatever is wrong has the one shape, and names the fix.
func TestControlErrors(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		method, path string
		body         any
		code         int
		message      string
	}{
		"no route":         {"GET", "/nothing", nil, 404, "GET /_control lists the routes"},
		"wrong method":     {"PUT", "/clock", nil, 405, "allowed are GET, POST"},
		"no JSON":          {"POST", "/clock", `{"advance": 24h}`, 400, "the body is no JSON: line 1, column 15: a comma or a closing brace must follow the member"},
		"unknown key":      {"POST", "/clock", `{"advanse":"24h"}`, 400, `did you mean "advance"`},
		"two wishes":       {"POST", "/clock", `{"advance":"1h","freeze":true}`, 400, "exactly one"},
		"no wish":          {"POST", "/clock", nil, 400, "exactly one"},
		"wrong type":       {"POST", "/clock", `{"freeze":"yes"}`, 400, "freeze: must be true or false, not a string"},
		"no duration":      {"POST", "/clock", `{"advance":"a day"}`, 400, "advance: must be a duration"},
		"backwards":        {"POST", "/clock", `{"advance":"-1h"}`, 400, "advance: must be 0 or more, not -1h: time runs forwards only; set goes back"},
		"no time":          {"POST", "/clock", `{"set":"tomorrow"}`, 400, `set: must be a time such as 2026-01-31T12:00:00Z, not "tomorrow"`},
		"time as a number": {"POST", "/clock", `{"set":5}`, 400, "set: must be a string, not a number"},
		"unknown org":      {"DELETE", "/organizations/99", nil, 404, "there is no such resource"},
		"id is no number":  {"DELETE", "/organizations/x", nil, 404, "there is no such resource"},
		"empty name":       {"POST", "/organizations", `{"name":" "}`, 400, "name: must not be empty"},
		"no address":       {"POST", "/organizations", `{"email":"nobody"}`, 400, "email: must be an e-mail address"},
		"workspace twice":  {"POST", "/organizations", `{"workspaces":["a","a"]}`, 400, "workspaces[1]: is named twice"},
		"unknown filter":   {"GET", "/journal/requests?operatoin=x", nil, 400, `did you mean "operation"`},
		"bad status":       {"GET", "/journal/requests?status=abc", nil, 400, "status"},
		"bad limit":        {"GET", "/journal/requests?limit=0", nil, 400, "limit: must be an integer from 1"},
		"bad state":        {"GET", "/fidelity?state=sure", nil, 400, "specified, published"},
		"bad section":      {"GET", "/fidelity?section=47", nil, 400, "no section"},
		"bad PEM":          {"POST", "/trust", "nothing", 400, "certificate"},
		"bad snapshot":     {"POST", "/restore", "nothing", 400, "no snapshot"},
		"unknown claim":    {"POST", "/invitations/99/claim", nil, 404, "there is no invitation 99"},
		"unknown claim 2":  {"POST", "/workspace_invitations/99/claim", nil, 404, "there is no invitation to a workspace 99"},
		"claim by nobody":  {"POST", "/invitations/99/claim", `{"email":"x"}`, 400, "email"},
		"unknown user":     {"POST", "/users/99/token", nil, 404, "there is no user 99"},
		"bad role":         {"PATCH", "/users/1", `{"role":"king"}`, 400, "admin or member"},
		"no statements":    {"POST", "/sources/1/execute", `{}`, 400, "sql: is required"},
		"unknown source":   {"POST", "/sources/99/execute", `{"sql":"SELECT 1"}`, 404, "there is no source 99"},
		"no object":        {"GET", "/destinations/1/records", nil, 400, "object: is required"},
		"unknown target":   {"GET", "/destinations/99/records?object=x", nil, 404, "there is no destination 99"},
		"no messages":      {"POST", "/topics/1/messages", "", 400, "1 to 100000 messages"},
		"no objects":       {"POST", "/topics/1/messages", `[1,{}]`, 400, "[0]: must be an object"},
		"broken lines":     {"POST", "/topics/1/messages", "{}\n{", 400, "message 2"},
		"unknown topic":    {"POST", "/topics/99/messages", "{}", 404, "there is no topic 99"},
		"unknown fault":    {"DELETE", "/faults/fault_9", nil, 404, "there is no fault"},
		"unknown mailbox":  {"GET", "/mailbox?organization=99", nil, 404, "there is no such resource"},
		"empty seed":       {"POST", "/seed", "", 400, "a seed needs organizations"},
		"unreadable seed":  {"POST", "/seed", "organisations: []", 400, `seed:1:1: unknown key "organisations", did you mean "organizations"?`},
		"several mistakes": {"POST", "/organizations", `{"nam":"x","emial":"y"}`, 400, "(and 1 more)"},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.control(tc.method, tc.path, tc.body).want(tc.code)
			var shape struct {
				Status  string
				Message string
				Errors  []struct{ Field, Message string }
			}
			require.NoError(t, json.Unmarshal(a.text, &shape))
			require.Contains(t, []string{"error", "not_found"}, shape.Status)
			require.Contains(t, shape.Message, tc.message)
			require.NotNil(t, shape.Errors)
		})
	}
}

func TestNewOrganization(t *testing.T) {
	w := newWorld(t)
	a := w.control("POST", "/organizations", map[string]any{
		"name": "Acme", "email": "ada@example.com", "workspaces": []string{"Main", "Test"},
	}).want(201)
	a.is("email", "ada@example.com", "workspaces.0.id", a.at("workspace_id"), "workspaces.0.api_key", a.at("workspace_api_key"))
	pat := a.at("personal_access_token").(string)
	listed := w.do("GET", "/workspaces?order=asc", pat, nil).want(200)
	listed.is("data.0.name", "Main", "data.1.name", "Test")
	for i := range 2 {
		key := a.at(fmt.Sprintf("workspaces.%d.api_key", i)).(string)
		w.do("GET", "/destinations", key, nil).want(200)
	}
	// Nothing of one organization is seen from another.
	w.do("GET", fmt.Sprintf("/workspaces/%d", a.id("workspace_id")), w.pat, nil).want(404)

	id := a.id("organization_id")
	w.control("DELETE", fmt.Sprintf("/organizations/%d", id), nil).want(200)
	w.do("GET", "/workspaces", pat, nil).want(401)
	w.do("GET", "/workspaces", w.pat, nil).want(200)
	w.control("DELETE", fmt.Sprintf("/organizations/%d", id), nil).want(404)
}

func TestResetOfOneOrganization(t *testing.T) {
	w := newWorld(t)
	other := w.control("POST", "/organizations", nil).want(201)
	key := other.at("workspace_api_key").(string)
	w.newSync()
	emulated := map[string]any{"service_connection": emulatedConnection}
	mine := w.do("POST", "/destinations", w.key, emulated).want(201).id("data.id")
	theirs := w.do("POST", "/destinations", key, emulated).want(201).id("data.id")
	first := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.organization_id")
	w.control("POST", fmt.Sprintf("/organizations/%d/reset", first), nil).want(200)

	require.EqualValues(t, 0, w.do("GET", "/syncs", w.key, nil).want(200).id("pagination.total_records"))
	require.EqualValues(t, 0, w.do("GET", "/sources", w.key, nil).want(200).id("pagination.total_records"))
	w.control("GET", fmt.Sprintf("/destinations/%d/records?object=Contact", mine), nil).want(404)
	w.control("GET", fmt.Sprintf("/destinations/%d/records?object=Contact", theirs), nil).want(200)
	require.EqualValues(t, 1, w.do("GET", "/destinations", key, nil).want(200).id("pagination.total_records"))
}

// emulatedConnection is a destination that a simulator keeps.
var emulatedConnection = map[string]any{
	"name": "CRM", "type": "salesforce", "credentials": map[string]any{
		"instance_url": "https://acme.my.salesforce.com", "client_id": "client", "client_secret": "client-secret-value",
	},
}

func TestResetOfAll(t *testing.T) {
	w := newWorld(t)
	other := w.control("POST", "/organizations", nil).want(201)
	w.newSync()
	w.do("POST", "/invitations", w.pat, map[string]any{"email": "bob@example.com", "role": "member"}).want(200)
	w.control("POST", "/faults", map[string]any{"kind": "status", "operation": "listUsers"}).want(201)
	w.control("POST", "/reset", nil).want(200)

	require.EqualValues(t, 0, w.do("GET", "/syncs", w.key, nil).want(200).id("pagination.total_records"))
	require.EqualValues(t, 1, w.do("GET", "/users", w.pat, nil).want(200).id("pagination.total_records"))
	w.do("GET", "/users", other.at("personal_access_token").(string), nil).want(401)
	require.Empty(t, w.control("GET", "/faults", nil).want(200).at("faults"))
	require.Empty(t, w.control("GET", "/mailbox", nil).want(200).at("mails"))
	require.Len(t, w.control("GET", "/journal/requests", nil).want(200).at("entries"), 3)
	require.Len(t, w.control("GET", "/organizations", nil).want(200).at("organizations"), 1)
}

func TestControlClock(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, true, w.control("POST", "/clock", `{"freeze":true}`).want(200).at("frozen"))
	a := w.control("POST", "/clock", `{"set":"2030-01-01T00:00:00Z"}`).want(200)
	require.Equal(t, "2030-01-01T00:00:00Z", a.at("now"))
	a = w.control("POST", "/clock", `{"advance":"24h"}`).want(200)
	a.is("now", "2030-01-02T00:00:00Z", "ran.from", "2030-01-01T00:00:00Z", "ran.count", 0)
	done := w.s.clock.Busy("something at work")
	a = w.control("GET", "/clock", nil).want(200)
	done()
	a.is("now", "2030-01-02T00:00:00Z", "running", []any{"something at work"})
	// What is made now has this time.
	made := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Later"}).want(201)
	require.Equal(t, "2030-01-02T00:00:00.000Z", made.at("data.created_at"))
	require.Equal(t, "2030-01-02T00:00:00Z", w.control("POST", "/settle", nil).want(200).at("now"))
	require.Equal(t, false, w.control("POST", "/clock", `{"freeze":false}`).want(200).at("frozen"))
}

func TestControlTrust(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	text := pemOf(server)
	require.EqualValues(t, 1, w.control("POST", "/trust", text).want(200).id("trusted"))
	w.control("POST", "/trust", append(text, "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"...)).want(400)
}

func TestControlFidelity(t *testing.T) {
	w := newWorld(t)
	all := w.control("GET", "/fidelity", nil).want(200)
	require.Greater(t, all.id("total"), int64(200))
	some := w.control("GET", "/fidelity?section=2&state=published", nil).want(200)
	require.Less(t, some.id("total"), all.id("total"))
	require.Equal(t, "published", some.at("rows.0.state"))
	require.EqualValues(t, 15, w.control("GET", "/fidelity?section=4.1", nil).want(200).id("total"))
}

// TestProfileIsGuarded: the program's handler is behind the guard of the
// other routes, and absent without one.
func TestProfileIsGuarded(t *testing.T) {
	s := newWorld(t, func(c *Config) {
		c.ControlToken = "control-token"
		c.Profile = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	}).s
	bare := newWorld(t).s
	for path, want := range map[string]int{"/_control/pprof": 418, "/_control/pprof/heap": 418, "/pprof/heap": 404, "/debug/pprof/heap": 404} {
		at := func(r *http.Request) { r.URL.Path = path }
		require.Equal(t, want, knock(s, func(r *http.Request) { at(r); r.Header.Set("Authorization", "Bearer control-token") }), path)
		require.Equal(t, 404, knock(bare, at), path)
		if want != 404 {
			require.Equal(t, 401, knock(s, at), path)
			require.Equal(t, 401, knock(s, func(r *http.Request) { at(r); r.RemoteAddr = "192.0.2.7:9" }), path)
			require.Equal(t, 403, knock(s, func(r *http.Request) { at(r); r.Header.Set(reach.Outbound, "service") }), path)
			require.Equal(t, 401, knock(s, func(r *http.Request) { at(r); r.Header.Set("Authorization", "Bearer x") }), path)
		}
	}
}
