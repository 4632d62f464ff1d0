package server

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// TestAuthentication: headers that say who calls, and almost do.
func TestAuthentication(t *testing.T) {
	proves(t, "F-5.1-01")
	w := newWorld(t)
	for name, one := range map[string]struct {
		values []string
		want   int
	}{
		"none":                    {nil, 401},
		"empty":                   {[]string{""}, 401},
		"token without scheme":    {[]string{w.key}, 401},
		"another scheme":          {[]string{"Token " + w.key}, 401},
		"scheme and token":        {[]string{"Bearer " + w.key}, 200},
		"scheme without token":    {[]string{"Bearer "}, 401},
		"two headers":             {[]string{"Bearer " + w.key, "Bearer " + w.key}, 401},
		"scheme in other case":    {[]string{"bearer " + w.key}, 200},
		"basic":                   {[]string{basicAuth("bearer", w.key)}, 200},
		"basic with another user": {[]string{basicAuth("admin", w.key)}, 401},
	} {
		r := httptest.NewRequest("GET", api.BasePath+"/syncs", nil)
		r.Header["Authorization"] = one.values
		require.Equal(t, one.want, w.send(r).code, name)
	}
}

func basicAuth(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// TestOrganizationsAreApart: whatever belongs to another organization or
// workspace is not there at all.
func TestOrganizationsAreApart(t *testing.T) {
	w := newWorld(t)
	sync := w.newSync()
	shown := w.do("GET", fmt.Sprintf("/syncs/%d", sync), w.key, nil).want(200)
	source, destination := shown.id("data.source_attributes.connection_id"), shown.id("data.destination_attributes.connection_id")
	run := w.trigger(sync)
	invitation := w.do("POST", "/invitations", w.pat, map[string]any{"email": "a@example.com", "role": "member"}).want(200).id("data.id")
	workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
	table := w.do("GET", fmt.Sprintf("/sources/%d/objects", source), w.key, nil).want(200).id("data.0.id")

	other := w.control("POST", "/organizations", map[string]any{"name": "Other"}).want(201)
	pat := other.at("personal_access_token").(string)
	at := fmt.Sprintf("/sources/%d", source)
	for _, key := range []string{other.at("workspace_api_key").(string), w.stranger()} {
		for _, call := range []struct {
			method, path string
			body         any
		}{
			{"GET", fmt.Sprintf("/syncs/%d", sync), nil}, {"DELETE", fmt.Sprintf("/syncs/%d", sync), nil}, {"GET", fmt.Sprintf("/syncs/%d/sync_runs", sync), nil},
			{"GET", fmt.Sprintf("/sync_runs/%d", run), nil}, {"GET", fmt.Sprintf("/destinations/%d", destination), nil}, {"GET", fmt.Sprintf("/destinations/%d/objects", destination), nil},
			{"GET", at, nil}, {"PATCH", at, connection(map[string]any{"name": "Mine"})}, {"DELETE", at, nil}, {"GET", at + "/objects", nil},
			{"POST", at + "/refresh_tables", nil}, {"GET", at + "/refresh_tables_status?refresh_key=1", nil}, {"GET", at + "/models", nil}, {"GET", at + "/topics", nil},
			{"GET", fmt.Sprintf("%s/tables/%d", at, table), nil}, {"POST", fmt.Sprintf("%s/tables/%d/refresh_columns", at, table), nil},
			{"POST", at + "/models", map[string]any{"name": "m", "query": "SELECT 1"}}, {"POST", at + "/topics", map[string]any{"name": "t", "sample_message": map[string]any{"a": 1}}},
		} {
			w.do(call.method, call.path, key, call.body).want(404)
		}
		for _, path := range []string{"/syncs", "/sources", "/destinations", "/datasets", "/webhooks"} {
			require.Empty(t, w.do("GET", path, key, nil).want(200).at("data"))
		}
		w.do("POST", "/syncs", key, syncBody(source, destination)).want(400)
	}
	w.do("GET", fmt.Sprintf("/invitations/%d", invitation), pat, nil).want(404)
	w.do("GET", fmt.Sprintf("/workspaces/%d", workspace), pat, nil).want(404)
	w.do("GET", fmt.Sprintf("/syncs/%d", sync), w.key, nil).want(200)
	require.Equal(t, "Shop", w.do("GET", at, w.key, nil).want(200).at("data.name"))
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

// TestRoles: the permissions of an organization's members depend on their
// role in the workspace.
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

// TestInvitationsAreMade by an administrator who was invited: each call answers 200
// with success, and each invitation names the one who made it (spec 2.13, 4).
func TestInvitationsAreMade(t *testing.T) {
	proves(t, "F-2.13-04", "F-4-19", "F-4-23")
	w := newWorld(t)
	workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
	invited := w.do("POST", "/invitations", w.pat, map[string]any{"email": "second@example.com", "role": "admin"}).want(200).id("data.id")
	second := w.control("POST", fmt.Sprintf("/invitations/%d/claim", invited), map[string]any{}).want(200).id("user.id")
	token := w.control("POST", fmt.Sprintf("/users/%d/token", second), nil).want(201).at("personal_access_token").(string)
	for path, body := range map[string]map[string]any{
		"/invitations": {"email": "new@example.com", "role": "member", "workspaces": []any{map[string]any{"id": workspace, "role": "editor"}}},
		fmt.Sprintf("/workspaces/%d/invitations", workspace): {"emails": []any{"other@example.com"}, "role": "viewer"},
	} {
		made := w.do("POST", path, token, body).want(200)
		made.is("status", "success", "data.role", body["role"])
		require.Equal(t, second, made.id("data.created_by_id"))
	}
}

// TestPageIsOneByDefault (spec 8).
func TestPageIsOneByDefault(t *testing.T) {
	proves(t, "F-8-01")
	w := newWorld(t)
	second := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second"}).want(201).id("data.id")
	list := w.do("GET", "/workspaces?per_page=1", w.pat, nil).want(200)
	require.Equal(t, []int64{1, 2, second}, []int64{list.id("pagination.page"), list.id("pagination.next_page"), list.id("data.0.id")})
}
