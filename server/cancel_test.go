package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/store"
)

// blocking lets some calls pass and holds the others until release.
type blocking struct {
	pass             int64 // so many before
	calls            atomic.Int64
	reached, release chan struct{}
	once             sync.Once
}

func newBlocking(pass int64) *blocking {
	return &blocking{pass: pass, reached: make(chan struct{}), release: make(chan struct{})}
}

func (b *blocking) answer(w http.ResponseWriter, _ *http.Request, _ string, pass func() []byte) {
	if b.calls.Add(1) > b.pass {
		b.once.Do(func() { close(b.reached) })
		<-b.release
	}
	_, _ = w.Write(pass())
}

// newHeldBatches is a world whose destination holds the calls with batches, but for the first ones.
func newHeldBatches(t *testing.T, pass int64, change ...func(*Config)) (h *hostile, hold *blocking, release func()) {
	hold = newBlocking(pass)
	h = newHostile(t, time.Minute, "sync_batch", hold.answer, change...)
	release = sync.OnceFunc(func() { close(hold.release) })
	t.Cleanup(release)
	return h, hold, release
}

// rows adds customers up to a number.
func (h *hostile) rows(to int) {
	h.changeSource(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO customers (id, email, name) SELECT i, 'user' || i || '@example.com', 'User' FROM n`, to))
}

func (h *hostile) stored() int64 {
	h.t.Helper()
	_, total := h.records("person")
	return int64(total)
}

// TestCancelAtEachStep: a cancelled run has failed with CANCELED at any step,
// acknowledged records stay and are counted, and the next run sends the rest
// and nothing twice.
func TestCancelAtEachStep(t *testing.T) {
	for _, c := range []struct {
		step    string
		method  string
		rows    int64
		pass    int64 // calls before the one that is held
		mirror  bool
		refuses bool // every record, instead of holding
	}{
		{step: "planning", method: "get_sync_speed", rows: 3},
		{step: "reading", method: "sync_batch", rows: 20_000, pass: 2},
		{step: "sending", method: "sync_batch", rows: 2500, pass: 1},
		{step: "retrying", method: "sync_batch", rows: 3, refuses: true},
		{step: "deleting", method: "sync_batch", rows: 2500, mirror: true},
	} {
		t.Run(c.step, func(t *testing.T) {
			if testing.Short() && c.rows > 10_000 {
				t.Skip("sends many records")
			}
			t.Parallel()
			hold := newBlocking(c.pass)
			bad := hold.answer
			if c.refuses {
				bad = results(func(l []any) []any {
					for i := range l {
						l[i].(map[string]any)["success"] = false
					}
					hold.once.Do(func() { close(hold.reached) })
					return l
				})
			}
			h := newHostile(t, time.Minute, c.method, bad)
			release := sync.OnceFunc(func() { close(hold.release) })
			t.Cleanup(release)
			if c.refuses { // the wait before the next try does not end
				h.control("POST", "/clock", `{"freeze":true}`).want(200)
			}
			if c.rows > 3 {
				h.rows(int(c.rows))
			}
			var changes map[string]any
			if c.mirror {
				changes = map[string]any{"operation": "mirror"}
			}
			id := h.kept(changes).id("data.id")
			left := c.rows
			if c.mirror {
				require.Equal(t, c.rows, h.runs(id).id("data.records_updated"))
				h.changeSource(`DELETE FROM customers WHERE id > 10`)
				left = 10
			}
			h.armed.Store(true)
			run := h.trigger(id)
			<-hold.reached
			path := fmt.Sprintf("/sync_runs/%d", run)
			if c.refuses || c.step == "sending" { // it goes on by itself up to there
				require.Eventually(t, func() bool { return h.do("GET", path, h.key, nil).at("data.current_step") == c.step }, time.Minute, time.Millisecond)
			}
			working := h.do("GET", path, h.key, nil).want(200)
			working.is("data.status", "working", "data.current_step", c.step)
			h.do("POST", path+"/cancel", h.key, nil).want(200)
			release()
			h.control("POST", "/settle", nil).want(200)

			ended := h.do("GET", path, h.key, nil).want(200).ended("failed")
			ended.is("data.canceled", true, "data.error_code", "CANCELED")
			require.Regexp(t, fmt.Sprintf(`msg="sync run ended" run=%d .*status=failed code=CANCELED`, run), h.said.String())
			require.Equal(t, "failing", h.do("GET", fmt.Sprintf("/syncs/%d", id), h.key, nil).at("data.status"))
			updated := ended.id("data.records_updated")
			switch {
			case c.refuses:
				require.Zero(t, updated)
			case c.mirror:
				require.Equal(t, c.rows-updated, h.stored(), "what was acknowledged stays")
			default:
				require.Equal(t, updated, h.stored(), "what was acknowledged stays")
			}
			if c.pass > 0 {
				require.Positive(t, updated)
			}
			h.armed.Store(false)
			next := h.runs(id).ended("completed")
			total := c.rows
			if c.mirror {
				total -= left
			}
			require.Equal(t, total-updated, next.id("data.records_updated"))
			require.Equal(t, left, h.stored())
			history := h.history(id)
			require.Equal(t, []string{"failed Manual", "completed Manual"}, history[len(history)-2:])
		})
	}
}

// TestCancelOfAQueuedRun: it never begins.
func TestCancelOfAQueuedRun(t *testing.T) {
	proves(t, "F-2.9-13")
	w, id := newKept(t, nil)
	run := &store.SyncRun{WorkspaceID: 1, SyncID: id}
	w.change(func(tx *store.Tx) error {
		return w.s.engine.Queue(tx, run, false, api.TriggerReason{UITag: "Manual", UIDetail: "Queued"})
	})
	path := fmt.Sprintf("/sync_runs/%d", run.ID)
	require.Equal(t, "queued", w.do("GET", path, w.key, nil).want(200).at("data.status"))
	w.do("POST", path+"/cancel", w.key, nil).want(200)
	w.s.engine.Start(1, run.ID) // whoever picks it up finds it over
	w.control("POST", "/settle", nil).want(200)
	ended := w.do("GET", path, w.key, nil).want(200).ended("failed")
	require.Equal(t, true, ended.at("data.canceled"))
	require.Nil(t, ended.at("data.source_record_count"), "nothing was read")
	require.Equal(t, "completed", w.runs(id).at("data.status"))
}

// TestRunsOfOneSyncNeverOverlap: of many triggers at once one run works, the
// others are skipped, and each record is sent once.
func TestRunsOfOneSyncNeverOverlap(t *testing.T) {
	h, hold, release := newHeldBatches(t, 0)
	id := h.kept(map[string]any{"operation": "insert"}).id("data.id")
	h.armed.Store(true)
	var wait sync.WaitGroup
	for range 12 {
		wait.Go(func() { h.trigger(id) })
	}
	wait.Wait()
	<-hold.reached
	release()
	h.control("POST", "/settle", nil).want(200)
	seen := map[string]int{}
	for _, run := range h.history(id) {
		seen[run]++
	}
	require.Equal(t, map[string]int{"completed Manual": 1, "skipped Manual": 11}, seen)
	require.EqualValues(t, 1, hold.calls.Load())
	require.EqualValues(t, 3, h.stored())
}

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
	again.is("data.full_sync", true, "data.records_updated", 1)
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
