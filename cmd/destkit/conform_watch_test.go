package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/report"
)

// cmdWatches is `watches NAME ARG...`: it runs `destkit ARG...` until `stops NAME` or
// the end of the script. `sees` reads its output.
func cmdWatches(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: watches NAME ARG...")
	}
	cmd := program(ts, args[1:]...)
	cmd.Env = append(cmd.Env, "TMPDIR="+ts.Getenv("TMPDIR"))
	cmd.Stderr = ts.Stderr()
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	r := &running{cmd: cmd, out: bufio.NewReader(out)}
	ts.Defer(func() { _, _ = r.stop(os.Interrupt) })
	key := ts.Getenv("WORK") + " " + args[0] // scripts run in parallel
	simulators.Store(key, r)
	ts.Setenv(args[0], key)
}

// cmdSees is `sees NAME TEXT...`: it reads lines until each text has come, in that
// order, and prints them.
func cmdSees(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: sees NAME TEXT...")
	}
	r, ok := simulators.Load(ts.Getenv(args[0]))
	if !ok {
		ts.Fatalf("no program is called %s", args[0])
	}
	var seen strings.Builder
	for _, text := range args[1:] {
		// A program that never prints it is ended, so that its output ends too.
		late := time.AfterFunc(patience, func() { _ = r.(*running).cmd.Process.Kill() })
		for {
			line, err := r.(*running).out.ReadString('\n')
			_, _ = ts.Stdout().Write([]byte(line))
			seen.WriteString(line)
			if err != nil {
				ts.Fatalf("the output ended before %q: %v", text, err)
			}
			if strings.Contains(line, text) {
				break
			}
		}
		late.Stop()
	}
	checkOffers(ts, seen.String(), false)
}

// TestChangesOfARun: fixed and new checks by their ids.
func TestChangesOfARun(t *testing.T) {
	of := func(a, b conformance.Status) *conformance.Report {
		return &conformance.Report{Checks: []conformance.CheckResult{
			{ID: "RES-002", Status: a, Gating: true}, {ID: "SEM-005", Status: b, Gating: true}}}
	}
	first, second := of(conformance.Fail, conformance.Pass), of(conformance.Pass, conformance.Fail)
	require.Equal(t, []string{"fixed: RES-002; new: SEM-005"}, changeLines(report.Compare(first, second)))
	require.Equal(t, []string{"nothing changed since the run before"}, changeLines(report.Compare(first, first)))
	require.Equal(t, []string{"SEM-005"}, failedIn(second))
	require.Empty(t, brokenOf(second, []string{"RES-002"}))
}

// TestWatchIgnores: files of destkit and running programs start no run.
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

// A file that each run writes starts one more; a file saved during that one starts
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
