package server

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/internal/call"
	"github.com/destkit/destkit/server/internal/rest"
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

// contractSuccesses walks through every operation as a client would: create,
// read back, change, read back, delete, read nothing.
func contractSuccesses(w *world) {
	require.Equal(w.t, "v1", w.do("GET", "/", "", nil).want(200).at("data.version"))
	successOrganization(w)
	source, destination := successSources(w), successDestinations(w)
	successDatasets(w, source)
	successTopics(w)
	successLinks(w, source, destination)
	successSyncs(w, source, destination)
	successWebhooks(w)
}

// crud reads a thing back after its creation and after a change, finds it in
// its list, and deletes it.
func (w *world) crud(collection, token string, id int64, patch any, changed, value string) {
	w.t.Helper()
	one := fmt.Sprintf("%s/%d", collection, id)
	require.Equal(w.t, id, w.do("GET", one, token, nil).want(200).id("data.id"))
	w.do("PATCH", one, token, patch).want(200)
	a := w.do("GET", one, token, nil).want(200)
	require.Equal(w.t, value, a.at(changed))
	list := w.do("GET", collection+"?per_page=100", token, nil).want(200)
	found := false
	for _, entry := range list.at("data").([]any) {
		found = found || fmt.Sprint(entry.(map[string]any)["id"]) == fmt.Sprint(id)
	}
	require.True(w.t, found, "%s is not in its list", one)
}

// remove deletes a thing and sees that it is gone.
func (w *world) remove(path, token string) {
	w.t.Helper()
	require.Equal(w.t, "deleted", w.do("DELETE", path, token, nil).want(200).at("status"))
	w.do("GET", path, token, nil).want(404)
	w.do("DELETE", path, token, nil).want(404)
}

func successOrganization(w *world) {
	a := w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Züri – 株式会社", "notification_emails": []string{"ops@example.com"}, "return_workspace_api_key": true}).want(201)
	require.Equal(w.t, "success", a.at("status"))
	id, key := a.id("data.id"), a.at("data.api_key").(string)
	path := fmt.Sprintf("/workspaces/%d", id)
	require.Equal(w.t, key, w.do("GET", path+"/api_key", w.pat, nil).want(200).at("api_key"))
	require.Equal(w.t, id, w.do("GET", "/workspace", key, nil).want(200).id("data.id"))
	require.Equal(w.t, id, w.do("GET", "/workspace/", key, nil).want(200).id("data.id"))
	w.crud("/workspaces", w.pat, id, map[string]any{"name": "Zürich"}, "data.name", "Zürich")
	w.do("GET", path+"/users", w.pat, nil).want(200)

	invited := w.do("POST", path+"/invitations", w.pat, map[string]any{"emails": []string{"new@example.com", "other@example.com"}, "role": "editor"}).want(200)
	require.Len(w.t, invited.at("invitations"), 2)
	require.Equal(w.t, invited.at("invitations.0"), invited.at("data"))
	one := fmt.Sprintf("%s/invitations/%d", path, invited.id("data.id"))
	require.Equal(w.t, "viewer", w.do("PUT", one, w.pat, map[string]any{"role": "viewer"}).want(200).at("data.role"))
	require.Equal(w.t, "viewer", w.do("GET", one, w.pat, nil).want(200).at("data.role"))
	w.do("GET", path+"/invitations", w.pat, nil).want(200)
	w.remove(one, w.pat)

	a = w.do("POST", "/invitations", w.pat, map[string]any{"email": "member@example.com", "role": "member", "workspaces": []any{map[string]any{"id": id, "role": "operator"}}}).want(200)
	require.Equal(w.t, id, a.id("data.associated_workspace_invitations.0.workspace_id"))
	w.crud("/invitations", w.pat, a.id("data.id"), map[string]any{"role": "admin"}, "data.role", "admin")
	w.remove(fmt.Sprintf("/invitations/%d", a.id("data.id")), w.pat)
	w.do("GET", "/users", w.pat, nil).want(200)
	w.remove(path, w.pat)
}

func successSources(w *world) int64 {
	w.do("GET", "/source_types", w.key, nil).want(200)
	id := w.newSource()
	path := fmt.Sprintf("/sources/%d", id)
	w.crud("/sources", w.key, id, map[string]any{"connection": map[string]any{"name": "Shop 2"}}, "data.name", "Shop 2")
	objects := w.do("GET", path+"/objects", w.key, nil).want(200)
	require.Equal(w.t, "customers", objects.at("data.0.table_name"))
	table := fmt.Sprintf("%s/tables/%d", path, objects.id("data.0.id"))
	require.Len(w.t, w.do("GET", table, w.key, nil).want(200).at("data.columns"), 6)
	w.refreshTables(id)
	w.refresh(table+"/refresh_columns", table+"/refresh_columns_status")
	named := "?table_catalog=main&table_schema=main&table_name=customers"
	w.refresh(path+"/tables/refresh_columns"+named, path+"/tables/refresh_columns_status"+named)
	require.Len(w.t, w.do("GET", path+"/tables/columns"+named, w.key, nil).want(200).at("data"), 6)
	return id
}

// refreshTables looks at the tables of a source again.
func (w *world) refreshTables(source int64) {
	w.t.Helper()
	path := fmt.Sprintf("/sources/%d/refresh_tables", source)
	w.refresh(path, path+"_status")
}

// refresh starts a refresh, lets the clock settle, and fetches its status.
func (w *world) refresh(start, status string) {
	w.t.Helper()
	key := w.do("POST", start, w.key, nil).want(200).id("refresh_key")
	w.control("POST", "/settle", nil).want(200)
	joint := "?"
	if strings.Contains(status, joint) {
		joint = "&"
	}
	require.Equal(w.t, "completed", w.do("GET", fmt.Sprintf("%s%srefresh_key=%d", status, joint, key), w.key, nil).want(200).at("status"))
}

func successDestinations(w *world) int64 {
	w.do("GET", "/connectors", w.key, nil).want(200)
	id := w.newDestination()
	path := fmt.Sprintf("/destinations/%d", id)
	w.crud("/destinations", w.key, id, map[string]any{"service_connection": map[string]any{"name": "Endpoint 2"}}, "data.name", "Endpoint 2")
	require.NotEmpty(w.t, w.do("GET", path+"/objects", w.key, nil).want(200).at("data"))
	require.Equal(w.t, "Person", w.do("GET", path+"/objects/person", w.key, nil).want(200).at("data.label"))
	w.refresh(path+"/refresh_objects", path+"/refresh_objects_status")
	return id
}

func successDatasets(w *world, source int64) {
	query := "SELECT id, email FROM customers"
	a := w.do("POST", "/datasets", w.key, map[string]any{"name": "People", "type": "sql", "source_id": source, "query": query}).want(201)
	w.crud("/datasets", w.key, a.id("data.id"), map[string]any{"description": "everybody"}, "data.description", "everybody")
	w.do("GET", "/datasets?type=sql", w.key, nil).want(200)
	segments := fmt.Sprintf("/sources/%d/filter_segments", source)
	g := w.do("POST", segments, w.key, map[string]any{"name": "First", "dataset_id": a.id("data.id"), "query": "id = 1"}).want(201)
	w.crud(segments, w.key, g.id("data.id"), map[string]any{"query": "id < 2"}, "data.query", "id < 2")
	w.remove(fmt.Sprintf("%s/%d", segments, g.id("data.id")), w.key)
	dataset := fmt.Sprintf("/datasets/%d", a.id("data.id"))
	w.refresh(dataset+"/refresh_columns", dataset+"/refresh_columns_status")
	w.remove(fmt.Sprintf("/datasets/%d", a.id("data.id")), w.key)

	models := fmt.Sprintf("/sources/%d/models", source)
	a = w.do("POST", models, w.key, map[string]any{"name": "Model", "query": query, "description": "old"}).want(201)
	require.NotEmpty(w.t, a.header.Get("Deprecation"))
	require.Equal(w.t, a.at("data.dataset_id"), a.at("data.dataset_id="))
	w.crud(models, w.key, a.id("data.id"), map[string]any{"name": "Model 2"}, "data.name", "Model 2")
	model := fmt.Sprintf("%s/%d", models, a.id("data.id"))
	w.refresh(model+"/refresh_columns", model+"/refresh_columns_status")
	w.remove(model, w.key)
}

func successLinks(w *world, source, destination int64) {
	back := map[string]any{"redirect_uri": "https://app.example.com/connected"}
	for path, typ := range map[string]any{
		"/source_connect_links": "postgres", "/destination_connect_links": "custom_api", "/segment_management_links": nil, "/sync_management_links": nil,
	} {
		body := maps.Clone(back)
		if typ != nil {
			body["type"] = typ
		}
		a := w.do("POST", path, w.key, body).want(201)
		require.Equal(w.t, typ, a.at("data.type"))
		require.Equal(w.t, a.at("data"), w.do("GET", path, w.key, nil).want(200).at("data.0"))
	}
	y := w.do("POST", "/syncs", w.key, syncBody(source, destination)).want(200).id("data.sync_id")
	for _, path := range []string{fmt.Sprintf("/sources/%d", source), fmt.Sprintf("/destinations/%d", destination), fmt.Sprintf("/syncs/%d", y)} {
		w.do("POST", path+"/connect_links", w.key, back).want(201)
	}
	w.remove(fmt.Sprintf("/syncs/%d", y), w.key)
	address := w.do("GET", "/destinations/authorize_url?type=custom_api&redirect_uri=https%3A%2F%2Fapp.example.com", w.key, nil).want(200)
	require.Contains(w.t, address.at("authorize_url"), rest.LinkPath)
	w.do("GET", "/destinations/authorize_url?type=custom_api&redirect_uri=javascript%3Aalert", w.key, nil).want(400)
}

func successTopics(w *world) {
	source := w.sourceOf("topic_log", map[string]any{}).id("data.id")
	topics := fmt.Sprintf("/sources/%d/topics", source)
	a := w.do("POST", topics, w.key, map[string]any{"name": "clicks", "sample_message": map[string]any{"user": "a", "n": 1}}).want(201)
	require.Equal(w.t, "string", a.at("data.schema.user"))
	w.crud(topics, w.key, a.id("data.id"), map[string]any{"description": "pages"}, "data.description", "pages")
	w.remove(fmt.Sprintf("%s/%d", topics, a.id("data.id")), w.key)
	w.remove(fmt.Sprintf("/sources/%d", source), w.key)
}

func successSyncs(w *world, source, destination int64) {
	body := syncBody(source, destination)
	body["validate_only"] = true
	w.do("POST", "/syncs", w.key, body).want(200)
	require.Empty(w.t, w.do("GET", "/syncs", w.key, nil).want(200).at("data"))
	delete(body, "validate_only")
	id := w.do("POST", "/syncs", w.key, body).want(200).id("data.sync_id")
	body["label"] = "Customers 2"
	w.crud("/syncs", w.key, id, body, "data.label", "Customers 2")
	path := fmt.Sprintf("/syncs/%d", id)
	reached, release := w.hold()
	run := w.do("POST", path+"/trigger", w.key, nil).want(200).id("data.sync_run_id")
	<-reached
	require.Equal(w.t, run, w.do("GET", path+"/sync_runs", w.key, nil).want(200).id("data.0.id"))
	one := fmt.Sprintf("/sync_runs/%d", run)
	w.do("GET", one, w.key, nil).want(200)
	w.do("GET", one+"/records", w.key, nil).want(200)
	require.Equal(w.t, "cancelled", w.do("POST", one+"/cancel", w.key, nil).want(200).at("status"))
	release()
	w.control("POST", "/settle", nil).want(200)
	require.Equal(w.t, true, w.do("GET", one, w.key, nil).want(200).at("data.canceled"))
	w.control("POST", "/clock", map[string]any{"advance": "336h"}).want(200)
	w.do("GET", one+"/records", w.key, nil).want(410)
	w.remove(path, w.key)
	w.remove(fmt.Sprintf("/sources/%d", source), w.key)
	w.remove(fmt.Sprintf("/destinations/%d", destination), w.key)
}

func successWebhooks(w *world) {
	a := w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://example.com/hook/secret-part"}).want(201)
	require.NotEmpty(w.t, a.at("data.secret"))
	require.Len(w.t, a.at("data.events"), 7)
	id := a.id("data.id")
	require.False(w.t, w.do("GET", fmt.Sprintf("/webhooks/%d", id), w.key, nil).want(200).has("data.secret"))
	w.crud("/webhooks", w.key, id, map[string]any{"name": "Hook 2"}, "data.name", "Hook 2")
	w.remove(fmt.Sprintf("/webhooks/%d", id), w.key)
}
