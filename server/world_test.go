package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server/api"
)

// world is a service under test with what it talks to, and a client whose every
// reply is held against the OpenAPI document.
type world struct {
	t      testing.TB
	s      *Server
	pat    string // personal access token of the first user
	key    string // API key of the first workspace
	dest   *httptest.Server
	sim    *destsim.Sim // behind dest
	source string       // path of a SQLite file with a table customers

	onCall atomic.Pointer[func()] // runs before each call of the destination

	mu   sync.Mutex
	seen map[string]map[int]bool // operation id -> statuses that were answered
}

// everyFolder opens all folders to sources: tests make theirs anywhere.
var everyFolder = []string{string(filepath.Separator)}

// newWorld starts a service in memory, in development mode, with a simulated
// destination.
func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	config := Config{AllowFiles: everyFolder, Development: true, Emulate: emulator(t)}
	for _, f := range change {
		f(&config)
	}
	if config.Log == nil {
		config.Log = logOfFailure(t)
	}
	s := must(New(t.Context(), config))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &world{t: t, s: s, seen: map[string]map[int]bool{}}
	if first := s.FirstTokens(); first != nil {
		w.pat, w.key = first.PersonalAccessToken, first.WorkspaceAPIKey
	}
	return w
}

// destination is the URL of a simulated destination that requires the token
// "destination-token", started when first needed.
func (w *world) destination() string {
	if w.dest == nil {
		sim := must(destsim.New(destsim.Config{Preset: "crm", Token: "destination-token"}))(w.t)
		w.sim = sim
		w.dest = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if hook := w.onCall.Load(); hook != nil {
				(*hook)()
			}
			sim.ServeHTTP(rw, r)
		}))
		w.t.Cleanup(func() { w.dest.Close(); sim.Close() })
	}
	return w.dest.URL + "/hook/unguessable-segment"
}

// hold lets the next call to the destination wait: a run stays in work until
// release. reached is closed when the call has come.
func (w *world) hold() (reached <-chan struct{}, release func()) {
	came, free := make(chan struct{}), make(chan struct{})
	var once sync.Once
	block := func() {
		once.Do(func() { close(came) })
		<-free
	}
	w.destination()
	w.onCall.Store(&block)
	release = sync.OnceFunc(func() {
		w.onCall.Store(nil)
		close(free)
	})
	w.t.Cleanup(release) // a destination that waits is never closed
	return came, release
}

// held triggers a sync, whose run is then held at its first call to the destination.
func (w *world) held(id int64) (run int64, release func()) {
	w.t.Helper()
	reached, release := w.hold()
	run = w.trigger(id)
	<-reached
	return run, release
}

// records are all that the simulated destination has of an object, or those after an id.
func (w *world) records(object string, after ...int64) ([]destsim.StoredRecord, int) {
	w.t.Helper()
	list, total, err := w.sim.Records(object, append(after, 0)[0], 10_000)
	require.NoError(w.t, err)
	return list, total
}

// sourceFile is a SQLite file with the table customers, made when first needed.
func (w *world) sourceFile() string {
	if w.source != "" {
		return w.source
	}
	w.source = filepath.Join(w.t.(interface{ TempDir() string }).TempDir(), "shop.db")
	conn := must(sqlite.OpenConn(w.source))(w.t)
	defer conn.Close()
	require.NoError(w.t, sqlitex.ExecuteScript(conn, `
		CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT, name TEXT, age INTEGER, paid NUMERIC, signed_up TIMESTAMP);
		INSERT INTO customers VALUES (1, 'ada@example.com', 'Ada', 36, 12.5, '2026-01-02T03:04:05Z');`, nil))
	return w.source
}

// answer is one reply of the service.
type answer struct {
	t      testing.TB
	code   int
	header http.Header
	text   []byte
}

// do calls the API; path is relative to the base path, body is JSON text, any
// value to marshal, or nil. A reply that breaks the document fails the test.
func (w *world) do(method, path, token string, body any) *answer {
	w.t.Helper()
	return w.send(request(method, api.BasePath+path, token, bodyOf(w.t, body)))
}

// bodyOf is the text of a body: of JSON text, of any value to marshal, or of nil.
func bodyOf(t testing.TB, body any) []byte {
	t.Helper()
	switch v := body.(type) {
	case nil:
		return nil
	case string:
		return []byte(v)
	case []byte:
		return v
	default:
		return must(json.Marshal(v))(t)
	}
}

// local is where the control API is called, from this machine.
const local = "http://127.0.0.1/_control"

// request is one with a body of JSON, if there is any, and a token, if there is any.
func request(method, target, token string, body []byte) *http.Request {
	r := httptest.NewRequest(method, target, bytes.NewReader(body))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if strings.HasPrefix(target, "http://127.0.0.1") {
		r.RemoteAddr = "127.0.0.1:4711"
	}
	return r
}

// serve has a service answer any request.
func serve(s http.Handler, r *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, r)
	return recorder
}

// send serves any request.
func (w *world) send(r *http.Request) *answer {
	w.t.Helper()
	recorder := serve(w.s, r)
	a := &answer{t: w.t, code: recorder.Code, header: recorder.Header(), text: recorder.Body.Bytes()}
	if op := operationOf(w.s, r); op != nil {
		require.NoError(w.t, op.CheckResponse(a.code, a.header, a.text), "%s %s\n%s", r.Method, r.URL, a.text)
		w.mu.Lock()
		if w.seen[op.ID] == nil {
			w.seen[op.ID] = map[int]bool{}
		}
		w.seen[op.ID][a.code] = true
		w.mu.Unlock()
	}
	return a
}

// operationOf finds the operation that a request means, without the mux.
func operationOf(s *Server, r *http.Request) *openapi.Operation {
	path, below := strings.CutPrefix(r.URL.EscapedPath(), api.BasePath)
	if !below || strings.Contains(path, "//") || strings.Contains(path, "/./") || strings.Contains(path, "/../") {
		return nil
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var best *openapi.Operation
	for _, op := range openapi.Operations() {
		pattern := strings.Split(strings.Trim(op.Path, "/"), "/")
		if op.Method != r.Method || len(pattern) != len(parts) {
			continue
		}
		fits := true
		for i := range pattern {
			if !strings.HasPrefix(pattern[i], "{") && pattern[i] != parts[i] {
				fits = false
			}
		}
		// As a mux chooses: the pattern that leaves less open.
		if fits && (best == nil || strings.Count(op.Path, "{") < strings.Count(best.Path, "{")) {
			best = op
		}
	}
	return best
}

// control calls /_control.
func (w *world) control(method, path string, body any) *answer {
	w.t.Helper()
	r := request(method, local+path, "", nil)
	if text := bodyOf(w.t, body); text != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	return w.send(r)
}

// want demands a status and gives the answer back.
func (a *answer) want(code int) *answer {
	a.t.Helper()
	require.Equal(a.t, code, a.code, string(a.text))
	return a
}

// at walks into the JSON of the answer: keys and indices, as "data.objects.0.label".
func (a *answer) at(path string) any {
	a.t.Helper()
	var v any
	decoder := json.NewDecoder(bytes.NewReader(a.text))
	decoder.UseNumber()
	require.NoError(a.t, decoder.Decode(&v), string(a.text))
	for _, step := range strings.Split(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[step]
			require.True(a.t, ok, "no %q of %q in %s", step, path, a.text)
			v = next
		case []any:
			var i int
			must(fmt.Sscan(step, &i))(a.t)
			require.Less(a.t, i, len(in), "%q in %s", path, a.text)
			v = in[i]
		default:
			require.Fail(a.t, "no such place", "%q in %s", path, a.text)
		}
	}
	return v
}

// is demands values: each after its path, an int for any number.
func (a *answer) is(pathsAndValues ...any) {
	a.t.Helper()
	for i := 0; i < len(pathsAndValues); i += 2 {
		path, want := pathsAndValues[i].(string), pathsAndValues[i+1]
		if n, number := want.(int); number {
			require.EqualValues(a.t, n, a.id(path), path)
		} else {
			require.Equal(a.t, want, a.at(path), path)
		}
	}
}

// id is an integer at a path.
func (a *answer) id(path string) int64 {
	a.t.Helper()
	n := must(a.at(path).(json.Number).Int64())(a.t)
	return n
}

// objects are those in a list at a path.
func (a *answer) objects(path string) (list []map[string]any) {
	a.t.Helper()
	for _, one := range a.at(path).([]any) {
		list = append(list, one.(map[string]any))
	}
	return list
}

// ended demands the status of a run and gives the answer back.
func (a *answer) ended(status string) *answer {
	a.t.Helper()
	require.Equal(a.t, status, a.at("data.status"), string(a.text))
	return a
}

// has reports whether a key is there.
func (a *answer) has(path string) bool {
	a.t.Helper()
	above, key := "", path
	if i := strings.LastIndex(path, "."); i >= 0 {
		above, key = path[:i], path[i+1:]
	}
	var in map[string]any
	if above == "" {
		require.NoError(a.t, json.Unmarshal(a.text, &in))
	} else {
		in = a.at(above).(map[string]any)
	}
	_, ok := in[key]
	return ok
}

// The things that most tests need, made through the API.

func (w *world) newSource() int64 {
	w.t.Helper()
	return w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{
		"name": "Shop", "type": "sqlite", "credentials": map[string]any{"path": w.sourceFile()},
	}}).want(201).id("data.id")
}

func (w *world) newDestination() int64 {
	w.t.Helper()
	a := w.do("POST", "/destinations", w.key, customDestination(w.destination())).want(201)
	require.Equal(w.t, true, a.at("data.last_test_succeeded"), string(a.text))
	return a.id("data.id")
}

// sourceOf makes a source of a type.
func (w *world) sourceOf(typ string, credentials map[string]any) *answer {
	w.t.Helper()
	return w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Source " + typ, "type": typ, "credentials": credentials})).want(201)
}

// destinationOf makes a destination of a type.
func (w *world) destinationOf(typ string, credentials map[string]any) *answer {
	w.t.Helper()
	return w.do("POST", "/destinations", w.key, map[string]any{"service_connection": map[string]any{"name": "Destination " + typ, "type": typ, "credentials": credentials}}).want(201)
}

func customDestination(url string) map[string]any {
	return map[string]any{"service_connection": map[string]any{
		"name": "Endpoint", "type": "custom_api", "credentials": map[string]any{
			"api_version": 1, "webhook_url": url, "auth_token": "destination-token",
			"custom_headers": map[string]any{"X-Client": map[string]any{"value": "header-secret", "is_secret": true}},
		},
	}}
}

// column is the mapping of a column, with more members.
func column(name, to string, identifier bool, more ...map[string]any) map[string]any {
	m := map[string]any{"from": map[string]any{"type": "column", "data": name}, "to": to, "is_primary_identifier": identifier}
	for _, members := range more {
		maps.Copy(m, members)
	}
	return m
}

// syncBody is a valid sync of the table customers into the object person.
func syncBody(source, destination int64) map[string]any {
	return map[string]any{
		"label": "Customers", "operation": "upsert",
		"source_attributes": map[string]any{"connection_id": source, "object": map[string]any{
			"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "customers",
		}},
		"destination_attributes": map[string]any{"connection_id": destination, "object": "person"},
		"mappings":               []any{column("email", "email", true), column("name", "last_name", false)},
	}
}

func (w *world) newSync() int64 {
	w.t.Helper()
	return w.do("POST", "/syncs", w.key, syncBody(w.newSource(), w.newDestination())).want(200).id("data.sync_id")
}

func writeFile(path string, text []byte) error { return os.WriteFile(path, text, 0o600) }

// contentOf is what a file holds.
func contentOf(t testing.TB, file string) []byte { t.Helper(); return must(os.ReadFile(file))(t) }

// holds demands that all parts are in a text or in a list.
func holds[T any](t testing.TB, in any, parts ...T) {
	t.Helper()
	for _, part := range parts {
		require.Contains(t, in, part)
	}
}

// lacks demands that no part is in a text.
func lacks(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		require.NotContains(t, text, part)
	}
}

// must is the value of a call that may not fail: must(os.Stat(file))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return value
	}
}
