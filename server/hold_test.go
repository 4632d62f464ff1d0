package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/server/api"
)

// heldWorld is a world with a sync of 300 rows in batches of 10.
func heldWorld(t *testing.T, change ...func(*Config)) (w *syncWorld, id int64) {
	w = newSyncWorld(t, change...)
	w.changeSource(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO customers (id, email, name) SELECT i, 'user' || i || '@example.com', 'User' FROM n`)
	must(w.sim.ArmFault(destsim.Fault{
		Kind: "speed", Speeds: []rpc.Speed{{MaximumBatchSize: 10, MaximumParallelBatches: 2, MaximumRecordsPerSecond: 1_000_000}},
		When: destsim.Trigger{Method: rpc.MethodGetSyncSpeed},
	}))(t)
	return w, w.kept(nil).id("data.id")
}

// during runs fn during the destination's call number n, which goes on when the
// runs are being stopped, or fn is done.
func (w *syncWorld) during(n int, fn func()) (done <-chan struct{}) {
	over, calls := make(chan struct{}), make(chan int, 1)
	calls <- 0
	hook := func() {
		count := <-calls + 1
		calls <- count
		if count != n {
			return
		}
		go func() {
			defer close(over)
			fn()
		}()
		for held := false; !held; runtime.Gosched() {
			select {
			case <-over:
				return
			default:
			}
			held = w.s.engine.Held()
		}
	}
	w.onCall.Store(&hook)
	return over
}

func (w *syncWorld) batches() (n int) {
	w.t.Helper()
	for _, entry := range w.control("GET", "/journal/calls?limit=1000", nil).want(200).at("entries").([]any) {
		if entry.(map[string]any)["method"] == rpc.MethodSyncBatch {
			n++
		}
	}
	return n
}

// TestSnapshotDuringARun: the run goes on as if nothing had been, also while its call
// is on its way, and from there in the world that is restored.
func TestSnapshotDuringARun(t *testing.T) {
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			w, id := heldWorld(t, where)
			var snapshot []byte
			taken := w.during(12, func() { snapshot = w.control("GET", "/snapshot", nil).want(200).text })
			run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200).id("data.sync_run_id")
			<-taken
			w.control("POST", "/settle", nil).want(200)
			path := fmt.Sprintf("/sync_runs/%d", run)
			ended := w.do("GET", path, w.key, nil).want(200).ended("completed")
			require.EqualValues(t, 300, ended.id("data.records_updated"), "each record counts once")
			require.EqualValues(t, 300, ended.id("data.source_record_updates"))
			require.Equal(t, 30, w.batches(), "nothing is sent again")

			w.control("DELETE", "/journal/calls", nil).want(200)
			w.control("POST", "/restore", snapshot).want(200)
			w.control("POST", "/settle", nil).want(200)
			again := w.do("GET", path, w.key, nil).want(200).ended("completed")
			require.EqualValues(t, 300, again.id("data.records_updated"))
			require.Less(t, w.batches(), 30)
			require.Equal(t, [7]int64{300, 0, 0, 0, 0, 0, 0}, w.runs(id).counts())
		})
	}
}

// TestRestoreDuringARun: the run of the world before is gone, whatever it was
// about to write.
func TestRestoreDuringARun(t *testing.T) {
	w, id := heldWorld(t)
	before := w.control("GET", "/snapshot", nil).want(200).text
	restored := w.during(5, func() { w.control("POST", "/restore", before).want(200) })
	w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200)
	<-restored
	w.control("POST", "/settle", nil).want(200)
	require.Empty(t, w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).at("data"))
	require.Equal(t, [7]int64{300, 300, 0, 0, 300, 300, 0}, w.runs(id).counts())
}

// TestSnapshotDuringAnAdvance: neither waits for the other, and a restore ends
// the advance.
func TestSnapshotDuringAnAdvance(t *testing.T) {
	w, id := heldWorld(t)
	w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, w.body(scheduledAt(map[string]any{"frequency": "hourly"}))).want(200)
	var snapshot []byte
	taken := w.during(9, func() { snapshot = w.control("GET", "/snapshot", nil).want(200).text })
	w.control("POST", "/clock", `{"advance":"150m"}`).want(200)
	<-taken
	runs := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?order=asc", id), w.key, nil).want(200)
	require.GreaterOrEqual(t, len(runs.at("data").([]any)), 2)
	runs.is("data.0.records_updated", 300, "data.1.records_updated", 0)

	w.changeSource(`UPDATE customers SET name = 'Later'`)
	restored := w.during(3, func() { w.control("POST", "/restore", snapshot).want(200) })
	w.control("POST", "/clock", `{"advance":"2h"}`).want(http.StatusConflict)
	<-restored
	w.control("POST", "/settle", nil).want(200)
	runs = w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?order=asc", id), w.key, nil).want(200)
	require.Len(t, runs.at("data"), 1)
	require.Equal(t, "completed", runs.at("data.0.status"), string(runs.text))
}

// TestSnapshotAfterSettling waits for the end of runs first if requested.
func TestSnapshotAfterSettling(t *testing.T) {
	w, id := heldWorld(t)
	w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200)
	snapshot := w.control("GET", "/snapshot?settle=true", nil).want(200).text
	w.control("POST", "/restore", snapshot).want(200)
	require.Equal(t, "completed", w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).at("data.0.status"))
	w.control("GET", "/snapshot?settle=perhaps", nil).want(400)
	w.control("GET", "/snapshot?wait=true", nil).want(400)
}

// TestSnapshotDoesNotWaitForALatency: nor does a restore, after which the call
// that waited is refused.
func TestSnapshotDoesNotWaitForALatency(t *testing.T) {
	w := newWorld(t)
	arm := func() {
		w.control("POST", "/faults", map[string]any{"kind": "latency", "latency": "1m", "operation": "listWebhooks"}).want(201)
	}
	arm()
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	answered := make(chan int, 1)
	call := func() {
		answered <- serve(w.s, request("GET", api.BasePath+"/webhooks", w.key, nil).WithContext(ctx)).Code
	}
	go call()
	for struck := int64(0); struck == 0; runtime.Gosched() {
		struck = w.control("GET", "/faults", nil).want(200).id("faults.0.fired")
	}
	snapshot := w.control("GET", "/snapshot", nil).want(200).text
	require.Empty(t, answered, "the call still waits")
	w.control("POST", "/restore", snapshot).want(200)
	giveUp()
	require.Equal(t, http.StatusServiceUnavailable, <-answered)
}

// untilHeld waits until the runs are being stopped.
func (w *world) untilHeld() {
	for held := false; !held; runtime.Gosched() {
		held = w.s.engine.Held()
	}
}

// nothingHeld demands that calls and runs go through.
func (w *world) nothingHeld() {
	w.t.Helper()
	release := must(w.s.engine.Hold(w.t.Context()))(w.t)
	release()
	unlock, err := w.s.lock.Take(w.t.Context(), false)
	require.NoError(w.t, err, "a call holds the world")
	unlock()
}

// TestGivingUpARestoreLeavesNoRunBehind: the caller goes away while a run is on its
// way to its end. It goes on as if nothing had been.
func TestGivingUpARestoreLeavesNoRunBehind(t *testing.T) {
	for name, where := range map[string]func(*Config){"in memory": func(*Config) {}, "in a directory": inDir(t)} {
		t.Run(name, func(t *testing.T) {
			w, id := newKept(t, nil, where)
			before := w.saved()
			run, release := w.held(id)
			ctx, giveUp := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- w.s.Restore(ctx, bytes.NewReader(before)) }()
			w.untilHeld()
			giveUp()
			require.ErrorIs(t, <-ended, context.Canceled)
			release()
			require.NoError(t, w.s.Settle(t.Context()))
			w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).ended("completed")
			w.nothingHeld()
		})
	}
}

// TestGivingUpAResetLeavesNoRunBehind: the same, with a reset that waits for the run.
func TestGivingUpAResetLeavesNoRunBehind(t *testing.T) {
	w, id := newKept(t, nil)
	run, release := w.held(id)
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		ended <- w.send(request("POST", local+"/reset", "", nil).WithContext(ctx)).code
	}()
	w.untilHeld()
	giveUp()
	require.GreaterOrEqual(t, <-ended, 400)
	release()
	require.NoError(t, w.s.Settle(t.Context()))
	require.Equal(t, "completed", w.status(run))
	w.nothingHeld()
}

// TestCancellingARunThatIsStopped: a run stays cancelled once a client was notified of
// it, even if it was stopped before that and goes on otherwise.
func TestCancellingARunThatIsStopped(t *testing.T) {
	w, id := newKept(t, nil)
	run, release := w.held(id)
	held := make(chan func(), 1)
	go func() {
		unhold := must(w.s.engine.Hold(t.Context()))(t)
		held <- unhold
	}()
	w.untilHeld()
	path := fmt.Sprintf("/sync_runs/%d", run)
	w.do("POST", path+"/cancel", w.key, nil).want(200)
	release()
	(<-held)()
	require.NoError(t, w.s.Settle(t.Context()))
	shown := w.do("GET", path, w.key, nil).want(200).ended("failed")
	require.Equal(t, true, shown.at("data.canceled"))
}

// TestCancellingARunThatStandsStill: its end counts the records acknowledged before, and
// the next run sends the rest.
func TestCancellingARunThatStandsStill(t *testing.T) {
	w, id := heldWorld(t)
	var shown *answer
	over := w.during(12, func() {
		release := must(w.s.engine.Hold(t.Context()))(t)
		defer release()
		path := fmt.Sprintf("/sync_runs/%d", w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).id("data.0.id"))
		w.do("POST", path+"/cancel", w.key, nil).want(200)
		shown = w.do("GET", path, w.key, nil).want(200)
	})
	w.trigger(id)
	<-over
	require.NoError(t, w.s.Settle(t.Context()))
	require.Equal(t, "failed", shown.at("data.status"), string(shown.text))
	sent := shown.id("data.records_updated")
	require.True(t, 0 < sent && sent < 300, sent)
	require.NotContains(t, strings.Join(said(w.audits(id, map[string]any{"ledger_only": true})), "\n"), "counter")
	require.EqualValues(t, 300-sent, w.runs(id).id("data.records_updated"))
	require.Empty(t, said(w.audits(id, nil)))
}
