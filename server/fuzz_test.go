package server

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/call"
)

// FuzzAPI sends any bytes to every operation: never a 500, never a panic, and
// every reply conforms to the document. The first number chooses operation,
// dialect and whether the path names things that exist.
func FuzzAPI(f *testing.F) {
	var worlds [2]*world
	var known [2]map[string]string
	for i, dialect := range []Dialect{DialectSpec, DialectLive} {
		worlds[i] = newWorld(f, func(c *Config) { c.Dialect = dialect })
		known[i] = fuzzWorld(worlds[i])
	}
	operations := openapi.Operations()
	for i, op := range operations {
		body := "{}"
		if op.HasBody {
			body = string(op.RequestExample())
		}
		f.Add(uint16(i*4), "page=1", "1", []byte(body))
		f.Add(uint16(i*4+2), "page=1&force_full_sync=True", "1", []byte(strings.ReplaceAll(body, `_id":7`, `_id":"7"`)))
		f.Add(uint16(i*4+1), "page=0&per_page=1000&order=asc", "abc", []byte(`{"name":null}`))
	}
	f.Fuzz(func(t *testing.T, choice uint16, query, id string, body []byte) {
		op := operations[int(choice/4)%len(operations)]
		w, ids := worlds[choice>>1&1], known[choice>>1&1]
		// Connections to the outside are for other tests.
		if bytes.Contains(body, []byte("webhook_url")) && op.ID != "listSyncs" {
			body = bytes.ReplaceAll(body, []byte("https://"), []byte("https//"))
		}
		path := op.Path
		for strings.Contains(path, "{") {
			before, rest, _ := strings.Cut(path, "{")
			name, after, _ := strings.Cut(rest, "}")
			value := url.PathEscape(id)
			if known, ok := ids[name]; ok && choice&1 == 0 && !destructive(op) {
				value = known
			}
			if value == "" || value == "." || value == ".." {
				value = "0"
			}
			path = before + value + after
		}
		token := w.key
		if op.Auth == call.AuthOrganization {
			token = w.pat
		}
		r := httptest.NewRequest(op.Method, api.BasePath+"/", bytes.NewReader(body))
		parsed, err := url.ParseRequestURI(api.BasePath + path)
		if err != nil {
			return
		}
		r.URL = parsed
		r.URL.RawQuery = query
		r.RequestURI = ""
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		recorder := serve(w.s, r)
		// 502 is a destination that the fuzzer has made and that does not run.
		if recorder.Code >= http.StatusInternalServerError && recorder.Code != http.StatusBadGateway {
			t.Fatalf("%s %s?%s\n%q\n%d %s", op.Method, path, query, body, recorder.Code, recorder.Body)
		}
	})
}

// destructive operations work on ids that do not exist, so that what the fuzzer
// works on stays.
func destructive(op *openapi.Operation) bool {
	return op.Method == http.MethodDelete || op.ID == "updateDestination" || op.ID == "updateSource" || op.ID == "refreshDestinationObjects"
}

// fuzzWorld makes one of everything and gives the ids by the names of the
// path's parameters.
func fuzzWorld(w *world) map[string]string {
	number := func(a *answer, path string) string { return fmt.Sprint(a.id(path)) }
	w.newSync()
	shown := w.do("GET", "/syncs", w.key, nil).want(200)
	source := shown.id("data.0.source_attributes.connection_id")
	ids := map[string]string{
		"sync_id":          number(shown, "data.0.id"),
		"source_id":        number(shown, "data.0.source_attributes.connection_id"),
		"destination_id":   number(shown, "data.0.destination_attributes.connection_id"),
		"object_full_name": "person",
	}
	ids["sync_run_id"] = number(w.do("POST", "/syncs/"+ids["sync_id"]+"/trigger", w.key, nil).want(200), "data.sync_run_id")
	ids["table_id"] = number(w.do("GET", "/sources/"+ids["source_id"]+"/objects", w.key, nil).want(200), "data.0.id")
	dataset := map[string]any{"name": "D", "type": "sql", "source_id": source, "query": "SELECT 1 AS one"}
	ids["dataset_id"] = number(w.do("POST", "/datasets", w.key, dataset).want(201), "data.id")
	model := map[string]any{"name": "M", "query": "SELECT 1 AS one"}
	ids["model_id"] = number(w.do("POST", "/sources/"+ids["source_id"]+"/models", w.key, model).want(201), "data.id")
	ids["webhook_id"] = number(w.do("POST", "/webhooks", w.key, map[string]any{"name": "H", "endpoint": "https://example.com/"}).want(201), "data.id")
	ids["workspace_id"] = number(w.do("GET", "/workspaces", w.pat, nil).want(200), "data.0.id")
	ids["invitation_id"] = number(w.do("POST", "/invitations", w.pat, map[string]any{"email": "f@example.com", "role": "member"}).want(200), "data.id")
	return ids
}
