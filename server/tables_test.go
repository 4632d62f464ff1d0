package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
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
	second.is("data.0", a.at("data.2"), "pagination.total_records", 3)
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

// shape resolves a source object of the first workspace.
func (w *world) shape(source int64, object api.SourceObject) (sources.Shape, []api.Problem) {
	w.t.Helper()
	found, problems, err := w.s.sources.Shape(w.t.Context(), w.s.FirstTokens().WorkspaceID, api.SourceAttributes{ConnectionID: source, Object: object})
	require.NoError(w.t, err)
	return found, problems
}

func tableObject(catalog, schema, name string) api.SourceObject {
	return api.SourceObject{Type: api.ObjectTable, TableCatalog: &catalog, TableSchema: &schema, TableName: &name}
}

func columnNames(columns []api.Column) []string {
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}

func TestShapeOfTable(t *testing.T) {
	proves(t, "F-2.8-02")
	w, id := newSourced(t)
	found, problems := w.shape(id, tableObject("main", "main", "customers"))
	require.Empty(t, problems)
	require.Equal(t, []string{"id", "email", "name", "age", "paid", "signed_up"}, columnNames(found.Columns))
	require.Equal(t, api.KindInteger, found.Columns[0].Kind, "kinds are kept")
	require.True(t, found.ColumnsKnown)
	require.False(t, found.Streaming)
	require.Equal(t, tableObject("main", "main", "customers"), found.Object, "spec 2.8: these four keys")
	require.Nil(t, found.DatasetID)

	table := w.objectNames(id)["customers"]
	byID, problems := w.shape(id, api.SourceObject{Type: api.ObjectTable, ID: &table})
	require.Empty(t, problems)
	require.Equal(t, found.Object, byID.Object)
}

// A table that is younger than the last refresh is found all the same; one that
// was dropped is not.
func TestShapeOfNewTable(t *testing.T) {
	w, id := newSourced(t)
	w.changeSource(`CREATE TABLE orders (id INTEGER PRIMARY KEY)`)
	found, problems := w.shape(id, tableObject("main", "main", "orders"))
	require.Empty(t, problems)
	require.Equal(t, []string{"id"}, columnNames(found.Columns))
	require.Contains(t, w.objectNames(id), "orders")

	require.NoError(t, os.Rename(w.sourceFile(), filepath.Join(t.TempDir(), "elsewhere.db")))
	_, problems = w.shape(id, tableObject("main", "main", "nothing"))
	require.Len(t, problems, 1)
	_, problems = w.shape(id, tableObject("main", "main", "orders"))
	require.Empty(t, problems)
}

func TestShapeOfQueries(t *testing.T) {
	proves(t, "F-2.8-01", "F-2.8-07")
	w, id := newSourced(t)
	d := w.do("POST", "/datasets", w.key, dataset(id, "People", "SELECT id, email FROM customers")).want(201)
	dataset := d.id("data.id")
	found, problems := w.shape(id, api.SourceObject{Type: api.ObjectDataset, ID: &dataset})
	require.Empty(t, problems)
	require.Equal(t, []string{"id", "email"}, columnNames(found.Columns))
	require.Equal(t, &dataset, found.DatasetID)
	text := must(json.Marshal(found.Object))(t)
	require.JSONEq(t, fmt.Sprintf(`{"type":"dataset","id":%d,"name":"People","query":"SELECT id, email FROM customers","created_at":%q,"updated_at":%q}`,
		dataset, d.at("data.created_at"), d.at("data.updated_at")), string(text))

	m := w.do("POST", fmt.Sprintf("/sources/%d/models", id), w.key, map[string]any{"name": "Model", "query": "SELECT name FROM customers"}).want(201)
	model, name := m.id("data.id"), "Model"
	for _, object := range []api.SourceObject{{ID: &model}, {Name: &name}, {ID: &model, Name: api.Ptr("renamed since")}} {
		object.Type = api.ObjectModel
		found, problems := w.shape(id, object)
		require.Empty(t, problems)
		require.Equal(t, []string{"name"}, columnNames(found.Columns))
		require.Equal(t, m.id("data.dataset_id"), *found.DatasetID)
		require.Equal(t, model, *found.Object.ID)
		require.Equal(t, "Model", *found.Object.Name)
	}
}

func TestShapeOfTopic(t *testing.T) {
	proves(t, "F-2.8-07")
	w := newWorld(t)
	id := w.newTopicSource()
	topic := w.do("POST", fmt.Sprintf("/sources/%d/topics", id), w.key, `{"name": "clicks", "sample_message": {"user": "a", "n": 1, "gone": null}}`).want(201).id("data.id")
	found, problems := w.shape(id, api.SourceObject{Type: api.ObjectTopic, ID: &topic})
	require.Empty(t, problems)
	require.True(t, found.Streaming)
	require.Equal(t, &topic, found.TopicID)
	require.Equal(t, []api.Column{
		{Name: "gone", Type: "null", Kind: api.KindAny},
		{Name: "n", Type: "number", Kind: api.KindDecimal},
		{Name: "user", Type: "string", Kind: api.KindString},
	}, found.Columns)
}

func TestShapeOfStreamingDatabase(t *testing.T) {
	w := newWorld(t)
	id := w.sourceOf("materialize", map[string]any{"host": "localhost", "port": 6875, "database": "materialize", "user": "reader", "password": "s3cret"}).id("data.id")
	table := w.do("GET", fmt.Sprintf("/sources/%d/objects?order=asc", id), w.key, nil).want(200).id("data.0.id")
	found, problems := w.shape(id, api.SourceObject{Type: api.ObjectTable, ID: &table})
	require.Empty(t, problems)
	require.True(t, found.StreamingDatabase)
	require.False(t, found.Streaming)
}

func TestShapeProblems(t *testing.T) {
	w := newWorld(t)
	first, second, stream := w.newSource(), w.newSource(), w.newTopicSource()
	foreign := w.do("POST", "/datasets", w.key, dataset(second, "Foreign", "SELECT 1 AS one")).want(201).id("data.id")
	missing := int64(999)
	for name, c := range map[string]struct {
		source int64
		object api.SourceObject
		fields []string
	}{
		"unknown source":            {999, tableObject("main", "main", "customers"), []string{"source_attributes.connection_id"}},
		"unknown type":              {first, api.SourceObject{Type: "cube"}, []string{"source_attributes.object.type"}},
		"unknown table":             {first, tableObject("main", "main", "nothing"), []string{"source_attributes.object.table_name"}},
		"another schema":            {first, tableObject("main", "public", "customers"), []string{"source_attributes.object.table_name"}},
		"table without its names":   {first, api.SourceObject{Type: api.ObjectTable}, []string{"source_attributes.object.table_catalog", "source_attributes.object.table_name", "source_attributes.object.table_schema"}},
		"unknown table id":          {first, api.SourceObject{Type: api.ObjectTable, ID: &missing}, []string{"source_attributes.object.id"}},
		"unknown dataset":           {first, api.SourceObject{Type: api.ObjectDataset, ID: &missing}, []string{"source_attributes.object.id"}},
		"dataset of another source": {first, api.SourceObject{Type: api.ObjectDataset, ID: &foreign}, []string{"source_attributes.object.id"}},
		"dataset without id":        {first, api.SourceObject{Type: api.ObjectDataset}, []string{"source_attributes.object.id"}},
		"unknown model":             {first, api.SourceObject{Type: api.ObjectModel, ID: &missing}, []string{"source_attributes.object.id"}},
		"unknown model name":        {first, api.SourceObject{Type: api.ObjectModel, Name: api.Ptr("nothing")}, []string{"source_attributes.object.name"}},
		"model without name":        {first, api.SourceObject{Type: api.ObjectModel}, []string{"source_attributes.object.id"}},
		"unknown topic":             {stream, api.SourceObject{Type: api.ObjectTopic, ID: &missing}, []string{"source_attributes.object.id"}},
		"topic without id":          {stream, api.SourceObject{Type: api.ObjectTopic}, []string{"source_attributes.object.id"}},
		"topic of a database":       {first, api.SourceObject{Type: api.ObjectTopic, ID: &missing}, []string{"source_attributes.object.id"}},
		"table of a topic log":      {stream, tableObject("main", "main", "customers"), []string{"source_attributes.object.table_name"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := w.shape(c.source, c.object)
			var fields []string
			for _, p := range problems {
				require.NotEmpty(t, p.Message)
				fields = append(fields, p.Field)
			}
			require.Equal(t, c.fields, fields)
		})
	}
	_, problems, err := w.s.sources.Shape(t.Context(), 999, api.SourceAttributes{ConnectionID: first, Object: tableObject("main", "main", "customers")})
	require.NoError(t, err)
	require.Len(t, problems, 1, "a source of another workspace is not there")
}

// Files of a folder are tables under their base names (issue: interfaces).
func TestShapeOfFiles(t *testing.T) {
	w := newWorld(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "people.v2.csv"), []byte("id,name\n1,Ada\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rows.jsonl"), []byte(`{"id":1,"tags":["a"]}`+"\n"), 0o600))
	for typ, file := range map[string]string{"csv": "people.v2", "jsonl": "rows"} {
		for _, path := range []string{folder, filepath.Join(folder, file+"."+typ)} {
			a := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Files", "type": typ, "credentials": map[string]any{"path": path}})).want(201)
			require.Equal(t, true, a.at("data.last_test_succeeded"), a.header.Get("Warning"))
			for _, name := range []string{file, file + "." + typ} {
				found, problems := w.shape(a.id("data.id"), tableObject("main", "main", name))
				require.Empty(t, problems)
				require.Equal(t, "id", found.Columns[0].Name)
				require.Equal(t, file, *found.Object.TableName, "replies show one name")
			}
			got := w.do("POST", fmt.Sprintf("/sources/%d/models", a.id("data.id")), w.key, map[string]any{"name": "m", "query": "SELECT 1"}).want(400)
			require.Contains(t, got.at("message"), typ)
		}
	}
}
