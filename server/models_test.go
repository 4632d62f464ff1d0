package server

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
)

// A model is a dataset under its older name (spec 2.11, 4.1.9).
func TestModel(t *testing.T) {
	proves(t, "F-2.11-01", "F-2.11-02", "F-2.11-03", "F-2.11-04", "F-2.11-05", "F-2.11-06", "F-2.11-07", "F-4-16", "F-4.1-14", "F-9-02")
	w := newWorld(t)
	id := w.newSource()
	models := fmt.Sprintf("/sources/%d/models", id)
	a := w.do("POST", models, w.key, map[string]any{"name": "Grown up", "query": "SELECT id, email FROM customers WHERE age > 17", "description": "of age"}).want(201)
	require.NotEmpty(t, a.header.Get("Deprecation"))
	require.Equal(t, "model", a.at("data.type"))
	require.Nil(t, a.at("data.compiled_query"))
	require.Equal(t, a.at("data.dataset_id"), a.at("data.dataset_id="))
	require.Equal(t, "email", a.at("data.columns.1.name"))
	require.NotEmpty(t, a.at("data.columns.1.type"))
	require.Equal(t, "of age", a.at("data.description"))
	require.Positive(t, a.id("data.source_object_id"))
	require.Equal(t, a.at("data.created_at"), a.at("data.updated_at"))
	require.Equal(t, "created", a.at("status"))
	model, behind := fmt.Sprintf("%s/%d", models, a.id("data.id")), fmt.Sprintf("/datasets/%d", a.id("data.dataset_id"))
	require.Equal(t, a.at("data"), w.do("GET", model, w.key, nil).want(200).at("data"))
	require.Equal(t, a.at("data"), w.do("GET", models, w.key, nil).want(200).at("data.0"))
	require.Equal(t, a.at("data.query"), w.do("GET", behind, w.key, nil).want(200).at("data.query"))

	// Both change together, from either side.
	changed := w.do("PATCH", model, w.key, map[string]any{"query": "SELECT email FROM customers", "description": nil}).want(200)
	require.Len(t, changed.at("data.columns"), 1)
	require.Nil(t, changed.at("data.description"))
	require.Equal(t, "Grown up", changed.at("data.name"))
	require.Len(t, w.do("GET", behind, w.key, nil).want(200).at("data.columns"), 1)
	w.do("PATCH", behind, w.key, map[string]any{"name": "Everybody", "query": "SELECT id, name, age FROM customers"}).want(200)
	changed = w.do("GET", model, w.key, nil).want(200)
	require.Equal(t, "Everybody", changed.at("data.name"))
	require.Equal(t, "SELECT id, name, age FROM customers", changed.at("data.query"))
	require.Len(t, changed.at("data.columns"), 3)

	w.remove(model, w.key)
	w.do("GET", behind, w.key, nil).want(404)
	a = w.do("POST", models, w.key, map[string]any{"name": "Again", "query": "SELECT 1 AS one"}).want(201)
	w.remove(fmt.Sprintf("/datasets/%d", a.id("data.dataset_id")), w.key)
	w.do("GET", fmt.Sprintf("%s/%d", models, a.id("data.id")), w.key, nil).want(404)
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
			r := httptest.NewRequest("PATCH", api.BasePath+path, bytes.NewReader(api.Raw(body)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+w.key)
			recorder := httptest.NewRecorder()
			w.s.ServeHTTP(recorder, r)
			codes[i] = recorder.Code
		})
	}
	wait.Wait()
	require.Equal(t, slices.Repeat([]int{200}, len(codes)), codes)
	m := w.do("GET", path, w.key, nil).want(200)
	require.Equal(t, []any{"New", "told", "SELECT 2 AS two"}, []any{m.at("data.name"), m.at("data.description"), m.at("data.query")})
}

func TestModelProblems(t *testing.T) {
	proves(t, "F-4-29")
	w := newWorld(t)
	shop, stream := w.newSource(), w.newTopicSource()
	models := fmt.Sprintf("/sources/%d/models", shop)
	for name, c := range map[string]struct {
		body  map[string]any
		field string
	}{
		"no name":       {map[string]any{"query": "SELECT 1 AS one"}, "name"},
		"no query":      {map[string]any{"name": "A"}, "query"},
		"blank query":   {map[string]any{"name": "A", "query": "\t"}, "query"},
		"unknown table": {map[string]any{"name": "A", "query": "SELECT * FROM nowhere"}, "query"},
		"writes":        {map[string]any{"name": "A", "query": "DROP TABLE customers"}, "query"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, w.do("POST", models, w.key, c.body).want(400).problems()[c.field])
		})
	}
	a := w.do("POST", fmt.Sprintf("/sources/%d/models", stream), w.key, map[string]any{"name": "A", "query": "SELECT 1"}).want(400)
	require.Contains(t, a.at("message"), "topic_log")
	require.Empty(t, w.do("GET", fmt.Sprintf("/sources/%d/models", stream), w.key, nil).want(200).at("data"))
	require.Empty(t, w.do("GET", "/datasets", w.key, nil).want(200).at("data"), "nothing is left of what was refused")
	w.do("GET", models+"/999", w.key, nil).want(404)
}

// A model belongs to its source, not to another one of the workspace.
func TestModelOfAnotherSource(t *testing.T) {
	w := newWorld(t)
	first, second := w.newSource(), w.newSource()
	id := w.do("POST", fmt.Sprintf("/sources/%d/models", first), w.key, map[string]any{"name": "A", "query": "SELECT 1 AS one"}).want(201).id("data.id")
	path := fmt.Sprintf("/sources/%d/models/%d", second, id)
	w.do("GET", path, w.key, nil).want(404)
	w.do("PATCH", path, w.key, map[string]any{"name": "B"}).want(404)
	w.do("DELETE", path, w.key, nil).want(404)
}

// The name of a model is its own: another model, or a dataset, may have it too.
func TestModelNames(t *testing.T) {
	w := newWorld(t)
	id := w.newSource()
	body := map[string]any{"name": "Same", "query": "SELECT 1 AS one"}
	first := w.do("POST", fmt.Sprintf("/sources/%d/models", id), w.key, body).want(201)
	second := w.do("POST", fmt.Sprintf("/sources/%d/models", id), w.key, body).want(201)
	require.NotEqual(t, first.at("data.dataset_id"), second.at("data.dataset_id"))
}
