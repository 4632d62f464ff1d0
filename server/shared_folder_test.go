package server

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/sources"
)

// TestFilesWithoutASharedFolder: what lies in files is refused where each process
// would find others, also when it was made where there was a folder.
func TestFilesWithoutASharedFolder(t *testing.T) {
	dir, key := t.TempDir(), make([]byte, masterKeySize)
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(file, []byte("id\n1\n"), 0o600))
	source := func(name string) map[string]any {
		return map[string]any{"connection": map[string]any{"name": name, "type": "csv", "credentials": map[string]any{"path": file}}}
	}
	files := map[string]any{"service_connection": map[string]any{"name": "Out", "type": "local_files", "credentials": map[string]any{}}}
	w := newWorld(t, func(c *Config) { c.Dir, c.MasterKey = dir, key })
	w.do("POST", "/sources", w.key, source("In")).want(http.StatusCreated)
	w.do("POST", "/destinations", w.key, files).want(http.StatusCreated)
	require.NoError(t, w.s.Close())

	var said sayings
	again, err := New(t.Context(), Config{Dir: dir, MasterKey: key, NoFiles: true, Log: slog.New(slog.NewTextHandler(&said, nil))})
	require.NoError(t, err)
	w.s = again
	a := w.do("POST", "/sources", w.key, source("Other")).want(http.StatusBadRequest)
	require.Contains(t, string(a.text), `"field":"connection.type"`)
	require.Contains(t, string(a.text), "the processes of this service share no folder: start all of them with the same data directory (--data)")
	a = w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{
		"name": "Snow", "type": "snowflake", "credentials": map[string]any{"account": "a", "username": "u", "password": "p", "warehouse": "w", "database": "d"},
	}}).want(http.StatusBadRequest)
	require.Contains(t, string(a.text), "share no folder")
	a = w.do("POST", "/destinations", w.key, files).want(http.StatusBadRequest)
	require.Contains(t, string(a.text), "share no folder")
	// What is there already fails where it is used, and says why.
	w.do("POST", "/sources/1/refresh_tables", w.key, nil).want(http.StatusOK)
	require.NoError(t, w.s.Settle(t.Context()))
	require.Contains(t, said.String(), sources.ErrNoFolder.Error())
	// Everything else is as it was.
	w.do("POST", "/sources", w.key, map[string]any{"connection": map[string]any{"name": "Rows", "type": "generator", "credentials": map[string]any{"rows": 5, "seed": 1}}}).want(http.StatusCreated)
}

// TestSeedOnce: the store remembers, and a seed that fails may be tried again.
func TestSeedOnce(t *testing.T) {
	w := newWorld(t)
	seed := []byte("organizations:\n  - name: Acme\n    workspaces: [{name: Main}]\n")
	_, err := w.s.SeedOnce(t.Context(), "bad.yaml", []byte("organizations: [{name: Acme, users: [{email: nobody}]}]"))
	require.Error(t, err)
	seeded, err := w.s.SeedOnce(t.Context(), "seed.yaml", seed)
	require.NoError(t, err)
	require.Len(t, seeded.Organizations, 1)
	seeded, err = w.s.SeedOnce(t.Context(), "seed.yaml", seed)
	require.NoError(t, err)
	require.Nil(t, seeded)
}
