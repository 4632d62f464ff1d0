package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/controlapi"
)

func TestJournalOfRequests(t *testing.T) {
	w := newWorld(t)
	w.do("GET", "/destinations?page=2&token=in-the-query", w.key, nil)
	made := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second", "return_workspace_api_key": true}).want(201)
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second"}).want(409)
	w.do("GET", "/users", "wrong-token", nil).want(401)

	a := w.control("GET", "/journal/requests", nil).want(200)
	a.is("total", 4, "entries.0.operation", "listDestinations", "entries.0.path", "/api/v1/destinations")
	a.is("entries.0.query", "page=2&token=[hidden]", "entries.1.id", made.header.Get("X-Request-Id"))
	a.is("entries.1.request.name", "Second", "entries.1.response.data.api_key", "[hidden]", "entries.2.status", 409)
	a.is("entries.3.organization_id", 0)
	lacks(t, string(a.text), made.at("data.api_key").(string), w.pat)

	organization := a.id("entries.0.organization_id")
	for filter, want := range map[string]int{
		"operation=createWorkspace": 2, "status=409": 1, "status=4xx": 3, "method=POST": 2,
		fmt.Sprintf("organization=%d", organization): 3, "organization=999": 0,
		fmt.Sprintf("workspace=%d", a.id("entries.0.workspace_id")): 1,
		"after=2": 2, "after=" + made.header.Get("X-Request-Id"): 2, "after=4": 0,
	} {
		require.Len(t, w.control("GET", "/journal/requests?"+filter, nil).want(200).at("entries"), want, filter)
	}
	page := w.control("GET", "/journal/requests?limit=3", nil).want(200)
	require.EqualValues(t, 3, page.id("next"))
	rest := w.control("GET", "/journal/requests?limit=3&after=3", nil).want(200)
	require.Len(t, rest.at("entries"), 1)
	require.Nil(t, rest.at("next"))
	w.control("GET", "/journal/requests?after=req_1", nil).want(400)

	w.control("DELETE", "/journal/requests", nil).want(200)
	require.Empty(t, w.control("GET", "/journal/requests", nil).want(200).at("entries"))
	w.do("GET", "/users", w.pat, nil).want(200)
	next := w.control("GET", "/journal/requests", nil).want(200)
	require.EqualValues(t, 5, next.id("entries.0.number"), "numbers go on")
	require.Equal(t, "req_000000000005", next.at("entries.0.id"), "ids count")
}

func TestJournalOfCalls(t *testing.T) {
	w := newWorld(t)
	id := w.newDestination()
	a := w.control("GET", "/journal/calls", nil).want(200)
	a.is("entries.0.method", "test_connection", "entries.0.outcome", "ok")
	lacks(t, string(a.text), "unguessable-segment", "destination-token", "header-secret")
	organization := w.do("GET", "/workspaces", w.pat, nil).want(200).id("data.0.organization_id")
	total := int(a.id("total"))
	for filter, want := range map[string]int{
		"method=list_objects": 1, "outcome=tls": 0, fmt.Sprintf("destination=%d", id): total, "destination=999": 0,
		fmt.Sprintf("organization=%d", organization): total, "organization=999": 0, "status=200": total, "status=5xx": 0,
	} {
		require.Len(t, w.control("GET", "/journal/calls?"+filter, nil).want(200).at("entries"), want, filter)
	}
	w.control("DELETE", "/journal/calls", nil).want(200)
	require.Empty(t, w.control("GET", "/journal/calls", nil).want(200).at("entries"))
}

// TestSearchOfJournals: a text is found in whichever case, in bodies as they are shown.
// What was taken out of them is not found, although calls have it in memory.
func TestSearchOfJournals(t *testing.T) {
	w := newWorld(t)
	w.newDestination()
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Büro Köln"}).want(201)
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Other", "password": "unshown-secret"})
	// An endpoint that answers with the token of its connection.
	echo := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		rw.Header().Set("Content-Type", "application/json")
		var call struct{ ID string }
		_ = json.NewDecoder(r.Body).Decode(&call)
		_, _ = fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%q,"result":{"success":false,"reason":"Echo of %s","Told":"in Kiel"}}`, call.ID, token)
	}))
	defer echo.Close()
	w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{
		"name": "Echo", "type": "custom_api", "credentials": map[string]any{"api_version": 1, "webhook_url": echo.URL + "/hidden-segment", "auth_token": "echoed-token"},
	}}).want(201)
	found := func(journal, text string) int {
		query := url.Values{"text": {text}}.Encode()
		oldest := len(w.control("GET", "/journal/"+journal+"?"+query, nil).want(200).at("entries").([]any))
		require.Len(t, w.control("GET", "/journal/"+journal+"?newest=true&"+query, nil).want(200).at("entries"), oldest, text)
		return oldest
	}
	for _, text := range []string{"Büro Köln", "BÜRO k", "köln", "CREATEWORKSPACE"} {
		require.Positive(t, found("requests", text), text)
	}
	require.Positive(t, found("calls", "echo of"))
	require.Positive(t, found("calls", "IN KIEL"))
	for _, secret := range []string{"destination-token", "unguessable-segment", "header-secret", "unshown-secret", "hidden-segment", "echoed-token", "ECHOED-T", w.pat, w.key} {
		require.Zero(t, found("requests", secret), secret)
		require.Zero(t, found("calls", secret), secret)
	}
}

func TestJournalWithoutBodies(t *testing.T) {
	w := newWorld(t)
	require.Equal(t, false, w.control("POST", "/journal", `{"bodies":false}`).want(200).at("bodies"))
	w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Second"}).want(201)
	a := w.control("GET", "/journal/requests", nil).want(200)
	a.is("entries.0.request", nil, "entries.0.response", nil)
	require.EqualValues(t, len(`{"name":"Second"}`), a.id("entries.0.request_bytes"))
}

// TestJournalInParallel: no two requests share an id, none is lost.
func TestJournalInParallel(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				serve(w.s, request("GET", api.BasePath+"/users", w.pat, nil))
			}
		})
	}
	wg.Wait()
	var page struct{ Entries []controlapi.RequestEntry }
	require.NoError(t, json.Unmarshal(w.control("GET", "/journal/requests", nil).want(200).text, &page))
	ids := map[string]bool{}
	for _, e := range page.Entries {
		ids[e.ID] = true
		require.Equal(t, http.StatusOK, e.Status)
	}
	require.Len(t, ids, 160)
}
