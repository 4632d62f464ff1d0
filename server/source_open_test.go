package server

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sources"
)

// An emulated warehouse outlives the process beside the other data, and goes
// with its source.
func TestWarehouseFiles(t *testing.T) {
	w := newWorld(t, inDir(t))
	a := w.newEmulated("s3cret-of-the-warehouse")
	id := a.id("data.id")
	require.Equal(t, true, a.at("data.last_test_succeeded"), a.header.Get("Warning"))
	require.NotEmpty(t, w.objectNames(id))
	w.refresh(fmt.Sprintf("/sources/%d/refresh_tables", id), fmt.Sprintf("/sources/%d/refresh_tables_status", id))
	require.FileExists(t, w.s.sources.WarehouseFile(id))
	info, err := os.Stat(filepath.Dir(w.s.sources.WarehouseFile(id)))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	w.remove(fmt.Sprintf("/sources/%d", id), w.key)
	left, err := os.ReadDir(filepath.Dir(w.s.sources.WarehouseFile(id)))
	require.NoError(t, err)
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
		w.refresh(fmt.Sprintf("/sources/%d/refresh_tables", id), fmt.Sprintf("/sources/%d/refresh_tables_status", id))
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
	src, err := a.Open(t.Context())
	require.NoError(t, err)
	defer src.Close()
	require.NoError(t, source.Execute(t.Context(), src, sql))
}

// Of two updates from the same state at most one wins; the other is told.
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
