package server

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/descriptors"
	"github.com/destkit/destkit/server/internal/runs"
)

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
	for _, line := range []string{`destkit_descriptors_used{by="runs"} 16`, `destkit_descriptors_budget{by="runs"} 24`, `destkit_descriptors_waiting{by="runs"} 3`, `destkit_descriptors_budget{by="process"} 64`, "destkit_store_changes_waiting ", "destkit_store_rows_read_total "} {
		require.Contains(t, text, line)
	}
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
