package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sources"
)

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
