package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

func TestAuthentication(t *testing.T) {
	proves(t, "F-5.1-01", "F-5.1-02", "F-5.1-03", "F-5.1-05", "F-5.1-06")
	w := newWorld(t)
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	header := func(values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = values }
	}
	for _, one := range []struct {
		name string
		path string
		with func(*http.Request)
		want int
	}{
		{"nothing", "/syncs", func(*http.Request) {}, 401},
		{"empty", "/syncs", header(""), 401},
		{"unknown token", "/syncs", header("Bearer wrong"), 401},
		{"no scheme", "/syncs", header(w.key), 401},
		{"other scheme", "/syncs", header("Token " + w.key), 401},
		{"scheme without token", "/syncs", header("Bearer "), 401},
		{"two headers", "/syncs", header("Bearer "+w.key, "Bearer "+w.key), 401},
		{"a header of another name", "/syncs", func(r *http.Request) { r.Header.Set("X-Api-Key", w.key) }, 401},
		{"workspace key", "/syncs", header("Bearer " + w.key), 200},
		{"scheme in other case", "/syncs", header("bearer " + w.key), 200},
		{"basic", "/syncs", basic("bearer", w.key), 200},
		{"basic with another user", "/syncs", basic("admin", w.key), 401},
		{"basic without password", "/syncs", basic("bearer", ""), 401},
		{"personal token where a key belongs", "/syncs", header("Bearer " + w.pat), 403},
		{"personal token", "/users", header("Bearer " + w.pat), 200},
		{"basic with personal token", "/users", basic("bearer", w.pat), 200},
		{"key where a personal token belongs", "/users", header("Bearer " + w.key), 403},
		{"the root needs none", "/", func(*http.Request) {}, 200},
	} {
		t.Run(one.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", api.BasePath+one.path, nil)
			one.with(r)
			a := w.send(r).want(one.want)
			if one.want == 401 {
				require.Contains(t, a.header.Get("WWW-Authenticate"), "Bearer")
			}
			require.NotContains(t, string(a.text), w.key)
			require.NotContains(t, string(a.text), w.pat)
		})
	}
}

// TestOrganizationsAreApart: whatever belongs to another organization or
// workspace is not there at all.
func TestOrganizationsAreApart(t *testing.T) {
	proves(t, "F-5.1-08")
	w := newWorld(t)
	sync := w.newSync()
	shown := w.do("GET", fmt.Sprintf("/syncs/%d", sync), w.key, nil).want(200)
	source, destination := shown.id("data.source_attributes.connection_id"), shown.id("data.destination_attributes.connection_id")
	run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", sync), w.key, nil).want(200).id("data.sync_run_id")
	invitation := w.do("POST", "/invitations", w.pat, map[string]any{"email": "a@example.com", "role": "member"}).want(200).id("data.id")
	workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")

	other := w.control("POST", "/organizations", map[string]any{"name": "Other"}).want(201)
	key, pat := other.at("workspace_api_key").(string), other.at("personal_access_token").(string)
	for _, path := range []string{
		fmt.Sprintf("/syncs/%d", sync), fmt.Sprintf("/sources/%d", source), fmt.Sprintf("/destinations/%d", destination),
		fmt.Sprintf("/sync_runs/%d", run), fmt.Sprintf("/syncs/%d/sync_runs", sync), fmt.Sprintf("/destinations/%d/objects", destination),
	} {
		w.do("GET", path, key, nil).want(404)
	}
	for _, path := range []string{"/syncs", "/sources", "/destinations", "/datasets", "/webhooks"} {
		require.Empty(t, w.do("GET", path, key, nil).want(200).at("data"))
	}
	w.do("GET", fmt.Sprintf("/invitations/%d", invitation), pat, nil).want(404)
	w.do("GET", fmt.Sprintf("/workspaces/%d", workspace), pat, nil).want(404)
	w.do("DELETE", fmt.Sprintf("/syncs/%d", sync), key, nil).want(404)
	w.do("POST", "/syncs", key, syncBody(source, destination)).want(400)
	w.do("POST", "/invitations", pat, map[string]any{"email": "b@example.com", "role": "member", "workspaces": []any{map[string]any{"id": workspace, "role": "viewer"}}}).want(400)
	w.do("GET", fmt.Sprintf("/syncs/%d", sync), w.key, nil).want(200)
}

// TestTokensDoNotExpire: no lifetime is published, so there is none.
func TestTokensDoNotExpire(t *testing.T) {
	proves(t, "F-5.1-07")
	w := newWorld(t)
	w.control("POST", "/clock", map[string]any{"advance": "87600h"}).want(200)
	for _, path := range []string{"/syncs", "/sources", "/destinations", "/datasets", "/webhooks", "/source_types", "/workspace"} {
		w.do("GET", path, w.key, nil).want(200)
	}
	for _, path := range []string{"/users", "/workspaces", "/invitations"} {
		w.do("GET", path, w.pat, nil).want(200)
	}
}

// TestRoles: what members of an organization may do depends on their role in
// the workspace.
func TestRoles(t *testing.T) {
	w := newWorld(t)
	workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
	path := fmt.Sprintf("/workspaces/%d", workspace)
	member := func(role string) string {
		email := role + "@member.example"
		id := w.do("POST", "/invitations", w.pat, map[string]any{"email": email, "role": "member", "workspaces": []any{map[string]any{"id": workspace, "role": role}}}).want(200).id("data.id")
		user := w.control("POST", fmt.Sprintf("/invitations/%d/claim", id), map[string]any{}).want(200).id("user.id")
		return w.control("POST", fmt.Sprintf("/users/%d/token", user), nil).want(201).at("personal_access_token").(string)
	}
	owner, editor, viewer := member("owner"), member("editor"), member("viewer")
	invite := func(n int) map[string]any {
		return map[string]any{"emails": []string{fmt.Sprintf("new%d@example.com", n)}, "role": "viewer"}
	}
	w.do("POST", path+"/invitations", owner, invite(1)).want(200)
	w.do("POST", path+"/invitations", editor, invite(2)).want(403)
	w.do("GET", path+"/api_key", owner, nil).want(200)
	w.do("GET", path+"/api_key", editor, nil).want(200)
	w.do("GET", path+"/api_key", viewer, nil).want(403)
	w.do("PATCH", path, viewer, map[string]any{"name": "Mine"}).want(403)
	w.do("POST", "/workspaces", owner, map[string]any{"name": "Mine"}).want(403)
	w.do("POST", "/invitations", owner, map[string]any{"email": "c@example.com", "role": "member"}).want(403)
	w.do("GET", "/users", viewer, nil).want(200)
	require.Len(t, w.do("GET", path+"/users", viewer, nil).want(200).at("data"), 4)
}
