package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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
		require.Equal(t, "success", made.at("status"))
		require.Equal(t, body["role"], made.at("data.role"))
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
