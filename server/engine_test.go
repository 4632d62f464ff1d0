package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// runs triggers a sync, waits until everything is quiet, and gives its run. What the
// dry run before it said must come true.
func (w *world) runs(id int64) *answer {
	w.t.Helper()
	dry := w.control("POST", fmt.Sprintf("/syncs/%d/plan", id), `{"limit":2}`)
	ended := w.oneRun(id)
	w.foreseen(dry, ended)
	return ended
}

// oneRun is runs without a dry run.
func (w *world) oneRun(id int64) *answer {
	w.t.Helper()
	run := w.trigger(id)
	w.control("POST", "/settle", nil).want(http.StatusOK)
	return w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(http.StatusOK)
}

// counts are the counters of a run in the order of spec 2.9: source records,
// updates, deletes, invalids, then processed, updated, failed.
func (a *answer) counts() [7]int64 {
	a.t.Helper()
	var out [7]int64
	for i, name := range []string{
		"source_record_count", "source_record_updates", "source_record_deletes", "source_record_invalids",
		"records_processed", "records_updated", "records_failed",
	} {
		out[i] = a.id("data." + name)
	}
	return out
}

// TestFollowersComeWithTheEnd: the end of a run and the runs that follow from it are
// one change, so that a process that is lost in between loses none.
func TestFollowersComeWithTheEnd(t *testing.T) {
	w := newSyncWorld(t)
	parent := w.kept(nil).id("data.id")
	child := w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": parent}}}}).id("data.id")
	ended := w.runs(parent)
	require.NoError(t, w.s.Settle(t.Context()))
	require.NoError(t, w.s.store.View(t.Context(), func(tx *store.Tx) error {
		run, err := store.SyncRuns.Any(tx, ended.id("data.id"))
		require.NoError(t, err)
		next, err := tx.LastRun(child)
		require.NoError(t, err)
		require.Equal(t, run.UpdatedAt, next.CreatedAt)
		return nil
	}))
}

// TestSnapshotKeepsTheBooks: a restored world knows what was sent, and a sync
// that is deleted leaves nothing.
func TestSnapshotKeepsTheBooks(t *testing.T) {
	w := newSyncWorld(t)
	id := w.kept(nil).id("data.id")
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"))
	snapshot := w.control("GET", "/snapshot", nil).want(200).text
	w.changeSource(`UPDATE customers SET name = 'Later'`)
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"))
	w.control("POST", "/restore", snapshot).want(200)
	require.Len(t, w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).at("data"), 1)
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"), "the change came after the snapshot")
	require.EqualValues(t, 0, w.runs(id).id("data.records_updated"))
	has, err := w.s.live.Booked(id)
	require.NoError(t, err)
	require.True(t, has)
	w.remove(fmt.Sprintf("/syncs/%d", id), w.key)
	has, err = w.s.live.Booked(id)
	require.NoError(t, err)
	require.False(t, has)
}

// TestRunGoesOnAfterAStop: a service that stops in the middle of a run finishes
// it after its next start.
func TestRunGoesOnAfterAStop(t *testing.T) {
	w := newWorld(t, inDir(t), func(c *Config) { c.CallTimeout = time.Minute })
	id := w.newSync()
	reached, release := w.hold()
	run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200).id("data.sync_run_id")
	<-reached
	go func() {
		<-w.s.background.Ctx.Done()
		release()
	}()
	w.again(nil)
	w.control("POST", "/settle", nil).want(200)
	ended := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200)
	require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
	require.EqualValues(t, 1, ended.id("data.records_updated"))
}

// TestRunsAreTold: the life of a real run reaches a webhook in its order, signed,
// and a failed run reaches the mailbox (spec 6).
func TestRunsAreTold(t *testing.T) {
	w := newSyncWorld(t)
	id := w.kept(nil).id("data.id")
	w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://127.0.0.1:1/hook"}).want(201)
	w.runs(id)
	told := w.control("GET", "/webhook_deliveries", nil).want(200)
	var events []string
	for _, delivery := range told.at("deliveries").([]any) {
		events = append(events, delivery.(map[string]any)["event"].(string))
	}
	require.ElementsMatch(t, []string{"sync.triggered", "sync.started", "sync.completed", "sync.success"}, events)
	w.changeSource("DROP TABLE customers")
	failed := w.runs(id)
	require.Equal(t, "failed", failed.at("data.status"))
	require.Contains(t, string(w.control("GET", "/mailbox", nil).want(200).text), "owner@example.com")
}

// TestResetEndsRuns: a reset waits neither for a destination that hangs, nor for time that
// stands still, nor for what is at work elsewhere.
func TestResetEndsRuns(t *testing.T) {
	w := newSyncWorld(t, func(c *Config) { c.grace = time.Millisecond })
	id := w.kept(nil).id("data.id")
	reached, release := w.hold()
	defer release()
	w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200)
	<-reached
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	done := w.s.clock.Busy("something that is at work")
	w.control("POST", "/reset", nil).want(200)
	done()
	w.control("POST", "/settle", nil).want(200)
	require.Empty(t, w.do("GET", "/syncs", w.key, nil).want(200).at("data"))
	w.nothingHeld()
}

// TestEndIsRecordedOnce: the end of a run may be committed without an answer, and is
// then recorded again: what follows from it follows once.
func TestEndIsRecordedOnce(t *testing.T) {
	w := newSyncWorld(t)
	parent := w.kept(nil).id("data.id")
	child := w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": parent}}}}).id("data.id")
	run := w.runs(parent).id("data.id")
	require.NoError(t, w.s.Settle(t.Context()))
	runs := func() int64 {
		return w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", child), w.key, nil).want(200).id("pagination.total_records")
	}
	require.EqualValues(t, 1, runs())
	var y *store.Sync
	var ended *store.SyncRun
	require.NoError(t, w.s.store.View(t.Context(), func(tx *store.Tx) (err error) {
		if ended, err = store.SyncRuns.Any(tx, run); err == nil {
			y, err = store.Syncs.Read(tx, ended.WorkspaceID, parent)
		}
		return err
	}))
	progress := w.s.engine.Progress(t.Context(), ended)
	require.NoError(t, w.s.engine.Finish(t.Context(), y, ended, executor.Outcome{Status: api.RunCompleted}, progress))
	require.NoError(t, w.s.Settle(t.Context()))
	require.EqualValues(t, 1, runs())
	require.Equal(t, "completed", w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).at("data.status"))
}
