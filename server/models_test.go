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

// TestSourceOfAModelStays: a source that only a model uses cannot be deleted.
func TestSourceOfAModelStays(t *testing.T) {
	w := newWorld(t)
	path := fmt.Sprintf("/sources/%d", w.newSource())
	model := w.do("POST", path+"/models", w.key, map[string]any{"name": "M", "query": "SELECT 1 AS one"}).want(201).id("data.id")
	w.do("DELETE", path, w.key, nil).want(409)
	w.do("DELETE", fmt.Sprintf("%s/models/%d", path, model), w.key, nil).want(200)
	w.remove(path, w.key)
}
