package server

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/store"
)

// scheduled makes a sync with a schedule and returns its runs as they were due.
func (w *syncWorld) scheduled(schedule map[string]any) (id int64, runs func() []string) {
	id = w.kept(map[string]any{"mode": map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": schedule}}}).id("data.id")
	return id, func() (out []string) {
		w.control("POST", "/settle", nil).want(200)
		list := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?order=asc&per_page=100", id), w.key, nil).want(200)
		for i := range list.at("data").([]any) {
			out = append(out, fmt.Sprintf("%s %s", list.at(fmt.Sprintf("data.%d.scheduled_execution_time", i)), list.at(fmt.Sprintf("data.%d.status", i))))
		}
		return out
	}
}

// TestSchedulesAreReadWhileTheClockIsAdvanced: what falls due is read again at any
// moment, and no step of the clock finds nothing to wait for meanwhile.
func TestSchedulesAreReadWhileTheClockIsAdvanced(t *testing.T) {
	w := newSyncWorld(t)
	w.standsAt("2026-12-06T23:57:30Z")
	_, continuous := w.scheduled(map[string]any{"frequency": "continuous"})
	ctx, stop := context.WithCancel(t.Context())
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		for ctx.Err() == nil {
			w.s.schedule.Look()
		}
	}()
	w.control("POST", "/clock", `{"advance":"20m"}`).want(200)
	stop()
	<-reading
	require.Len(t, continuous(), 20)
}

// TestSchedulesAfterAJump: a clock that is set forwards over several moments runs
// once, and one that is set back falls due by the new time.
func TestSchedulesAfterAJump(t *testing.T) {
	w := newSyncWorld(t)
	w.standsAt("2026-12-01T08:30:00Z")
	_, runs := w.scheduled(map[string]any{"frequency": "hourly"})
	w.control("POST", "/clock", `{"set":"2026-12-01T12:30:00Z"}`).want(200)
	require.Equal(t, []string{"2026-12-01T12:30:00.000Z completed"}, runs())
	w.control("POST", "/clock", `{"set":"2026-12-01T06:30:00Z"}`).want(200)
	w.control("POST", "/clock", `{"advance":"2h"}`).want(200)
	require.Len(t, runs(), 3, "at 7 and at 8: %v", runs())
}

// TestClockJumpsDuringARun: neither a jump nor a freeze loses or repeats a record,
// whatever the run waits for.
func TestClockJumpsDuringARun(t *testing.T) {
	for name, jump := range map[string]string{
		"forwards": `{"set":"2030-01-01T00:00:00Z"}`, "backwards": `{"set":"2020-01-01T00:00:00Z"}`, "frozen": `{"freeze":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			w, id := heldWorld(t)
			calls := make(chan int, 1)
			calls <- 0
			hook := func() {
				n := <-calls + 1
				calls <- n
				if n == 8 {
					w.control("POST", "/clock", jump).want(200)
				}
			}
			w.onCall.Store(&hook)
			run := w.trigger(id)
			w.control("POST", "/settle", nil).want(200)
			// A frozen clock stops for the pace of the run too.
			w.control("POST", "/clock", `{"advance":"1h"}`).want(200)
			ended := w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).ended("completed")
			require.Equal(t, [7]int64{300, 300, 0, 0, 300, 300, 0}, ended.counts())
			require.Equal(t, 30, w.batches())
		})
	}
}

// TestGeneratedChangesOfASync: runs send the scheduled changes of a generator.
func TestGeneratedChangesOfASync(t *testing.T) {
	w := newSyncWorld(t)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	source := w.sourceOf("generator", map[string]any{"rows": 100, "changes": map[string]any{"every": "1h", "inserts": 7, "updates": 5, "deletes": 3}}).id("data.id")
	id := w.kept(map[string]any{
		"operation":         "mirror",
		"source_attributes": map[string]any{"connection_id": source, "object": map[string]any{"type": "table", "table_catalog": "main", "table_schema": "main", "table_name": "generated"}},
		"mappings":          []any{column("email", "email", true), column("balance", "last_name", false)},
	}).id("data.id")
	require.Equal(t, [7]int64{100, 100, 0, 0, 100, 100, 0}, w.runs(id).counts())
	require.Equal(t, [7]int64{100, 0, 0, 0, 0, 0, 0}, w.runs(id).counts())
	w.control("POST", "/clock", `{"advance":"1h"}`).want(200)
	require.Equal(t, [7]int64{104, 12, 3, 0, 15, 15, 0}, w.runs(id).counts())
	w.control("POST", "/clock", `{"advance":"2h"}`).want(200)
	require.Equal(t, [7]int64{112, 24, 6, 0, 30, 30, 0}, w.runs(id).counts())
	bad := w.do("POST", "/sources", w.key, connection(map[string]any{"name": "Wrong", "type": "generator", "credentials": map[string]any{
		"rows": 1, "changes": map[string]any{"every": "soon", "inserts": -1},
	}})).want(400).problems()
	require.Len(t, bad, 2, "%v", bad)
}

// TestLooksHoldNoLockOverTheStore: who looks at what falls due waits for a change that
// is being made, and that change may ask whether schedules were taken up. In memory the
// store has one connection.
func TestLooksHoldNoLockOverTheStore(t *testing.T) {
	p := newWorld(t).s.schedule
	looked := make(chan struct{})
	require.NoError(t, p.Shared.Store.Update(t.Context(), func(*store.Tx) error {
		go func() { defer close(looked); p.Look() }()
		for p.Looking.TryLock() { // until the look has started
			p.Looking.Unlock()
			runtime.Gosched()
		}
		for range 100 {
			runtime.Gosched() // it comes to ask the store
			require.True(t, p.TakenUp())
		}
		return nil
	}))
	<-looked
}
