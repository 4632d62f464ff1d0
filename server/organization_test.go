package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkspaces(t *testing.T) {
	proves(t, "F-2.14-01", "F-2.14-02", "F-2.14-03", "F-2.14-04", "F-2.14-05", "F-4-22", "F-4.1-11", "F-4.1-12", "F-5.1-04")
	w := newWorld(t)
	plain := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Plain"}).want(201)
	require.Equal(t, "success", plain.at("status"))
	require.False(t, plain.has("data.api_key"), "the key is shown only when it is asked for")
	require.Empty(t, plain.at("data.notification_emails"))
	require.NotEmpty(t, plain.at("data.created_at"))
	asked := w.do("POST", "/workspaces", w.pat, map[string]any{
		"name": "  Ünïcode ☃ 𝄞  ", "notification_emails": []string{"a@example.com", "b@example.com"}, "return_workspace_api_key": true,
	}).want(201)
	require.Equal(t, "Ünïcode ☃ 𝄞", asked.at("data.name"))
	require.Equal(t, plain.id("data.organization_id"), asked.id("data.organization_id"))
	require.Len(t, asked.at("data.notification_emails"), 2)
	key := asked.at("data.api_key").(string)
	require.Regexp(t, `^secret-token:.{20,}$`, key)
	require.Equal(t, asked.id("data.id"), w.do("GET", "/workspace", key, nil).want(200).id("data.id"))
	one := fmt.Sprintf("/workspaces/%d", asked.id("data.id"))
	require.False(t, w.do("GET", one, w.pat, nil).want(200).has("data.api_key"))

	taken := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Plain"}).want(http.StatusConflict)
	require.Contains(t, taken.problems(), "name")
	for _, bad := range []map[string]any{
		{}, {"name": ""}, {"name": "   "}, {"name": "a\u0000b"}, {"name": 7}, {"name": nil},
		{"name": "x", "notification_emails": []string{"nobody"}}, {"name": "x", "notification_emails": "a@example.com"},
		{"name": "x", "return_workspace_api_key": "yes"}, {"name": "x", "colour": "red"},
	} {
		require.NotEmpty(t, w.do("POST", "/workspaces", w.pat, bad).want(400).problems(), bad)
	}
	// The same name is free in another organization.
	other := w.control("POST", "/organizations", map[string]any{"name": "Other"}).want(201).at("personal_access_token").(string)
	w.do("POST", "/workspaces", other, map[string]any{"name": "Plain"}).want(201)
}

func TestInvitations(t *testing.T) {
	proves(t, "F-2.13-01", "F-2.13-02", "F-2.13-03", "F-2.13-04", "F-2.13-07", "F-2.13-08", "F-4-19", "F-4-20", "F-4-21", "F-4.1-08")
	w := newWorld(t)
	workspace := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id")
	a := w.do("POST", "/invitations", w.pat, map[string]any{
		"email": "New.Person@Example.com", "role": "member", "workspaces": []any{map[string]any{"id": workspace, "role": "editor"}},
	}).want(200)
	require.Equal(t, "success", a.at("status"))
	require.Equal(t, "New.Person@Example.com", a.at("data.email"))
	require.Equal(t, "member", a.at("data.role"))
	require.NotEmpty(t, a.at("data.created_at"))
	require.Equal(t, w.do("GET", "/users?order=asc", w.pat, nil).want(200).id("data.0.id"), a.id("data.created_by_id"))
	require.Nil(t, a.at("data.claimed_at"))
	require.Nil(t, a.at("data.claimed_by_id"))
	part := a.at("data.associated_workspace_invitations.0").(map[string]any)
	require.Len(t, part, 3)
	require.Equal(t, "editor", part["role"])
	mail := w.control("GET", "/mailbox", nil).want(200)
	require.Contains(t, string(mail.text), "New.Person@Example.com")

	one := fmt.Sprintf("/invitations/%d", a.id("data.id"))
	require.Equal(t, "admin", w.do("PATCH", one, w.pat, map[string]any{"role": "admin"}).want(200).at("data.role"))
	for _, bad := range []map[string]any{
		{"email": "x@example.com"}, {"role": "member"}, {"email": "nobody", "role": "member"}, {"email": "x@example.com", "role": "owner"},
		{"email": "x@example.com", "role": "member", "workspaces": []any{map[string]any{"id": 999, "role": "editor"}}},
		{"email": "x@example.com", "role": "member", "workspaces": []any{map[string]any{"id": workspace, "role": "admin"}}},
		{"email": "x@example.com", "role": "member", "workspaces": []any{map[string]any{"id": workspace, "role": "editor"}, map[string]any{"id": workspace, "role": "viewer"}}},
	} {
		require.NotEmpty(t, w.do("POST", "/invitations", w.pat, bad).want(400).problems(), bad)
	}
	require.Len(t, w.do("GET", "/invitations", w.pat, nil).want(200).at("data"), 1, "nothing of a refused call stays")
	w.do("PATCH", one, w.pat, map[string]any{"role": "editor"}).want(400)
}

func TestWorkspaceInvitations(t *testing.T) {
	proves(t, "F-2.13-09", "F-4-23", "F-4-24", "F-4-25", "F-4-30")
	w := newWorld(t)
	path := fmt.Sprintf("/workspaces/%d/invitations", w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.id"))
	a := w.do("POST", path, w.pat, map[string]any{"emails": []string{"a@example.com", "b@example.com"}, "role": "operator"}).want(200)
	require.Equal(t, "success", a.at("status"))
	require.Equal(t, "a@example.com", a.at("data.email"))
	require.Equal(t, "b@example.com", a.at("invitations.1.email"))
	require.Len(t, a.at("data"), 6, "id, email, created_at, created_by_id, claimed_by_id and role")
	one := fmt.Sprintf("%s/%d", path, a.id("data.id"))
	for _, role := range []string{"owner", "editor", "operator", "viewer"} {
		require.Equal(t, role, w.do("PUT", one, w.pat, map[string]any{"role": role}).want(200).at("data.role"))
	}
	w.do("PUT", one, w.pat, map[string]any{}).want(400)
	w.do("PUT", one, w.pat, map[string]any{"role": "admin"}).want(400)
	for _, bad := range []map[string]any{
		{"emails": []string{}, "role": "viewer"}, {"role": "viewer"}, {"emails": []string{"c@example.com"}}, {"emails": []string{"c"}, "role": "viewer"},
		{"emails": []string{"c@example.com", "C@example.com"}, "role": "viewer"},
	} {
		require.NotEmpty(t, w.do("POST", path, w.pat, bad).want(400).problems(), bad)
	}
	w.do("POST", path, w.pat, map[string]any{"emails": []string{"c@example.com", "a@example.com"}, "role": "viewer"}).want(409)
	require.Len(t, w.do("GET", path, w.pat, nil).want(200).at("data"), 2, "nothing of a refused call stays")
}

// TestMembersJoinAtOnce: who belongs to the organization needs no claim.
func TestMembersJoinAtOnce(t *testing.T) {
	proves(t, "F-4.1-09", "F-2.14-06", "F-2.14-07", "F-4-26")
	w := newWorld(t)
	claimed := w.do("POST", "/invitations", w.pat, map[string]any{"email": "member@example.com", "role": "member"}).want(200).id("data.id")
	w.control("POST", fmt.Sprintf("/invitations/%d/claim", claimed), map[string]any{}).want(200)
	users := w.do("GET", "/users?order=asc", w.pat, nil).want(200)
	require.Equal(t, "member@example.com", users.at("data.1.email"))
	require.Equal(t, "member", users.at("data.1.role"))
	require.NotEmpty(t, users.at("data.1.created_at"))
	require.True(t, users.has("next"))
	workspace := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second"}).want(201).id("data.id")
	members := func() map[string]string {
		out := map[string]string{}
		for _, u := range w.do("GET", fmt.Sprintf("/workspaces/%d/users", workspace), w.pat, nil).want(200).at("data").([]any) {
			user := u.(map[string]any)
			out[user["email"].(string)] = user["role"].(string)
		}
		return out
	}
	require.Len(t, members(), 1)
	a := w.do("POST", "/invitations", w.pat, map[string]any{"email": "MEMBER@example.com", "role": "member", "workspaces": []any{map[string]any{"id": workspace, "role": "viewer"}}}).want(200)
	require.NotNil(t, a.at("data.claimed_at"))
	require.Equal(t, users.id("data.1.id"), a.id("data.claimed_by_id"))
	require.Equal(t, "viewer", members()["member@example.com"])
	w.do("POST", fmt.Sprintf("/workspaces/%d/invitations", workspace), w.pat, map[string]any{"emails": []string{"member@example.com"}, "role": "editor"}).want(200)
	require.Equal(t, "editor", members()["member@example.com"])
}
