package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/call"
)

// TestContractRoutes holds routes and document together in both directions.
func TestContractRoutes(t *testing.T) {
	proves(t, "F-4-01")
	w := newWorld(t)
	handlers := w.s.handlers()
	described := map[string]bool{}
	for _, op := range openapi.Operations() {
		described[op.ID] = true
		require.Contains(t, handlers, op.ID, "the document has an operation without a handler")
		// The mux finds it too: an unknown token is 401, not 404 or 405.
		if op.Auth != "" {
			w.do(op.Method, concrete(op.Path), "unknown", nil).want(http.StatusUnauthorized)
		}
	}
	for id := range handlers {
		require.Contains(t, described, id, "a handler is not in the document")
	}
}

// concrete fills a path's parameters with an id that no row has.
func concrete(path string) string {
	for {
		before, rest, found := strings.Cut(path, "{")
		if !found {
			return path
		}
		_, after, _ := strings.Cut(rest, "}")
		path = before + "999999" + after
	}
}

// TestContract calls every operation of the document for every status that it
// promises; world.do holds each reply against the document.
func TestContract(t *testing.T) {
	proves(t, "F-4-33")
	for _, dialect := range []Dialect{DialectSpec, DialectLive} {
		t.Run(string(dialect), func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Dialect, c.MaxBody = dialect, 64<<10 })
			contractSuccesses(w)
			contractConflicts(w)
			contractFailures(w)
			require.Empty(t, w.unanswered(), "promised by the document and never answered")
		})
	}
}

// unanswered lists what the document promises and was not seen. That nothing else
// is answered, world.send has seen to.
func (w *world) unanswered() (missing []string) {
	for _, op := range openapi.Operations() {
		for _, status := range op.Statuses {
			if !w.seen[op.ID][status] {
				missing = append(missing, fmt.Sprint(op.ID, " ", status))
			}
		}
	}
	return missing
}

// contractFailures provokes the failures that every operation of a kind has.
func contractFailures(w *world) {
	for _, op := range openapi.Operations() {
		token, wrong := w.key, w.pat
		if op.Auth == call.AuthOrganization {
			token, wrong = w.pat, w.key
		}
		path := concrete(op.Path)
		if op.Auth != "" {
			w.do(op.Method, path, "", nil).want(http.StatusUnauthorized)
			w.do(op.Method, path, wrong, nil).want(http.StatusForbidden)
			fault := w.control("POST", "/faults", map[string]any{
				"kind": "rate_limited", "operation": op.ID, "retry_after": "3", "first_n": 1,
			}).want(http.StatusCreated)
			limited := w.do(op.Method, path, token, nil).want(http.StatusTooManyRequests)
			require.Equal(w.t, "3", limited.header.Get("Retry-After"))
			w.control("DELETE", "/faults/"+fmt.Sprint(fault.at("id")), nil).want(http.StatusOK)
		}
		if strings.Contains(op.Path, "_id}") {
			w.do(op.Method, strings.ReplaceAll(path, "999999", "abc"), token, validBody(op)).want(http.StatusBadRequest)
			if slices.Contains(op.Statuses, http.StatusNotFound) {
				w.do(op.Method, path+notFoundQuery(op), token, validBody(op)).want(http.StatusNotFound)
			}
		}
		if strings.HasPrefix(op.ID, "list") {
			w.do(op.Method, path+"?page=first", token, nil).want(http.StatusBadRequest)
			w.do(op.Method, path+"?order=sideways", token, nil).want(http.StatusBadRequest)
		}
		if op.HasBody {
			w.do(op.Method, path, token, "{").want(http.StatusBadRequest)
			w.do(op.Method, path, token, `{"name":"`+strings.Repeat("x", 65<<10)+`"}`).want(http.StatusRequestEntityTooLarge)
		}
	}
}

// validBody is the document's own example of a request, so that nothing but the
// path is wrong.
func validBody(op *openapi.Operation) any {
	if !op.HasBody {
		return nil
	}
	return op.RequestExample()
}

// notFoundQuery is the query that the operation cannot do without.
func notFoundQuery(op *openapi.Operation) string {
	switch named := "table_catalog=main&table_schema=main&table_name=x"; {
	case strings.HasSuffix(op.Path, "/tables/refresh_columns_status"):
		return "?refresh_key=1&" + named
	case strings.HasSuffix(op.Path, "/tables/refresh_columns"), strings.HasSuffix(op.Path, "/tables/columns"):
		return "?" + named
	case strings.HasSuffix(op.Path, "_status"):
		return "?refresh_key=1"
	}
	return ""
}

// TestOutsideTheAPI: unknown paths and methods are JSON as well.
func TestOutsideTheAPI(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/nothing", "/syncs/1/nothing", "/destinations/1/objects/a/b", "/%2e%2e/syncs", "//syncs", "/./syncs", "/syncs/../syncs"} {
		a := w.do("GET", path, w.key, nil).want(http.StatusNotFound)
		require.Equal(t, "not_found", a.at("status"), path)
		require.NotEmpty(t, a.at("message"))
	}
	a := w.do("PUT", "/syncs", w.key, nil).want(http.StatusMethodNotAllowed)
	require.Equal(t, "GET, POST", a.header.Get("Allow"))
	require.Equal(t, "error", a.at("status"))
	root := httptest.NewRequest("GET", "/api", nil)
	require.Equal(t, http.StatusNotFound, w.send(root).code)
	for path, kind := range map[string]string{"/openapi.yaml": "application/yaml", "/openapi.json": "application/json", "/healthz": "application/json", "/readyz": "application/json"} {
		a := w.send(httptest.NewRequest("GET", path, nil)).want(http.StatusOK)
		require.Equal(t, kind, a.header.Get("Content-Type"))
		require.NotEmpty(t, a.text)
	}
	require.Equal(t, "{\"status\":\"ready\"}\n", string(w.send(httptest.NewRequest("GET", "/readyz", nil)).text), "also to who has no token")
}
