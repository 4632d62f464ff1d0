package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/sources"
	"github.com/destkit/destkit/server/internal/store"
)

// objectNames are the names of the tables and models of a source, oldest first.
func (w *world) objectNames(source int64) map[string]int64 {
	w.t.Helper()
	found := map[string]int64{}
	a := w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc&per_page=100", source), w.key, nil).want(200)
	for i, object := range a.objects("data") {
		name, ok := object["table_name"].(string)
		if !ok {
			name = object["name"].(string)
		}
		found[name] = a.id(fmt.Sprintf("data.%d.id", i))
	}
	return found
}

// Ids stay while tables come, change and go; one that comes back has its own.
func TestRefreshTables(t *testing.T) {
	w, id := newSourced(t)
	path := fmt.Sprintf("/sources/%d", id)
	customers := w.objectNames(id)["customers"]

	w.changeSource(`CREATE TABLE orders (id INTEGER PRIMARY KEY, total NUMERIC); ALTER TABLE customers ADD COLUMN city TEXT;`)
	require.Len(t, w.objectNames(id), 1, "nothing is known before a refresh")
	w.refreshTables(id)
	names := w.objectNames(id)
	require.Len(t, names, 2)
	require.Equal(t, customers, names["customers"])
	require.Len(t, w.do("GET", fmt.Sprintf("%s/tables/%d", path, customers), w.key, nil).want(200).at("data.columns"), 7)

	w.changeSource(`DROP TABLE customers`)
	w.refreshTables(id)
	require.NotContains(t, w.objectNames(id), "customers")
	w.do("GET", fmt.Sprintf("%s/tables/%d", path, customers), w.key, nil).want(404)

	w.changeSource(`CREATE TABLE customers (id INTEGER)`)
	w.refreshTables(id)
	require.Equal(t, customers, w.objectNames(id)["customers"])
	require.Equal(t, names["orders"], w.objectNames(id)["orders"])
}

func TestRefreshColumns(t *testing.T) {
	w, id := newSourced(t)
	table := fmt.Sprintf("/sources/%d/tables/%d", id, w.objectNames(id)["customers"])
	w.changeSource(`ALTER TABLE customers ADD COLUMN city TEXT; CREATE TABLE orders (id INTEGER)`)
	w.refresh(table+"/refresh_columns", table+"/refresh_columns_status")
	require.Equal(t, "city", w.do("GET", table, w.key, nil).want(200).at("data.columns.6.name"))
	require.Len(t, w.objectNames(id), 1, "only this table was asked for")

	w.changeSource(`DROP TABLE customers`)
	w.do("POST", table+"/refresh_columns", w.key, nil).want(200)
	w.control("POST", "/settle", nil).want(200)
	w.do("GET", table, w.key, nil).want(404)
}

func TestRefreshThatFails(t *testing.T) {
	w, id := newSourced(t)
	path := fmt.Sprintf("/sources/%d", id)
	require.NoError(t, os.Rename(w.sourceFile(), filepath.Join(t.TempDir(), "elsewhere.db")))
	key := w.do("POST", path+"/refresh_tables", w.key, nil).want(200).id("refresh_key")
	w.control("POST", "/settle", nil).want(200)
	status := fmt.Sprintf("%s/refresh_tables_status?refresh_key=%d", path, key)
	require.Equal(t, "failed", w.do("GET", status, w.key, nil).want(200).at("status"))
	require.Contains(t, w.objectNames(id), "customers", "a source that does not answer loses no table")

	// A key belongs to what it was made for.
	table := fmt.Sprintf("%s/tables/%d/refresh_columns_status?refresh_key=%d", path, w.objectNames(id)["customers"], key)
	w.do("GET", table, w.key, nil).want(404)
	other := fmt.Sprintf("/sources/%d/refresh_tables_status?refresh_key=%d", w.newTopicSource(), key)
	w.do("GET", other, w.key, nil).want(404)
	w.do("GET", path+"/refresh_tables_status?refresh_key=12345", w.key, nil).want(404)
	w.do("GET", path+"/refresh_tables_status?refresh_key=soon", w.key, nil).want(400)
}

func TestSourceObjects(t *testing.T) {
	w, id := newSourced(t)
	w.changeSource(`CREATE TABLE orders (id INTEGER)`)
	w.refreshTables(id)
	list := fmt.Sprintf("/sources/%d/objects", id)
	tables := w.do("GET", list, w.key, nil).want(200).at("data")
	require.Equal(t, tables.([]any)[1], w.do("GET", list+"?per_page=1&page=2", w.key, nil).want(200).at("data.0"))
	w.control("POST", "/clock", map[string]any{"advance": "1h"}).want(200)
	model := w.do("POST", fmt.Sprintf("/sources/%d/models", id), w.key, map[string]any{"name": "grown up", "query": "SELECT * FROM customers WHERE age > 17"}).want(201)
	a := w.do("GET", list, w.key, nil).want(200)
	require.Len(t, a.at("data"), 3)
	require.Equal(t, "model", a.at("data.0.type"), "newest first")
	require.Equal(t, tables, a.at("data").([]any)[1:], "tables come in the same order beside models")
	require.Equal(t, model.id("data.id"), a.id("data.0.id"))
	require.Equal(t, model.at("data.query"), a.at("data.0.query"))
	second := w.do("GET", list+"?per_page=2&page=2", w.key, nil).want(200)
	require.Equal(t, a.at("data.2"), second.at("data.0"))
	require.EqualValues(t, 3, second.id("pagination.total_records"))
	require.Equal(t, "customers", w.do("GET", list+"?order=asc", w.key, nil).want(200).at("data.0.table_name"))
}

// What an older connection led to is not written over what the newer one did.
func TestRediscoverOfAnOlderConnection(t *testing.T) {
	w, id := newSourced(t)
	access := func() (a sources.Access) {
		require.NoError(t, w.s.store.View(t.Context(), func(tx *store.Tx) error {
			src := must(store.Sources.Read(tx, w.s.FirstTokens().WorkspaceID, id))(t)
			a = must(w.s.sources.Access(tx, src))(t)
			return nil
		}))
		return a
	}
	older := access()
	w.do("PATCH", fmt.Sprintf("/sources/%d", id), w.key, connection(map[string]any{"name": "Newer"})).want(200)
	w.changeSource(`CREATE TABLE orders (id INTEGER)`)
	require.NoError(t, w.s.sources.Rediscover(t.Context(), older))
	require.NotContains(t, w.objectNames(id), "orders")
	newer := access()
	require.NoError(t, w.s.sources.Rediscover(t.Context(), newer))
	require.Contains(t, w.objectNames(id), "orders")
	w.remove(fmt.Sprintf("/sources/%d", id), w.key)
	require.ErrorIs(t, w.s.sources.Rediscover(t.Context(), newer), store.ErrNotFound)
}

func FuzzSchemaOf(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":null,"b":[{}],"c":{"d":"\u0000"}}`, `{}`, `null`, `[]`, `{"":0}`, ` { "a" : true } `, `{"a":-0.0e+1}`} {
		f.Add([]byte(seed))
	}
	names := map[string]bool{"string": true, "number": true, "boolean": true, "object": true, "array": true, "null": true}
	f.Fuzz(func(t *testing.T, message []byte) {
		schema, err := rest.SchemaOf(message)
		var fields map[string]json.RawMessage
		if json.Unmarshal(message, &fields) != nil || len(fields) == 0 {
			require.Error(t, err)
			return
		}
		if err != nil {
			return
		}
		require.Len(t, schema, len(fields))
		for name, kind := range schema {
			require.True(t, names[kind], kind)
			require.Equal(t, kind == "string", strings.HasPrefix(strings.TrimSpace(string(fields[name])), `"`))
		}
	})
}

// TestTopicsBelongToOneSource: a name is free in another source, and a database has none.
func TestTopicsBelongToOneSource(t *testing.T) {
	w := newWorld(t)
	body := `{"name": "t", "sample_message": {"a": 1}}`
	for range 2 {
		w.do("POST", fmt.Sprintf("/sources/%d/topics", w.newTopicSource()), w.key, body).want(201)
	}
	refused := w.do("POST", fmt.Sprintf("/sources/%d/topics", w.newSource()), w.key, body).want(400)
	require.Contains(t, refused.at("message"), "topic_log")
}
