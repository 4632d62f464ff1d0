package server

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
			require.Equal(t, "working", working.at("data.status"))
			require.Equal(t, c.step, working.at("data.current_step"))
			h.do("POST", path+"/cancel", h.key, nil).want(200)
			release()
			h.control("POST", "/settle", nil).want(200)

			ended := h.do("GET", path, h.key, nil).want(200).ended("failed")
			require.Equal(t, true, ended.at("data.canceled"))
			require.Equal(t, "CANCELED", ended.at("data.error_code"))
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
