package server

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/store"
)

// TestPaginate is the arithmetic of spec 2.1 and 8.
func TestPaginate(t *testing.T) {
	proves(t, "F-2.1-03", "F-2.1-04", "F-2.1-05", "F-2.1-06", "F-2.1-07", "F-2.1-08", "F-2.1-09", "F-2.1-11")
	for _, one := range []struct {
		page, per, total int64
		want             string
	}{
		{1, 25, 0, `{"total_records":0,"per_page":25,"prev_page":null,"page":1,"next_page":null,"last_page":0}`},
		{1, 25, 25, `{"total_records":25,"per_page":25,"prev_page":null,"page":1,"next_page":null,"last_page":1}`},
		{1, 25, 26, `{"total_records":26,"per_page":25,"prev_page":null,"page":1,"next_page":2,"last_page":2}`},
		{2, 25, 26, `{"total_records":26,"per_page":25,"prev_page":1,"page":2,"next_page":null,"last_page":2}`},
		{2, 10, 30, `{"total_records":30,"per_page":10,"prev_page":1,"page":2,"next_page":3,"last_page":3}`},
		{9, 10, 30, `{"total_records":30,"per_page":10,"prev_page":null,"page":9,"next_page":null,"last_page":3}`},
	} {
		got, err := json.Marshal(call.Paginate(store.Page{Number: one.page, PerPage: one.per}, one.total))
		require.NoError(t, err)
		require.JSONEq(t, one.want, string(got))
	}
}

// TestLists walks the pages of a list through the API.
func TestLists(t *testing.T) {
	proves(t, "F-2.1-01", "F-2.1-02", "F-4-04", "F-8-01", "F-8-02", "F-8-03", "F-8-04", "F-8-05", "F-8-06")
	w := newWorld(t)
	for i := range 7 {
		w.do("POST", "/workspaces", w.pat, map[string]any{"name": fmt.Sprintf("W%d", i)}).want(201)
	}
	names := func(query string) (out []string) {
		for _, entry := range w.do("GET", "/workspaces"+query, w.pat, nil).want(200).at("data").([]any) {
			out = append(out, entry.(map[string]any)["name"].(string))
		}
		return out
	}
	require.Equal(t, []string{"W6", "W5", "W4"}, names("?per_page=3"))
	require.Equal(t, names("?per_page=3"), names("?page=0&per_page=3"), "page 0 is page 1")
	require.Equal(t, []string{"W3", "W2", "W1"}, names("?per_page=3&page=2"))
	require.Equal(t, []string{"First workspace", "W0", "W1"}, names("?per_page=3&order=asc"))
	require.Empty(t, names("?page=10000"))
	require.Empty(t, names("?page=9223372036854775807&per_page=100"))
	require.Len(t, names("?per_page=1000"), 8)
	plain := w.do("GET", "/workspaces", w.pat, nil).want(200)
	require.Equal(t, "success", plain.at("status"))
	require.EqualValues(t, 1, plain.id("pagination.page"))
	require.EqualValues(t, 25, plain.id("pagination.per_page"))
	require.EqualValues(t, 8, plain.id("pagination.total_records"))
	require.Equal(t, names(""), names("?order=desc"))
	a := w.do("GET", "/workspaces?per_page=1000", w.pat, nil).want(200)
	require.EqualValues(t, 100, a.id("pagination.per_page"), "clamped, not refused")
	require.False(t, a.has("next"), "the legacy URL is in the list of users only")
	for _, bad := range []string{"?page=-1", "?page=one", "?page=1.5", "?per_page=0", "?per_page=x", "?order=newest", "?page=99999999999999999999"} {
		a := w.do("GET", "/workspaces"+bad, w.pat, nil).want(400)
		require.NotEmpty(t, a.at("errors.0.field"), bad)
	}
}

// TestLegacyNext is the URL that clients of old follow.
func TestLegacyNext(t *testing.T) {
	proves(t, "F-2.1-10")
	for _, dialect := range []Dialect{DialectSpec, DialectLive} {
		w := newWorld(t, func(c *Config) { c.Dialect = dialect })
		for i := range 2 {
			id := w.do("POST", "/invitations", w.pat, map[string]any{"email": fmt.Sprintf("u%d@example.com", i), "role": "member"}).want(200).id("data.id")
			w.control("POST", fmt.Sprintf("/invitations/%d/claim", id), map[string]any{}).want(200)
		}
		a := w.do("GET", "/users?per_page=2", w.pat, nil).want(200)
		require.Equal(t, "http://example.com/api/v1/users?page=2&per_page=2", a.at("next"))
		require.Nil(t, w.do("GET", "/users?per_page=2&page=2", w.pat, nil).want(200).at("next"))
		require.Equal(t, dialect == DialectLive, w.do("GET", "/syncs", w.key, nil).want(200).has("next"))
	}
}
