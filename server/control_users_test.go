package server

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

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
