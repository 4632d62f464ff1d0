package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sources"
)

// connection is the body of POST and PATCH /sources.
func connection(fields map[string]any) map[string]any { return map[string]any{"connection": fields} }

// problems are the errors of an answer by their field.
func (a *answer) problems() map[string]string {
	a.t.Helper()
	found := map[string]string{}
	for _, entry := range a.objects("errors") {
		found[entry["field"].(string)] = entry["message"].(string)
	}
	return found
}

// changeSource runs statements on the SQLite file of newSource.
func (w *world) changeSource(script string) {
	w.t.Helper()
	conn := must(sqlite.OpenConn(w.sourceFile()))(w.t)
	defer conn.Close()
	require.NoError(w.t, sqlitex.ExecuteScript(conn, script, nil))
}

// stranger is the key of a workspace of another organization's making: the
// second workspace of the first one.
func (w *world) stranger() string {
	w.t.Helper()
	return w.do("POST", "/workspaces", w.pat, map[string]any{"name": "Elsewhere", "return_workspace_api_key": true}).
		want(201).at("data.api_key").(string)
}

// newSourced is a world with a source.
func newSourced(t testing.TB) (w *world, source int64) {
	w = newWorld(t)
	return w, w.newSource()
}

// newEmulated makes a source of an emulated warehouse.
func (w *world) newEmulated(password string) *answer {
	w.t.Helper()
	return w.sourceOf("snowflake", map[string]any{"account": "xy12345", "warehouse": "LOADING", "database": "SHOP", "user": "reader", "password": password})
}

// executes runs statements in an emulated warehouse, through the control API.
func (w *world) executes(source int64, sql string) {
	w.t.Helper()
	w.control("POST", fmt.Sprintf("/sources/%d/execute", source), map[string]any{"sql": sql}).want(200)
}

func (w *world) newTopicSource() int64 {
	w.t.Helper()
	return w.sourceOf("topic_log", map[string]any{}).id("data.id")
}

// The label is the older name: it works and is marked.
func TestSourceLabelIsDeprecated(t *testing.T) {
	w := newWorld(t)
	a := w.do("POST", "/sources", w.key, connection(map[string]any{"label": "Old", "type": "topic_log", "credentials": map[string]any{}})).want(201)
	require.Equal(t, "Old", a.at("data.name"))
	require.NotEmpty(t, a.header.Get("Deprecation"))
	path := fmt.Sprintf("/sources/%d", a.id("data.id"))
	a = w.do("PATCH", path, w.key, connection(map[string]any{"label": "Older"})).want(200)
	require.Equal(t, "Older", a.at("data.label"))
	require.NotEmpty(t, a.header.Get("Deprecation"))
	// A client that echoes the label it read changes the name all the same.
	a = w.do("PATCH", path, w.key, connection(map[string]any{"label": "Older", "name": "New"})).want(200)
	require.Equal(t, "New", a.at("data.label"))
}

func TestSourceProblems(t *testing.T) {
	proves(t, "F-4.1-15")
	w := newWorld(t)
	stream := func(fields map[string]any) map[string]any {
		whole := map[string]any{"name": "A", "type": "topic_log", "credentials": map[string]any{}}
		maps.Copy(whole, fields)
		maps.DeleteFunc(whole, func(_ string, value any) bool { return value == nil })
		return connection(whole)
	}
	credentials := func(typ string, values map[string]any) map[string]any {
		return stream(map[string]any{"type": typ, "credentials": values})
	}
	for name, c := range map[string]struct {
		body   any
		fields []string
	}{
		"nothing":            {map[string]any{}, []string{"connection"}},
		"no connection":      {map[string]any{"connection": nil}, []string{"connection"}},
		"no name":            {stream(map[string]any{"name": nil}), []string{"connection.name"}},
		"blank name":         {stream(map[string]any{"name": " \u2003 "}), []string{"connection.name"}},
		"control character":  {stream(map[string]any{"name": "a\u0000b"}), []string{"connection.name"}},
		"no type":            {stream(map[string]any{"type": nil}), []string{"connection.type"}},
		"unknown type":       {stream(map[string]any{"type": "oracle"}), []string{"connection.type"}},
		"unknown engine":     {stream(map[string]any{"sync_engine": "fast"}), []string{"connection.sync_engine"}},
		"engine of another":  {stream(map[string]any{"sync_engine": "advanced"}), []string{"connection.sync_engine"}},
		"no credentials":     {stream(map[string]any{"credentials": nil}), []string{"connection.credentials"}},
		"no credential":      {credentials("sqlite", map[string]any{}), []string{"connection.credentials.path"}},
		"null credential":    {credentials("sqlite", map[string]any{"path": nil}), []string{"connection.credentials.path"}},
		"unknown credential": {credentials("topic_log", map[string]any{"path": "x"}), []string{"connection.credentials.path"}},
		"writeback":          {stream(map[string]any{"warehouse_writeback_retention_in_days": 7}), []string{"connection.warehouse_writeback_retention_in_days"}},
		"all together": {connection(map[string]any{
			"name": "\t", "type": "postgres", "sync_engine": "basic", "warehouse_writeback_retention_in_days": 1,
			"credentials": map[string]any{"host": 7, "port": "x", "extra": true},
		}), []string{
			"connection.name", "connection.credentials.host", "connection.credentials.port", "connection.credentials.extra",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.do("POST", "/sources", w.key, c.body).want(400).problems()
			for _, field := range c.fields {
				require.NotEmpty(t, got[field], "no problem of %s in %v", field, got)
			}
		})
	}
	require.EqualValues(t, 0, w.do("GET", "/sources", w.key, nil).want(200).id("pagination.total_records"))
}

// A test that fails does not refuse the creation (spec 3): a source may be set
// up before its network is. A warning holds the reason.
func TestSourceTestFails(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(t.TempDir(), "missing.db")
	a := w.sourceOf("sqlite", map[string]any{"path": missing})
	require.Equal(t, false, a.at("data.last_test_succeeded"))
	require.Contains(t, a.header.Get("Warning"), "no such file")
	require.Contains(t, w.do("POST", "/syncs", w.key, syncBody(a.id("data.id"), w.newDestination())).want(400).at("message"), "its connection test failed")
	path := fmt.Sprintf("/sources/%d", a.id("data.id"))
	require.Empty(t, w.do("GET", path+"/objects", w.key, nil).want(200).at("data"))

	// An update tests again, and finds the tables.
	a = w.do("PATCH", path, w.key, connection(map[string]any{"credentials": map[string]any{"path": w.sourceFile()}})).want(200)
	a.is("data.last_test_succeeded", true, "data.name", "Source sqlite", "status", "updated")
	before := w.do("GET", path+"/objects", w.key, nil).want(200).at("data")
	require.Len(t, before, 1)

	// A source that stops answering keeps the tables that were known.
	require.NoError(t, os.Rename(w.sourceFile(), missing))
	a = w.do("PATCH", path, w.key, connection(map[string]any{})).want(200)
	require.Equal(t, false, a.at("data.last_test_succeeded"))
	require.Contains(t, a.header.Get("Warning"), "the connection test failed")
	require.Equal(t, before, w.do("GET", path+"/objects", w.key, nil).want(200).at("data"))
}

func TestSourceUpdateKeepsWhatIsLeftOut(t *testing.T) {
	w := newWorld(t)
	id := w.newEmulated("s3cret-of-the-warehouse").id("data.id")
	path := fmt.Sprintf("/sources/%d", id)
	a := w.do("PATCH", path, w.key, connection(map[string]any{"credentials": map[string]any{"warehouse": "OTHER"}})).want(200)
	a.is("data.connection_details.warehouse", "OTHER", "data.connection_details.account", "xy12345")
	require.Equal(t, true, a.at("data.last_test_succeeded"), "the password was kept")
	require.Equal(t, false, w.do("PATCH", path, w.key, connection(map[string]any{"credentials": map[string]any{"password": "wrong"}})).want(200).at("data.last_test_succeeded"))

	// What cannot change may be echoed, not changed.
	w.do("PATCH", path, w.key, connection(map[string]any{"type": "snowflake", "sync_engine": "basic"})).want(200)
	got := w.do("PATCH", path, w.key, connection(map[string]any{"type": "sqlite", "sync_engine": "advanced"})).want(400).problems()
	require.Contains(t, got["connection.type"], "cannot be changed")
	got = w.do("PATCH", path, w.key, connection(map[string]any{"sync_engine": "advanced"})).want(400).problems()
	require.Contains(t, got["connection.sync_engine"], "cannot be changed")
	got = w.do("PATCH", path, w.key, connection(map[string]any{"credentials": map[string]any{"password": nil}})).want(400).problems()
	require.NotEmpty(t, got["connection.credentials.password"])
}

// No reply shows a secret, neither of a good connection nor of a bad one.
func TestSourceSecrets(t *testing.T) {
	w := newWorld(t)
	const secret = "s3cret-of-the-warehouse"
	created := w.newEmulated(secret)
	path := fmt.Sprintf("/sources/%d", created.id("data.id"))
	require.False(t, created.has("data.connection_details.password"))
	for _, a := range []*answer{
		created,
		w.do("GET", path, w.key, nil),
		w.do("GET", "/sources", w.key, nil),
		w.do("PATCH", path, w.key, connection(map[string]any{"credentials": map[string]any{"account": secret + "!"}})),
		w.do("POST", "/sources", w.key, connection(map[string]any{"name": "P", "type": "postgres", "credentials": map[string]any{
			"host": "127.0.0.1", "port": 1, "database": "d", "username": "u", "password": secret, "sslmode": "disable",
		}})),
		w.do("POST", "/sources", w.key, connection(map[string]any{"name": "P", "type": "postgres", "credentials": map[string]any{"password": []string{secret}}})),
		w.do("POST", path+"/models", w.key, map[string]any{"name": "m", "query": "SELECT nothing FROM nowhere"}),
	} {
		require.NotContains(t, string(a.text), secret)
		require.NotContains(t, fmt.Sprint(a.header), secret)
	}
}

// An emulated warehouse outlives the process like the other data, and goes
// with its source.
func TestWarehouseFiles(t *testing.T) {
	w := newWorld(t, inDir(t))
	a := w.newEmulated("s3cret-of-the-warehouse")
	id := a.id("data.id")
	require.Equal(t, true, a.at("data.last_test_succeeded"), a.header.Get("Warning"))
	require.NotEmpty(t, w.objectNames(id))
	w.refreshTables(id)
	require.FileExists(t, w.s.sources.WarehouseFile(id))
	info := must(os.Stat(filepath.Dir(w.s.sources.WarehouseFile(id))))(t)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	w.remove(fmt.Sprintf("/sources/%d", id), w.key)
	left := must(os.ReadDir(filepath.Dir(w.s.sources.WarehouseFile(id))))(t)
	require.Empty(t, left)
}

// Two services of one process never share a warehouse in memory, and neither do
// two sources.
func TestWarehousesInMemory(t *testing.T) {
	first, second := newWorld(t), newWorld(t)
	id := first.newEmulated("s3cret").id("data.id")
	other := first.newEmulated("s3cret").id("data.id")
	require.Equal(t, id, second.newEmulated("s3cret").id("data.id"))
	execute(t, first, id, `CREATE TABLE ONLY_HERE (id INTEGER)`)
	tables := func(w *world, id int64) []string {
		w.refreshTables(id)
		var names []string
		for name := range w.objectNames(id) {
			names = append(names, name)
		}
		return names
	}
	require.Contains(t, tables(first, id), "ONLY_HERE")
	require.NotContains(t, tables(first, other), "ONLY_HERE")
	require.NotContains(t, tables(second, id), "ONLY_HERE")

	// What an earlier world left under an id is not the new source's.
	first.remove(fmt.Sprintf("/sources/%d", other), first.key)
	next := other + 1
	execute(t, first, next, `CREATE TABLE LEFT_OVER (id INTEGER)`)
	require.Equal(t, next, first.newEmulated("s3cret").id("data.id"))
	require.NotContains(t, tables(first, next), "LEFT_OVER")
}

// execute runs a statement on an emulated warehouse.
func execute(t *testing.T, w *world, id int64, sql string) {
	t.Helper()
	credentials := map[string]string{"account": "xy12345", "warehouse": "LOADING", "database": "SHOP", "user": "reader", "password": "s3cret"}
	a := sources.Access{Types: w.s.sources.Types(), ID: id, Type: "snowflake", Credentials: rawOf(credentials), Options: w.s.sources.Options(id)}
	src := must(a.Open(t.Context()))(t)
	defer src.Close()
	require.NoError(t, source.Execute(t.Context(), src, sql))
}

// Of two updates from the same state at most one wins; the other gets an error.
func TestSourceUpdatedAtOnce(t *testing.T) {
	proves(t, "F-7.1-10")
	w := newWorld(t)
	path := fmt.Sprintf("/sources/%d", w.newSource())
	var all sync.WaitGroup
	codes := make([]int, 8)
	for i := range codes {
		all.Go(func() {
			codes[i] = w.do("PATCH", path, w.key, connection(map[string]any{"name": fmt.Sprint("name ", i)})).code
		})
	}
	all.Wait()
	won := 0
	for _, code := range codes {
		if code == 200 {
			won++
			continue
		}
		require.Equal(t, 409, code)
	}
	require.Positive(t, won)
	require.Contains(t, w.do("GET", path, w.key, nil).want(200).at("data.name"), "name ")
}

// A message keeps its sense when a secret is cleaned out of it.
func TestClean(t *testing.T) {
	a := sources.Access{Types: source.BuiltIn(), Type: "postgres", Credentials: rawOf(map[string]string{"password": "hunter2!", "username": "u"})}
	require.Equal(t, "login with [secret] as u failed", a.Clean("login with hunter2! as u failed"))
	a.Credentials = rawOf(map[string]string{"password": "e"})
	require.Equal(t, "refused", a.Clean("refused"))
}

func rawOf(values map[string]string) map[string]json.RawMessage {
	raw := map[string]json.RawMessage{}
	for key, value := range values {
		raw[key] = api.Raw(value)
	}
	return raw
}
