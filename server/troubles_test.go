package server

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// lasting is a sync world whose data are in a directory.
func lasting(t *testing.T) (w *syncWorld, dir string) {
	w = newSyncWorld(t, inDir(t))
	return w, w.s.config.Dir
}

// TestAStoreThatTakesNothing: a run whose end cannot be written down, because the store is full
// or locked, is marked as working until it can, and no longer.
func TestAStoreThatTakesNothing(t *testing.T) {
	w, dir := lasting(t)
	id := w.kept(nil).id("data.id")
	files := must(filepath.Glob(filepath.Join(dir, "*.db")))(t)
	require.Len(t, files, 1)
	other := must(sqlite.OpenConn(files[0], sqlite.OpenReadWrite))(t)
	defer other.Close()
	require.NoError(t, sqlitex.ExecuteScript(other, `CREATE TRIGGER full BEFORE UPDATE ON sync_runs
		WHEN NEW.status = 'completed' BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`, nil))
	run := w.trigger(id)
	w.advance(10 * time.Minute)
	path := fmt.Sprintf("/sync_runs/%d", run)
	require.Equal(t, "working", w.do("GET", path, w.key, nil).want(200).at("data.status"))
	require.NoError(t, sqlitex.ExecuteScript(other, `DROP TRIGGER full`, nil))
	w.advance(2 * time.Minute)
	ended := w.do("GET", path, w.key, nil).want(200).ended("completed")
	require.EqualValues(t, 1, ended.id("data.records_updated"))
	require.Equal(t, "completed", w.runs(id).at("data.status"))
}

// TestALedgerThatTakesNothing: nothing is sent that could not be written down.
// The run fails with STATE_ERROR and is tried again.
func TestALedgerThatTakesNothing(t *testing.T) {
	w, dir := lasting(t)
	id := w.kept(nil).id("data.id")
	inTheWay := filepath.Join(dir, "ledger", fmt.Sprintf("sync-%d", id))
	require.NoError(t, os.WriteFile(inTheWay, nil, 0o600))
	failed := w.runs(id).ended("failed")
	require.Equal(t, "STATE_ERROR", failed.at("data.error_code"))
	require.NotContains(t, string(failed.text), dir, "no path of this machine")
	_, total := w.records("person")
	require.Zero(t, total)
	require.NoError(t, os.Remove(inTheWay))
	w.advance(2 * time.Minute)
	require.Equal(t, []string{"failed Manual", "completed Retry"}, w.history(id))
}

// TestADestinationThatComesBack within a run: it is waited for, and the run
// completes.
func TestADestinationThatComesBack(t *testing.T) {
	w := newSyncWorld(t)
	w.destination()
	id := w.kept(nil).id("data.id")
	require.Equal(t, "completed", w.runs(id).at("data.status"))
	w.changeSource(`UPDATE customers SET name = 'Later'`)
	address, handler := w.world.dest.Listener.Addr().String(), w.world.dest.Config.Handler
	w.world.dest.Close()
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	run := w.trigger(id)
	w.advance(8 * time.Second) // three of the waits: 1, 2 and 4 s
	path := fmt.Sprintf("/sync_runs/%d", run)
	require.Equal(t, "working", w.do("GET", path, w.key, nil).want(200).at("data.status"))
	listener := must(net.Listen("tcp", address))(t)
	back := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	back.Start()
	t.Cleanup(back.Close)
	w.advance(30 * time.Second)
	ended := w.do("GET", path, w.key, nil).want(200).ended("completed")
	require.EqualValues(t, 1, ended.id("data.records_updated"))
}

// TestOneProcessHasTheData: a second process on the same data refuses to start,
// so that two can never run the same sync; the syncs of the first go on.
func TestOneProcessHasTheData(t *testing.T) {
	w, dir := lasting(t)
	id := w.kept(nil).id("data.id")
	run, release := w.held(id)
	_, err := New(t.Context(), Config{Dir: dir, MasterKey: w.s.config.MasterKey})
	require.ErrorContains(t, err, "in use")
	release()
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, "completed", w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).at("data.status"))
}
