package server

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// dataset is the body of POST /datasets.
func dataset(source int64, name, query string) map[string]any {
	return map[string]any{"name": name, "type": "sql", "source_id": source, "query": query}
}

// A new name leaves the identifier; the columns of a new query are read.
func TestDataset(t *testing.T) {
	w, id := newSourced(t)
	a := w.do("POST", "/datasets", w.key, dataset(id, "Grown-up Customers", "SELECT id, email, age FROM customers WHERE age > 17")).want(201)
	a.is("data.resource_identifier", "dataset:grown_up_customers", "data.columns.1.name", "email")
	path := fmt.Sprintf("/datasets/%d", a.id("data.id"))
	require.Equal(t, a.at("data"), w.do("GET", path, w.key, nil).want(200).at("data"))
	changed := w.do("PATCH", path, w.key, map[string]any{"name": "Everybody", "query": "SELECT email FROM customers", "description": nil}).want(200)
	require.Equal(t, "dataset:grown_up_customers", changed.at("data.resource_identifier"))
	require.Len(t, changed.at("data.columns"), 1)
	require.Equal(t, "Everybody", w.do("PATCH", path, w.key, map[string]any{"description": "all", "source_id": id, "type": "sql"}).want(200).at("data.name"))
}

func TestDatasetProblems(t *testing.T) {
	w := newWorld(t)
	shop, stream := w.newSource(), w.newTopicSource()
	good := w.do("POST", "/datasets", w.key, dataset(shop, "Good", "SELECT 1 AS one")).want(201).id("data.id")
	for name, c := range map[string]struct {
		body  map[string]any
		field string
	}{
		"no name":        {map[string]any{"type": "sql", "source_id": shop, "query": "SELECT 1 AS one"}, "name"},
		"blank name":     {dataset(shop, "  ", "SELECT 1 AS one"), "name"},
		"no query":       {map[string]any{"name": "A", "type": "sql", "source_id": shop}, "query"},
		"blank query":    {dataset(shop, "A", " \n"), "query"},
		"no source":      {map[string]any{"name": "A", "type": "sql", "query": "SELECT 1 AS one"}, "source_id"},
		"unknown source": {dataset(999, "A", "SELECT 1 AS one"), "source_id"},
		"no SQL there":   {dataset(stream, "A", "SELECT 1 AS one"), "source_id"},
		"another type":   {map[string]any{"name": "A", "type": "csv", "source_id": shop, "query": "SELECT 1 AS one"}, "type"},
		"unknown table":  {dataset(shop, "A", "SELECT * FROM nowhere"), "query"},
		"unknown column": {dataset(shop, "A", "SELECT nothing FROM customers"), "query"},
		"no SQL":         {dataset(shop, "A", "all customers, please"), "query"},
		"writes":         {dataset(shop, "A", "DELETE FROM customers"), "query"},
		"two statements": {dataset(shop, "A", "SELECT 1 AS one; SELECT 2 AS two"), "query"},
	} {
		t.Run(name, func(t *testing.T) {
			got := w.do("POST", "/datasets", w.key, c.body).want(400).problems()
			require.NotEmpty(t, got[c.field], "%v", got)
		})
	}
	got := w.do("POST", "/datasets", w.key, map[string]any{"name": " ", "type": "sql", "source_id": 999, "query": " "}).want(400).problems()
	require.Len(t, got, 3, "all problems together: %v", got)

	path := fmt.Sprintf("/datasets/%d", good)
	for field, body := range map[string]any{
		"source_id": map[string]any{"source_id": stream},
		"query":     map[string]any{"query": "SELECT * FROM nowhere"},
		"name":      map[string]any{"name": ""},
		"type":      map[string]any{"type": "csv"},
	} {
		require.NotEmpty(t, w.do("PATCH", path, w.key, body).want(400).problems()[field], field)
	}
	require.Contains(t, w.do("POST", "/datasets", w.key, dataset(shop, "A", "SELECT * FROM nowhere")).want(400).problems()["query"], "nowhere")
	w.do("GET", "/datasets?type=csv", w.key, nil).want(400)
	require.EqualValues(t, 1, w.do("GET", "/datasets?type=sql", w.key, nil).want(200).id("pagination.total_records"))
}

// TestDatasetNames: names that differ, with identifiers that would not.
func TestDatasetNames(t *testing.T) {
	w, id := newSourced(t)
	made := func(name string) any {
		return w.do("POST", "/datasets", w.key, dataset(id, name, "SELECT 1 AS one")).want(201).at("data.resource_identifier")
	}
	for name, slug := range map[string]string{"Customers": "customers", "  A  b ": "a_b", "a--b__d": "a_b_d", "Ünïted": "ünïted", "表": "表", "???": "dataset", "9 lives": "9_lives"} {
		require.Equal(t, "dataset:"+slug, made(name), name)
		require.NotEqual(t, "dataset:"+slug, made(name+"!"))
	}
}

// A query that cannot be checked is refused, and changes nothing.
func TestDatasetWithoutAnswer(t *testing.T) {
	w, id := newSourced(t)
	a := w.do("POST", "/datasets", w.key, dataset(id, "A", "SELECT email FROM customers")).want(201)
	require.NoError(t, os.Rename(w.sourceFile(), filepath.Join(t.TempDir(), "elsewhere.db")))
	path := fmt.Sprintf("/datasets/%d", a.id("data.id"))
	require.Contains(t, w.do("PATCH", path, w.key, map[string]any{"query": "SELECT 2 AS two"}).want(400).problems()["query"], "cannot be checked")
	require.Equal(t, a.at("data"), w.do("GET", path, w.key, nil).want(200).at("data"))
	w.do("PATCH", path, w.key, map[string]any{"description": "needs no source"}).want(200)
}

// The number of records is measured where that is cheap, in every dialect of
// SQL, and does not stumble over the end of a query.
func TestDatasetRecordCount(t *testing.T) {
	w := newWorld(t)
	shop, warehouse := w.newSource(), w.newEmulated("s3cret").id("data.id")
	w.changeSource(`INSERT INTO customers (id, email) VALUES (2, 'b@example.com'), (3, 'c@example.com')`)
	for query, count := range map[string]int64{
		"SELECT * FROM customers":                              3,
		"SELECT * FROM customers;\n":                           3,
		"SELECT * FROM customers -- all of them":               3,
		"SELECT * FROM customers WHERE id > 7":                 0,
		"WITH c AS (SELECT id FROM customers) SELECT * FROM c": 3,
	} {
		a := w.do("POST", "/datasets", w.key, dataset(shop, query, query)).want(201)
		require.Equal(t, count, a.id("data.cached_record_count"), query)
	}
	a := w.do("POST", "/datasets", w.key, dataset(warehouse, "Users", "SELECT * FROM USERS")).want(201)
	require.Positive(t, a.id("data.cached_record_count"))
	require.NotEmpty(t, a.at("data.columns"))
}

// A model is a dataset under its older name (spec 4.1.9): both change together, from
// either side. Its name is its own, and it belongs to its source alone.
func TestModel(t *testing.T) {
	w := newWorld(t)
	models := fmt.Sprintf("/sources/%d/models", w.newSource())
	body := map[string]any{"name": "Grown up", "query": "SELECT id, email FROM customers WHERE age > 17", "description": "of age"}
	a := w.do("POST", models, w.key, body).want(201)
	model, behind := fmt.Sprintf("%s/%d", models, a.id("data.id")), fmt.Sprintf("/datasets/%d", a.id("data.dataset_id"))
	require.NotEqual(t, a.at("data.dataset_id"), w.do("POST", models, w.key, body).want(201).at("data.dataset_id"))
	changed := w.do("PATCH", model, w.key, map[string]any{"query": "SELECT email FROM customers", "description": nil}).want(200)
	require.Len(t, changed.at("data.columns"), 1)
	require.Nil(t, changed.at("data.description"))
	require.Len(t, w.do("GET", behind, w.key, nil).want(200).at("data.columns"), 1)
	w.do("PATCH", behind, w.key, map[string]any{"name": "Everybody", "query": "SELECT id, name, age FROM customers"}).want(200)
	changed = w.do("GET", model, w.key, nil).want(200)
	require.Equal(t, "Everybody", changed.at("data.name"))
	require.Len(t, changed.at("data.columns"), 3)
	other := fmt.Sprintf("/sources/%d/models/%d", w.newSource(), a.id("data.id"))
	for method, body := range map[string]any{"GET": nil, "PATCH": map[string]any{"name": "B"}, "DELETE": nil} {
		w.do(method, other, w.key, body).want(404)
	}
	w.remove(model, w.key)
	w.do("GET", behind, w.key, nil).want(404)
	again := w.do("POST", models, w.key, map[string]any{"name": "Again", "query": "SELECT 1 AS one"}).want(201)
	w.remove(fmt.Sprintf("/datasets/%d", again.id("data.dataset_id")), w.key)
	w.do("GET", fmt.Sprintf("%s/%d", models, again.id("data.id")), w.key, nil).want(404)
}

// TestModelsChangeTogether: updates that come at once follow one another; none is
// lost and none is a conflict, which the document does not know here.
func TestModelsChangeTogether(t *testing.T) {
	w := newWorld(t)
	models := fmt.Sprintf("/sources/%d/models", w.newSource())
	path := fmt.Sprintf("%s/%d", models, w.do("POST", models, w.key, map[string]any{"name": "Old", "query": "SELECT 1 AS one"}).want(201).id("data.id"))
	codes := make([]int, 20)
	var wait sync.WaitGroup
	for i := range codes {
		body := []map[string]any{{"name": "New"}, {"description": "told"}, {"query": "SELECT 2 AS two"}}[i%3]
		wait.Go(func() {
			codes[i] = serve(w.s, request("PATCH", api.BasePath+path, w.key, api.Raw(body))).Code
		})
	}
	wait.Wait()
	require.Equal(t, slices.Repeat([]int{200}, len(codes)), codes)
	m := w.do("GET", path, w.key, nil).want(200)
	require.Equal(t, []any{"New", "told", "SELECT 2 AS two"}, []any{m.at("data.name"), m.at("data.description"), m.at("data.query")})
}

// TestSourceOfAModelStays: a source that only a model uses cannot be deleted.
func TestSourceOfAModelStays(t *testing.T) {
	w := newWorld(t)
	path := fmt.Sprintf("/sources/%d", w.newSource())
	model := w.do("POST", path+"/models", w.key, map[string]any{"name": "M", "query": "SELECT 1 AS one"}).want(201).id("data.id")
	w.do("DELETE", path, w.key, nil).want(409)
	w.do("DELETE", fmt.Sprintf("%s/models/%d", path, model), w.key, nil).want(200)
	w.remove(path, w.key)
}
