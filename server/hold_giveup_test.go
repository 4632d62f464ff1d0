package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// untilHeld waits until the runs are told to stop.
func (w *world) untilHeld() {
	for held := false; !held; runtime.Gosched() {
		held = w.s.engine.Held()
	}
}

// nothingHeld demands that calls and runs go through.
func (w *world) nothingHeld() {
	w.t.Helper()
	release, err := w.s.engine.Hold(w.t.Context())
	require.NoError(w.t, err)
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
			w := newSyncWorld(t, where)
			id := w.kept(nil).id("data.id")
			var before bytes.Buffer
			require.NoError(t, w.s.Snapshot(t.Context(), &before))
			came, release := w.hold()
			run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200).id("data.sync_run_id")
			<-came
			ctx, giveUp := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- w.s.Restore(ctx, bytes.NewReader(before.Bytes())) }()
			w.untilHeld()
			giveUp()
			require.ErrorIs(t, <-ended, context.Canceled)
			release()
			require.NoError(t, w.s.Settle(t.Context()))
			shown := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200)
			require.Equal(t, "completed", shown.at("data.status"), string(shown.text))
			w.nothingHeld()
		})
	}
}

// TestGivingUpAResetLeavesNoRunBehind: the same, with a reset that waits for the run.
func TestGivingUpAResetLeavesNoRunBehind(t *testing.T) {
	w := newSyncWorld(t)
	id := w.kept(nil).id("data.id")
	came, release := w.hold()
	run := w.trigger(id)
	<-came
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		r := httptest.NewRequest("POST", "http://127.0.0.1/_control/reset", nil).WithContext(ctx)
		r.RemoteAddr = "127.0.0.1:4711"
		ended <- w.send(r).code
	}()
	w.untilHeld()
	giveUp()
	require.GreaterOrEqual(t, <-ended, 400)
	release()
	require.NoError(t, w.s.Settle(t.Context()))
	require.Equal(t, "completed", w.status(run))
	w.nothingHeld()
}

// TestCancellingARunThatIsStopped: who was told that the run is cancelled finds it so,
// though it was told to stop before that and goes on otherwise.
func TestCancellingARunThatIsStopped(t *testing.T) {
	w := newSyncWorld(t)
	id := w.kept(nil).id("data.id")
	came, release := w.hold()
	run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200).id("data.sync_run_id")
	<-came
	held := make(chan func(), 1)
	go func() {
		unhold, err := w.s.engine.Hold(t.Context())
		require.NoError(t, err)
		held <- unhold
	}()
	w.untilHeld()
	path := fmt.Sprintf("/sync_runs/%d", run)
	w.do("POST", path+"/cancel", w.key, nil).want(200)
	release()
	(<-held)()
	require.NoError(t, w.s.Settle(t.Context()))
	shown := w.do("GET", path, w.key, nil).want(200)
	require.Equal(t, "failed", shown.at("data.status"), string(shown.text))
	require.Equal(t, true, shown.at("data.canceled"))
}
