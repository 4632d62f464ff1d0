package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
)

// broken lets every call of the destination fail with a 503, until mend.
func (w *world) broken() (mend func()) {
	w.t.Helper()
	id := must(w.sim.ArmFault(destsim.Fault{Kind: "http_status", Status: 503}))(w.t)
	return func() { require.NoError(w.t, w.sim.DisarmFault(id)) }
}

// breaks has a run of a sync fail, and waits until shortly before it is tried again.
func (w *world) breaks(id int64) (failed int64, mend func()) {
	w.t.Helper()
	mend = w.broken()
	failed = w.trigger(id)
	w.advance(50 * time.Second)
	return failed, mend
}

// history is the runs of a sync, oldest first, as "status tag".
func (w *world) history(id int64) []string {
	w.t.Helper()
	var out []string
	for _, run := range w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs?order=asc", id), w.key, nil).want(200).objects("data") {
		out = append(out, fmt.Sprint(run["status"], " ", run["sync_trigger_reason"].(map[string]any)["ui_tag"]))
	}
	return out
}

func (w *world) trigger(id int64) int64 {
	w.t.Helper()
	return w.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), w.key, nil).want(200).id("data.sync_run_id")
}

// TestAFailedRunIsTriedAgain: a run that failed for a reason that may pass is
// followed by another one a minute later (spec 7.2.5), and the alerts report the
// failure once, and the recovery.
func TestAFailedRunIsTriedAgain(t *testing.T) {
	w, id := newKept(t, nil)
	failed, mend := w.breaks(id)
	require.Equal(t, []string{"failed Manual"}, w.history(id))
	mend()
	w.advance(2 * time.Minute)
	require.Equal(t, []string{"failed Manual", "completed Retry"}, w.history(id))
	again := w.do("GET", fmt.Sprintf("/sync_runs/%d", failed+1), w.key, nil).want(200)
	require.Equal(t, fmt.Sprintf("Run %d failed (RPC_ERROR): try 1 of 3", failed), again.at("data.sync_trigger_reason.ui_detail"))
	require.EqualValues(t, 1, again.id("data.records_updated"))
	mails := string(w.control("GET", "/mailbox", nil).want(200).text)
	require.Equal(t, 1, strings.Count(mails, ": Sync Failed"), mails)
	require.Equal(t, 1, strings.Count(mails, ": Sync Recovered"), mails)
	w.advance(2 * time.Hour)
	require.Len(t, w.history(id), 2, "nothing is left to try")
}

// TestRetriesEnd after the third; a run from elsewhere begins a new series.
func TestRetriesEnd(t *testing.T) {
	w, id := newKept(t, nil)
	w.broken()
	w.trigger(id)
	w.advance(3 * time.Hour)
	series := []string{"failed Manual", "failed Retry", "failed Retry", "failed Retry"}
	require.Equal(t, series, w.history(id))
	mails := string(w.control("GET", "/mailbox", nil).want(200).text)
	require.Equal(t, 1, strings.Count(mails, ": Sync Failed"), mails)
	w.trigger(id)
	w.advance(3 * time.Hour)
	require.Equal(t, append(series, series...), w.history(id))
}

// TestRetriesOfAForcedRun send everything too.
func TestRetriesOfAForcedRun(t *testing.T) {
	w, id := newKept(t, nil)
	require.EqualValues(t, 1, w.runs(id).id("data.records_updated"))
	mend := w.broken()
	run := w.do("POST", fmt.Sprintf("/syncs/%d/trigger?force_full_sync=true", id), w.key, nil).want(200).id("data.sync_run_id")
	w.advance(50 * time.Second)
	mend()
	w.advance(2 * time.Minute)
	again := w.do("GET", fmt.Sprintf("/sync_runs/%d", run+1), w.key, nil).want(200)
	require.Equal(t, true, again.at("data.full_sync"))
	require.EqualValues(t, 1, again.id("data.records_updated"))
}

// TestRunsThatAreNotTriedAgain: what a user has to mend or wanted himself, and
// what the schedule repeats anyway.
func TestRunsThatAreNotTriedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		changes map[string]any // of the sync
		does    func(w *syncWorld, id int64)
		runs    []string
	}{
		"empty source": {map[string]any{"operation": "mirror"}, func(w *syncWorld, id int64) {
			w.runs(id)
			w.changeSource("DELETE FROM customers")
			require.Equal(t, "EMPTY_SOURCE", w.runs(id).at("data.error_code"))
		}, []string{"completed Manual", "failed Manual"}},
		"cancelled": {nil, func(w *syncWorld, id int64) {
			w.broken()
			w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", w.trigger(id)), w.key, nil).want(200)
		}, []string{"failed Manual"}},
		"paused": {nil, func(w *syncWorld, id int64) {
			w.breaks(id)
			w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, w.body(map[string]any{"paused": true})).want(200)
		}, []string{"failed Manual"}},
		"deleted": {nil, func(w *syncWorld, id int64) {
			w.breaks(id)
			w.remove(fmt.Sprintf("/syncs/%d", id), w.key)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := newKept(t, tc.changes)
			tc.does(w, id)
			w.advance(3 * time.Hour)
			if tc.runs == nil {
				require.Empty(t, w.do("GET", "/syncs", w.key, nil).want(200).at("data"))
				return
			}
			require.Equal(t, tc.runs, w.history(id))
		})
	}
	t.Run("scheduled", func(t *testing.T) {
		w, id := newKept(t, scheduledAt(map[string]any{"frequency": "continuous"}))
		w.broken()
		w.advance(10 * time.Minute)
		for _, run := range w.history(id) {
			require.NotContains(t, run, "Retry")
		}
	})
}

// TestARestartKeepsRetries, and a snapshot has them too.
func TestARestartKeepsRetries(t *testing.T) {
	w := newWorld(t, inDir(t))
	id := w.newSync()
	_, mend := w.breaks(id)
	snapshot := w.control("GET", "/snapshot", nil).want(200).text
	w.again(nil)
	mend()
	w.advance(2 * time.Minute)
	require.Equal(t, []string{"failed Manual", "completed Retry"}, w.history(id))
	w.control("POST", "/restore", snapshot).want(200)
	require.Equal(t, []string{"failed Manual"}, w.history(id))
	w.advance(2 * time.Minute)
	require.Equal(t, []string{"failed Manual", "completed Retry"}, w.history(id))
}
