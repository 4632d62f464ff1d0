package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/source"
)

// connection is the body of POST and PATCH /sources.
func connection(fields map[string]any) map[string]any { return map[string]any{"connection": fields} }

// problems are the errors of an answer by their field.
func (a *answer) problems() map[string]string {
	a.t.Helper()
	found := map[string]string{}
	for _, p := range a.at("errors").([]any) {
		entry := p.(map[string]any)
		found[entry["field"].(string)] = entry["message"].(string)
	}
	return found
}

// changeSource runs statements on the SQLite file of newSource.
func (w *world) changeSource(script string) {
	w.t.Helper()
	conn, err := sqlite.OpenConn(w.sourceFile())
	require.NoError(w.t, err)
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

// newEmulated makes a source of an emulated warehouse.
func (w *world) newEmulated(password string) *answer {
	w.t.Helper()
	return w.do("POST", "/sources", w.key, connection(map[string]any{
		"name": "Warehouse", "type": "snowflake", "credentials": map[string]any{
			"account": "xy12345", "warehouse": "LOADING", "database": "SHOP", "user": "reader", "password": password,
		},
	})).want(201)
}

func (w *world) newTopicSource() int64 {
	w.t.Helper()
	return w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Stream", "type": "topic_log", "credentials": map[string]any{}})).want(201).id("data.id")
}

// Each type shows what a client needs to make a source of it (spec 2.10).
func TestSourceTypeShape(t *testing.T) {
	proves(t, "F-2.10-01", "F-2.10-02", "F-2.10-03", "F-2.10-04", "F-2.10-05", "F-2.10-06", "F-2.10-07", "F-2.10-08",
		"F-2.10-09", "F-2.10-10", "F-2.10-11", "F-2.10-12", "F-2.10-13", "F-2.10-14", "F-2.10-15", "F-2.10-17")
	w := newWorld(t)
	a := w.do("GET", "/source_types?per_page=100", w.key, nil).want(200)
	writeback := map[any]bool{}
	for _, entry := range a.at("data").([]any) {
		typ := entry.(map[string]any)
		require.NotEmpty(t, typ["documentation_slug"])
		require.NotEmpty(t, typ["label"])
		require.Contains(t, typ["supported_sync_engines"], "basic")
		require.Equal(t, true, typ["creatable_via_api"])
		require.Equal(t, true, typ["creatable_via_connect_link"])
		writeback[typ["supports_warehouse_writeback"]] = true
		// The service_name is the type of a request, and the ids of the fields
		// are the keys of its credentials: without them all required ones miss.
		missing := map[string]string{}
		if b := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "A", "type": typ["service_name"], "credentials": map[string]any{}})); b.code == 400 {
			missing = b.problems()
		}
		for _, entry := range typ["configuration_fields"].(map[string]any)["fields"].([]any) {
			sourceTypeField(t, entry.(map[string]any), missing)
		}
	}
	require.Len(t, writeback, 2, "some types support writeback, some do not")
	texts := string(a.text)
	for _, part := range []string{`"is_password_type_field":true`, `"possible_values":["`, `"placholder":"/`} {
		require.True(t, strings.Contains(texts, part), part)
	}
}

// sourceTypeField checks one configuration field; missing are the problems of
// a source without any credential.
func sourceTypeField(t *testing.T, field map[string]any, missing map[string]string) {
	t.Helper()
	id := field["id"].(string)
	problem := missing["connection.credentials."+id]
	if field["rules"] == "required" {
		require.NotEmpty(t, problem, id)
	} else if problem != "" { // one of several ways to log in is needed, and it says which there are
		require.Contains(t, problem, " or ", id)
	}
	for _, key := range []string{"label", "type", "hint", "input_type", "placholder"} {
		require.IsType(t, "", field[key], key)
	}
	require.NotEmpty(t, field["label"])
	require.NotEmpty(t, field["type"])
	require.NotEmpty(t, field["input_type"])
	_, err := regexp.Compile(field["matches"].(string))
	require.NoError(t, err)
	require.Equal(t, slices.Contains([]string{"password", "service_account_key", "private_key_pkcs8", "access_token"}, id), field["is_password_type_field"], id)
	if more := field["read_more"].(string); more != "" {
		parsed, err := url.Parse(more)
		require.NoError(t, err)
		require.Equal(t, "https", parsed.Scheme)
	}
}

func TestSourceTypes(t *testing.T) {
	proves(t, "F-4-15", "F-2.10-16")
	for dialect, rules := range map[Dialect]any{DialectSpec: "required", DialectLive: []any{"required"}} {
		w := newWorld(t, func(c *Config) { c.Dialect = dialect })
		a := w.do("GET", "/source_types?order=asc", w.key, nil).want(200)
		require.Len(t, a.at("data"), len(source.BuiltIn().Types()))
		require.Equal(t, "sqlite", a.at("data.0.service_name"))
		require.Equal(t, rules, a.at("data.0.configuration_fields.fields.0.rules"))
		require.Equal(t, "path", a.at("data.0.configuration_fields.fields.0.id"))
		addresses := 0
		for _, kind := range a.at("data").([]any) {
			for _, field := range kind.(map[string]any)["configuration_fields"].(map[string]any)["fields"].([]any) {
				if more := field.(map[string]any)["read_more"].(string); more != "" {
					parsed, err := url.Parse(more)
					require.NoError(t, err)
					require.Equal(t, "https", parsed.Scheme)
					addresses++
				}
			}
		}
		require.NotZero(t, addresses)
		page := w.do("GET", "/source_types?per_page=3&page=2&order=asc", w.key, nil).want(200)
		require.Equal(t, a.at("data.3"), page.at("data.0"))
		require.Empty(t, w.do("GET", "/source_types?page=10000", w.key, nil).want(200).at("data"))
		require.Empty(t, w.do("GET", "/source_types?page=9000000000000000000&per_page=100", w.key, nil).want(200).at("data"))
	}
}

func TestSourceCreated(t *testing.T) {
	proves(t, "F-4-32")
	w := newWorld(t)
	a := w.do("POST", "/sources", w.key, connection(map[string]any{
		"name": "  Läden 🏪 ", "type": "sqlite", "credentials": map[string]any{"path": w.sourceFile()},
	})).want(201)
	require.Equal(t, "created", a.at("status"))
	require.Equal(t, "Läden 🏪", a.at("data.name"))
	require.Equal(t, "Läden 🏪", a.at("data.label"))
	require.Equal(t, "basic", a.at("data.sync_engine"))
	require.Equal(t, true, a.at("data.last_test_succeeded"))
	require.NotNil(t, a.at("data.last_tested_at"))
	require.Equal(t, true, a.at("data.read_only_connection"))
	require.Equal(t, w.sourceFile(), a.at("data.connection_details.path"))
	require.Nil(t, a.at("data.warehouse_writeback_retention_in_days"))
	require.Empty(t, a.header.Get("Deprecation"))
	require.Equal(t, a.at("data"), w.do("GET", fmt.Sprintf("/sources/%d", a.id("data.id")), w.key, nil).want(200).at("data"))
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
	cases := map[string]struct {
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
	}
	for name, c := range cases {
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
// up before its network is. A warning says what was wrong.
func TestSourceTestFails(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(t.TempDir(), "missing.db")
	a := w.do("POST", "/sources", w.key, connection(map[string]any{
		"name": "Later", "type": "sqlite", "credentials": map[string]any{"path": missing},
	})).want(201)
	require.Equal(t, false, a.at("data.last_test_succeeded"))
	require.Contains(t, a.header.Get("Warning"), "no such file")
	path := fmt.Sprintf("/sources/%d", a.id("data.id"))
	require.Empty(t, w.do("GET", path+"/objects", w.key, nil).want(200).at("data"))

	// An update tests again, and finds the tables.
	a = w.do("PATCH", path, w.key, connection(map[string]any{"credentials": map[string]any{"path": w.sourceFile()}})).want(200)
	require.Equal(t, true, a.at("data.last_test_succeeded"))
	require.Equal(t, "Later", a.at("data.name"))
	require.Equal(t, "updated", a.at("status"))
	before := w.do("GET", path+"/objects", w.key, nil).want(200).at("data")
	require.Len(t, before, 1)

	// A source that stops answering keeps the tables that were known.
	require.NoError(t, os.Rename(w.sourceFile(), missing))
	a = w.do("PATCH", path, w.key, connection(map[string]any{})).want(200)
	require.Equal(t, false, a.at("data.last_test_succeeded"))
	require.Equal(t, before, w.do("GET", path+"/objects", w.key, nil).want(200).at("data"))
}

func TestSourceUpdateKeepsWhatIsLeftOut(t *testing.T) {
	w := newWorld(t)
	id := w.newEmulated("s3cret-of-the-warehouse").id("data.id")
	path := fmt.Sprintf("/sources/%d", id)
	a := w.do("PATCH", path, w.key, connection(map[string]any{"credentials": map[string]any{"warehouse": "OTHER"}})).want(200)
	require.Equal(t, "OTHER", a.at("data.connection_details.warehouse"))
	require.Equal(t, "xy12345", a.at("data.connection_details.account"))
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

func TestSourceOfAnotherWorkspace(t *testing.T) {
	proves(t, "F-5.1-08", "F-7.1-08")
	w := newWorld(t)
	id, stranger := w.newSource(), w.stranger()
	table := w.do("GET", fmt.Sprintf("/sources/%d/objects", id), w.key, nil).want(200).id("data.0.id")
	for _, at := range []struct{ method, path string }{
		{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"GET", "/objects"}, {"POST", "/refresh_tables"}, {"GET", "/refresh_tables_status?refresh_key=1"},
		{"GET", "/tables/%d"}, {"POST", "/tables/%d/refresh_columns"}, {"GET", "/tables/%d/refresh_columns_status?refresh_key=1"},
		{"GET", "/models"}, {"POST", "/models"}, {"GET", "/topics"}, {"POST", "/topics"},
	} {
		path := fmt.Sprintf("/sources/%d", id) + strings.ReplaceAll(at.path, "%d", fmt.Sprint(table))
		var body any
		switch {
		case at.method == "PATCH":
			body = connection(map[string]any{"name": "Mine"})
		case strings.HasSuffix(at.path, "models"):
			body = map[string]any{"name": "m", "query": "SELECT 1"}
		case strings.HasSuffix(at.path, "topics"):
			body = map[string]any{"name": "t", "sample_message": map[string]any{"a": 1}}
		}
		w.do(at.method, path, stranger, body).want(404)
	}
	require.Empty(t, w.do("GET", "/sources", stranger, nil).want(200).at("data"))
	require.Equal(t, "Shop", w.do("GET", fmt.Sprintf("/sources/%d", id), w.key, nil).want(200).at("data.name"))
}

func TestSourceInUse(t *testing.T) {
	proves(t, "F-7.1-10")
	w := newWorld(t)
	id := w.newSource()
	path := fmt.Sprintf("/sources/%d", id)
	dataset := w.do("POST", "/datasets", w.key, map[string]any{"name": "D", "type": "sql", "source_id": id, "query": "SELECT 1 AS one"}).want(201).id("data.id")
	w.do("DELETE", path, w.key, nil).want(409)
	w.do("DELETE", fmt.Sprintf("/datasets/%d", dataset), w.key, nil).want(200)
	model := w.do("POST", path+"/models", w.key, map[string]any{"name": "M", "query": "SELECT 1 AS one"}).want(201).id("data.id")
	w.do("DELETE", path, w.key, nil).want(409)
	w.do("DELETE", fmt.Sprintf("%s/models/%d", path, model), w.key, nil).want(200)
	w.remove(path, w.key)
}

// The pages of a list join up (spec 8).
func TestSourceList(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for i := range 5 {
		a := w.do("POST", "/sources", w.key, connection(map[string]any{"name": fmt.Sprint(i), "type": "topic_log", "credentials": map[string]any{}})).want(201)
		ids = append(ids, fmt.Sprint(a.at("data.id").(json.Number)))
	}
	var seen []string
	for page := 1; page <= 3; page++ {
		a := w.do("GET", fmt.Sprintf("/sources?order=asc&per_page=2&page=%d", page), w.key, nil).want(200)
		for _, entry := range a.at("data").([]any) {
			seen = append(seen, fmt.Sprint(entry.(map[string]any)["id"]))
		}
	}
	require.Equal(t, ids, seen)
	require.Equal(t, "4", w.do("GET", "/sources", w.key, nil).want(200).at("data.0.name"), "newest first")
}

// TestASourceThatCannotBeOpened: a sync over it says that, and where the reason is.
func TestASourceThatCannotBeOpened(t *testing.T) {
	w := newWorld(t)
	made := w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "Gone", "type": "csv", "credentials": map[string]any{"path": "/nowhere/rows.csv"}}}).want(http.StatusCreated)
	require.Contains(t, made.header.Get("Warning"), "the connection test failed")
	body := syncBody(made.id("data.id"), w.newDestination())
	refused := w.do("POST", "/syncs", w.key, body).want(http.StatusBadRequest)
	require.Contains(t, string(refused.text), "its connection test failed")
	again := w.do("PATCH", fmt.Sprintf("/sources/%d", made.id("data.id")), w.key, map[string]any{"connection": map[string]any{}}).want(http.StatusOK)
	require.Contains(t, again.header.Get("Warning"), "the connection test failed")
}
