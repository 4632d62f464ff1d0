package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
)

// TestWatchIgnores: what destkit and running programs write starts no run.
func TestWatchIgnores(t *testing.T) {
	own := filepath.Join(t.TempDir(), "r.json")
	w := &Files{own: []string{own}, names: map[string]bool{}, Changed: make(chan struct{}, 1)}
	for _, name := range []string{
		own, filepath.Join(filepath.Dir(own), ".r.json.0f.tmp"), "destkit-journal-20260102-030405-1-2.ndjson", "app/.git", "node_modules",
		"data.db-wal", "server.log", "a.js~", "__pycache__",
	} {
		require.True(t, w.ignored(name), name)
	}
	for _, name := range []string{"server.js", "server.json", "destkit.yaml", "app/model.py", "../r.json"} {
		require.False(t, w.ignored(name), name)
	}
	w.note(fsnotify.Event{Name: "server.js", Op: fsnotify.Chmod})
	require.Empty(t, w.names)
	w.note(fsnotify.Event{Name: "./server.js", Op: fsnotify.Write})
	require.Equal(t, []string{"server.js"}, w.Settle(t.Context()))
	require.Empty(t, w.Settle(t.Context()), "a change is taken once")
}

// A file that the endpoint writes after each run starts three runs and no more; one
// that its owner saves later does.
func TestWatchEchoesEnd(t *testing.T) {
	var e Echoes
	soon, later := time.Second, time.Minute
	for range EchoRuns {
		starting, found := e.Filter([]string{"state.json"}, soon)
		require.Equal(t, []string{"state.json"}, starting)
		require.Empty(t, found)
	}
	starting, found := e.Filter([]string{"a.js", "state.json"}, soon)
	require.Equal(t, []string{"a.js"}, starting)
	require.Equal(t, []string{"state.json"}, found)
	starting, found = e.Filter([]string{"state.json"}, soon)
	require.Empty(t, starting)
	require.Empty(t, found, "said once")
	starting, _ = e.Filter([]string{"state.json"}, later)
	require.Equal(t, []string{"state.json"}, starting)
}

// A file that each run writes starts one more; what is saved during that one starts
// another, and files with new names do not go on for ever.
func TestWatchDuringRunsEnds(t *testing.T) {
	var d DuringRuns
	require.Equal(t, []string{"state.json"}, d.Fresh([]string{"state.json"}))
	require.Equal(t, []string{"server.js"}, d.Fresh([]string{"server.js", "state.json"}))
	require.Empty(t, d.Fresh([]string{"state.json"}))

	d = DuringRuns{}
	for _, name := range []string{"1.json", "2.json", "3.json"} {
		require.Equal(t, []string{name}, d.Fresh([]string{name}))
	}
	require.Empty(t, d.Fresh([]string{"4.json"}))
}

// TestWatchedFolders: a folder that is made later is watched, one of dependencies is not.
func TestWatchedFolders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "node_modules", "a"), 0o700))
	w, err := Folders([]string{dir}, nil)
	require.NoError(t, err)
	defer w.Close()
	require.Equal(t, []string{dir}, w.watcher.WatchList())
	made := filepath.Join(dir, "made")
	require.NoError(t, os.Mkdir(made, 0o700))
	<-w.Changed
	require.ElementsMatch(t, []string{dir, made}, w.watcher.WatchList())
}
