package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// runs triggers a sync, waits until everything is quiet, and returns its run. The
// prediction of the dry run before it must be right.
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
	w, parent := newKept(t, nil)
	child := w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": parent}}}}).id("data.id")
	ended := w.runs(parent)
	require.NoError(t, w.s.Settle(t.Context()))
	run := w.keptRun(ended.id("data.id"))
	w.view(func(tx *store.Tx) error {
		require.Equal(t, run.UpdatedAt, must(tx.LastRun(child))(t).CreatedAt)
		return nil
	})
}

// TestSnapshotKeepsTheBooks: a restored world knows the sent records, and a
// sync that is deleted leaves nothing.
func TestSnapshotKeepsTheBooks(t *testing.T) {
	w, id := newKept(t, nil)
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"))
	snapshot := w.control("GET", "/snapshot", nil).want(200).text
	w.changeSource(`UPDATE customers SET name = 'Later'`)
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"))
	w.control("POST", "/restore", snapshot).want(200)
	require.Len(t, w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200).at("data"), 1)
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"), "the change came after the snapshot")
	require.EqualValues(t, 0, w.runs(id).id("data.records_updated"))
	has := must(w.s.live.Booked(id))(t)
	require.True(t, has)
	w.remove(fmt.Sprintf("/syncs/%d", id), w.key)
	has = must(w.s.live.Booked(id))(t)
	require.False(t, has)
}

// TestRunGoesOnAfterAStop: a service that stops in the middle of a run finishes
// it after its next start.
func TestRunGoesOnAfterAStop(t *testing.T) {
	w := newWorld(t, inDir(t), func(c *Config) { c.CallTimeout = time.Minute })
	id := w.newSync()
	run, release := w.held(id)
	go func() {
		<-w.s.background.Ctx.Done()
		release()
	}()
	w.again(nil)
	w.control("POST", "/settle", nil).want(200)
	ended := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).ended("completed")
	require.EqualValues(t, 1, ended.id("data.records_updated"))
}

// TestRunsAreTold: the life of a real run reaches a webhook in its order, signed,
// and a failed run reaches the mailbox (spec 6).
func TestRunsAreTold(t *testing.T) {
	w, id := newKept(t, nil)
	w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": "https://127.0.0.1:1/hook"}).want(201)
	w.runs(id)
	told := w.control("GET", "/webhook_deliveries", nil).want(200)
	var events []string
	for _, delivery := range told.at("deliveries").([]any) {
		events = append(events, delivery.(map[string]any)["event"].(string))
	}
	require.ElementsMatch(t, []string{"sync.triggered", "sync.started", "sync.completed", "sync.success"}, events)
	w.changeSource("DROP TABLE customers")
	w.runs(id).ended("failed")
	require.Contains(t, string(w.control("GET", "/mailbox", nil).want(200).text), "owner@example.com")
}

// TestResetEndsRuns: a reset waits neither for a destination that hangs, nor for a stopped
// clock, nor for other work.
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
// then recorded again: its consequences happen once.
func TestEndIsRecordedOnce(t *testing.T) {
	w, parent := newKept(t, nil)
	child := w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"sync_sequence": map[string]any{"sync_id": parent}}}}).id("data.id")
	run := w.runs(parent).id("data.id")
	require.NoError(t, w.s.Settle(t.Context()))
	runs := func() int64 {
		return w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", child), w.key, nil).want(200).id("pagination.total_records")
	}
	require.EqualValues(t, 1, runs())
	ended := w.keptRun(run)
	var y *store.Sync
	w.view(func(tx *store.Tx) (err error) {
		y, err = syncByID(tx, parent)
		return err
	})
	progress := w.s.engine.Progress(t.Context(), ended)
	require.NoError(t, w.s.engine.Finish(t.Context(), y, ended, executor.Outcome{Status: api.RunCompleted}, progress))
	require.NoError(t, w.s.Settle(t.Context()))
	require.EqualValues(t, 1, runs())
	require.Equal(t, "completed", w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).at("data.status"))
}

// TestRunsWaitForDescriptors: where descriptors are enough for one run, one works, the
// others are queued and take their turn, one of them is cancelled meanwhile, and the
// figures show it.
func TestRunsWaitForDescriptors(t *testing.T) {
	files := descriptors.Split(4 * runs.OpenFiles)
	w := newSyncWorld(t, func(c *Config) { c.files = files })
	require.Less(t, files.Runs.Figures().Most, int64(2*runs.OpenFiles), "two at once do not fit")
	var syncs, runs []int64
	for range 4 {
		syncs = append(syncs, w.kept(nil).id("data.id"))
	}
	reached, release := w.hold()
	for _, id := range syncs {
		runs = append(runs, w.trigger(id))
	}
	<-reached
	require.Eventually(t, func() bool { return files.Runs.Figures().Waiting == 3 }, time.Minute, time.Millisecond)
	statuses := func() map[any][]int64 {
		all := map[any][]int64{}
		for _, id := range runs {
			status := w.do("GET", fmt.Sprintf("/sync_runs/%d", id), w.key, nil).want(200).at("data.status")
			all[status] = append(all[status], id)
		}
		return all
	}
	now := statuses()
	require.Len(t, now["working"], 1)
	require.Len(t, now["queued"], 3)
	text := string(w.control("GET", "/metrics", nil).want(200).text)
	holds(t, text, `destkit_descriptors_used{by="runs"} 16`, `destkit_descriptors_budget{by="runs"} 24`,
		`destkit_descriptors_waiting{by="runs"} 3`, `destkit_descriptors_budget{by="process"} 64`, "destkit_store_changes_waiting ", "destkit_store_rows_read_total ")
	gone := now["queued"][1]
	w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", gone), w.key, nil).want(200)
	require.Eventually(t, func() bool { return len(statuses()["failed"]) == 1 }, time.Minute, time.Millisecond, "it waits for nobody")
	release()
	w.settle()
	require.Len(t, statuses()["completed"], 3)
	require.Equal(t, []int64{gone}, statuses()["failed"])
	require.Equal(t, descriptors.Figures{Most: 24}, files.Runs.Figures(), "all were given back")
	w.s.gate.Close()
	require.Eventually(t, func() bool { return files.Connections.Figures().Used == 0 }, time.Minute, time.Millisecond)
}

// TestTheClockMovesOnWhileRunsWait: runs that sleep on the service's clock have all
// descriptors, and the clock that wakes them does not wait for those that wait.
func TestTheClockMovesOnWhileRunsWait(t *testing.T) {
	w, id := heldWorld(t, func(c *Config) { c.files = descriptors.Split(4) })
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	other := w.kept(nil).id("data.id")
	for _, one := range []int64{id, other} {
		w.do("POST", fmt.Sprintf("/syncs/%d/trigger", one), w.key, nil).want(http.StatusOK)
	}
	w.control("POST", "/clock", `{"advance":"1h"}`).want(200)
	w.control("POST", "/settle", nil).want(200)
	require.EqualValues(t, 2, w.counts().Runs["completed"])
}

// mapped are the mappings that a sync shows, each as "column > field".
func (w *syncWorld) mapped(id int64) (out []string) {
	w.t.Helper()
	list := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200).at("data.mappings").([]any)
	for _, one := range list {
		m := one.(map[string]any)
		out = append(out, fmt.Sprint(m["from"].(map[string]any)["data"], " > ", m["to"]))
	}
	return out
}

// TestMappingsFollowColumns: with sync_all_properties a column that the source has
// got or lost is in the next run, without a refresh, and the sync shows what the
// run has made (spec 2.6).
func TestMappingsFollowColumns(t *testing.T) {
	w := newSyncWorld(t)
	w.changeSource(threePeople)
	own := []any{column("email", "email", true), column("name", "last_name", false)}
	id := w.kept(map[string]any{"field_behavior": "sync_all_properties", "field_normalization": "match_source_names", "mappings": own}).id("data.id")
	before := w.mapped(id)
	require.Equal(t, []string{"email > email", "name > last_name", "id > id"}, before[:3], "they are made as it is saved")
	w.runsThrough(id)
	require.Equal(t, before, w.mapped(id))
	require.NotContains(t, before, "city > city")

	w.changeSource(`ALTER TABLE customers ADD COLUMN city TEXT DEFAULT 'Graz'`)
	run := w.runsThrough(id)
	require.Equal(t, true, run.at("data.full_sync"), string(run.text))
	require.Contains(t, w.mapped(id), "city > city")

	// A configuration that a client sends back unchanged goes on following the source.
	shown := w.do("GET", fmt.Sprintf("/syncs/%d", id), w.key, nil).want(200).at("data").(map[string]any)
	for _, name := range []string{"id", "status", "created_at", "updated_at"} {
		delete(shown, name)
	}
	w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, shown).want(200)
	w.changeSource(`ALTER TABLE customers DROP COLUMN city`)
	w.runsThrough(id)
	require.Equal(t, before, w.mapped(id))
}

// TestProgressIsStoredTogether: the progress of 20 runs is stored in one change, no run
// waits for the writer of the store meanwhile, and the final counters are correct.
func TestProgressIsStoredTogether(t *testing.T) {
	const runs = 20
	w := newSyncWorld(t)
	_, release := w.hold()
	list := make([]*store.SyncRun, runs)
	for i := range list {
		id := w.kept(nil).id("data.id")
		list[i] = &store.SyncRun{}
		list[i].ID = w.trigger(id)
	}
	for i := range list {
		require.Eventually(t, func() bool {
			list[i] = w.keptRun(list[i].ID)
			return list[i].Run.Status == api.RunWorking && list[i].Run.CurrentStep != nil && *list[i].Run.CurrentStep == executor.StepPlanning
		}, time.Minute, time.Millisecond)
	}

	writing, free := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- w.s.store.Update(t.Context(), func(*store.Tx) error {
			close(writing)
			<-free
			return nil
		})
	}()
	<-writing
	for i, run := range list {
		w.s.engine.Progress(t.Context(), run).Report(executor.Progress{Step: "one", Counters: executor.Counters{SourceRecords: int64(i + 1)}})
		w.s.engine.Progress(t.Context(), run).Report(executor.Progress{Step: "other", Counters: executor.Counters{SourceRecords: int64(i + 100)}})
	}
	close(free) // all of them were noted while the writer was taken
	require.NoError(t, <-ended)
	before := w.s.store.Generation()
	stored := func() (steps int) {
		for i, run := range list {
			now := w.keptRun(run.ID)
			if *now.Run.CurrentStep == "other" {
				require.EqualValues(t, i+100, *now.Run.SourceRecordCount)
				steps++
			}
		}
		return steps
	}
	require.Eventually(t, func() bool { return stored() == runs }, time.Minute, time.Millisecond)
	require.LessOrEqual(t, w.s.store.Generation()-before, uint64(2), "a tick that fell between two notes is one more")

	release()
	w.settle()
	for _, run := range list {
		now := w.keptRun(run.ID)
		require.Equal(t, api.RunCompleted, now.Run.Status)
		require.EqualValues(t, 1, *now.Run.SourceRecordCount)
	}
}
