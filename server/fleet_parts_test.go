package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/postgrestest"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// cutFleet is a service as several processes that cut every run of 100 rows, with a
// mirror of numbered rows; the first process has the API alone.
func cutFleet(t *testing.T, workers int) (w *world, all []*Server, id int64) {
	t.Helper()
	url, dir := postgresURL(postgrestest.Start(t)), t.TempDir()
	config := func(c *Config, role string) {
		c.Store, c.MasterKey, c.Dir, c.Role, c.cut = url, bytes.Repeat([]byte{7}, masterKeySize), dir, role, 100
		// Whoever hears of a part takes it, and nobody else.
		if c.pulse = quickPulse(); role != RoleAPI {
			c.pulse.part, c.pulse.others = 5*time.Millisecond, time.Hour
		}
	}
	w = newWorld(t, func(c *Config) { config(c, RoleAPI) })
	all = []*Server{w.s}
	for range workers {
		c := Config{AllowFiles: everyFolder, Emulate: w.s.config.Emulate, Development: true}
		config(&c, RoleWorker)
		s, err := New(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		all = append(all, s)
	}
	for _, s := range all {
		s.fleet.beat(t.Context())
	}
	w.numbered(1, 600)
	body := syncBody(w.newSource(), w.newDestination())
	body["operation"] = "mirror"
	body["mappings"] = []any{
		map[string]any{"from": map[string]any{"type": "column", "data": "id"}, "to": "email", "is_primary_identifier": true},
		map[string]any{"from": map[string]any{"type": "column", "data": "name"}, "to": "last_name", "is_primary_identifier": false},
	}
	return w, all, w.do("POST", "/syncs", w.key, body).want(http.StatusOK).id("data.sync_id")
}

// numbered makes the rows of the source anew.
func (w *world) numbered(from, to int) {
	w.t.Helper()
	w.changeSource(fmt.Sprintf(`DELETE FROM customers;
		WITH RECURSIVE n(v) AS (SELECT %d UNION ALL SELECT v + 1 FROM n WHERE v < %d) INSERT INTO customers (id, name) SELECT v, 'name ' || v FROM n`, from, to))
}

// logs counts the logs of the parts of the last run.
func logs(t *testing.T, s *Server) (n int) {
	t.Helper()
	require.NoError(t, s.store.Pool().QueryRow(t.Context(), "SELECT count(*) FROM ledger_files WHERE name LIKE '%.part-%' AND size > 0").Scan(&n))
	return n
}

// TestOneRunOfSeveral: three processes send one run.
func TestOneRunOfSeveral(t *testing.T) {
	w, all, id := cutFleet(t, 3)
	first := w.runs(id)
	require.Equal(t, "completed", first.at("data.status"), string(first.text))
	require.Equal(t, [7]int64{600, 600, 0, 0, 600, 600, 0}, first.counts(), string(first.text))
	require.Equal(t, 3, logs(t, all[0]))
	w.clean(id)
	w.numbered(301, 700)
	w.changeSource("UPDATE customers SET name = 'other' WHERE id % 10 = 0")
	second := w.runs(id)
	require.Equal(t, [7]int64{430, 130, 300, 0, 430, 430, 0}, second.counts(), string(second.text))
	require.Equal(t, 6, logs(t, all[0]))
	w.clean(id)
	require.Equal(t, [7]int64{400, 0, 0, 0, 0, 0, 0}, w.runs(id).counts())
	// Two parts have nothing to delete, and so no second step; no part is lost.
	w.changeSource("DELETE FROM customers WHERE id BETWEEN 690 AND 699")
	require.Equal(t, [7]int64{390, 0, 10, 0, 10, 10, 0}, w.runs(id).counts())
	require.Zero(t, all[1].fleet.handed.Load()+all[2].fleet.handed.Load()+all[3].fleet.handed.Load())
	w.clean(id)
	var left int
	require.NoError(t, all[0].store.Pool().QueryRow(t.Context(), "SELECT count(*) FROM parts").Scan(&left))
	require.Zero(t, left)
}

// TestAPartOfALostProcess: one that works on a part dies, freezes or drains, or a
// user cancels; nothing is lost, and nothing is sent twice but what was on its way.
func TestAPartOfALostProcess(t *testing.T) {
	for name, lose := range map[string]func(w *world, lost *Server, run int64, release func()){
		"dies": func(w *world, lost *Server, _ int64, release func()) {
			lost.fleet.kill()
			lapsed(w, lost)
			release()
		},
		"freezes": func(w *world, lost *Server, _ int64, release func()) {
			lost.fleet.frozen.set(true)
			lapsed(w, lost)
			release()
			w.t.Cleanup(func() { lost.fleet.frozen.set(false) })
		},
		"drains": func(w *world, lost *Server, _ int64, release func()) {
			drained := make(chan error)
			go func() { drained <- lost.Drain(context.Background()) }()
			release()
			require.NoError(w.t, <-drained)
		},
		"is cancelled": func(w *world, _ *Server, run int64, release func()) {
			w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", run), w.key, nil).want(http.StatusOK)
			release()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, all, id := cutFleet(t, 3)
			release := w.holdParts()
			run := w.trigger(id)
			var lost *Server
			require.Eventually(t, func() bool { // every worker has a part, and one is not the run's own
				var holders []string
				rows, err := all[0].store.Pool().Query(t.Context(), "SELECT process FROM parts WHERE process <> ''")
				require.NoError(t, err)
				for rows.Next() {
					var process string
					require.NoError(t, rows.Scan(&process))
					holders = append(holders, process)
				}
				for _, s := range all[1:] {
					if s.engine.load() == 0 {
						lost = s
					}
				}
				return len(holders) == 3
			}, time.Minute, time.Millisecond)
			lose(w, lost, run, release)
			w.control("POST", "/settle", nil).want(http.StatusOK)
			ended := w.shownRun(run)
			if name == "is cancelled" {
				require.Equal(t, "CANCELED", ended.at("data.error_code"), string(ended.text))
				require.Equal(t, 600-ended.counts()[5], w.runs(id).counts()[5], "what was acknowledged stays")
			} else {
				require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
				require.Equal(t, [7]int64{600, 600, 0, 0, 600, 600, 0}, ended.counts(), string(ended.text))
			}
			w.clean(id)
			require.Equal(t, [7]int64{600, 0, 0, 0, 0, 0, 0}, w.runs(id).counts())
		})
	}
}

// holdParts lets calls to the destination wait while there are parts.
func (w *world) holdParts() (release func()) {
	free := make(chan struct{})
	block := func() {
		var n int
		_ = w.s.store.Pool().QueryRow(context.Background(), "SELECT count(*) FROM parts").Scan(&n)
		if n > 0 {
			<-free
		}
	}
	w.onCall.Store(&block)
	release = sync.OnceFunc(func() {
		w.onCall.Store(nil)
		close(free)
	})
	w.t.(*testing.T).Cleanup(release)
	return release
}

// lapsed lets the time pass in which a process that is silent counts as dead, and
// loses its parts.
func lapsed(w *world, lost *Server) {
	w.t.Helper()
	past(w.t.(*testing.T), lost.fleet)
	_, err := w.s.store.Pool().Exec(w.t.Context(), "UPDATE parts SET until = clock_timestamp() - interval '1 second' WHERE process = $1", lost.fleet.id)
	require.NoError(w.t, err)
}

// TestAPartThatEndsLeavesItsShare: one of two parts has next to nothing to send. Then
// the other one has all batches at once, and all records per second, and no more.
func TestAPartThatEndsLeavesItsShare(t *testing.T) {
	w, all, id := cutFleet(t, 2)
	w.runs(id)
	change := func(name string, speed rpc.Speed) {
		_, err := w.sim.ArmFault(destsim.Fault{Kind: "speed", Speeds: []rpc.Speed{speed}, When: destsim.Trigger{Times: 1}})
		require.NoError(t, err)
		// By their digits 102 is in the first half and the others are in the second.
		w.changeSource("UPDATE customers SET name = '" + name + "' WHERE id BETWEEN 400 AND 474 OR id = 102")
	}
	// Whoever sends after the end of a part waits until four do.
	var waiting atomic.Int64
	full := make(chan struct{})
	block := func() {
		var ended int
		_ = w.s.store.Pool().QueryRow(context.Background(), "SELECT count(*) FROM parts WHERE ended").Scan(&ended)
		if ended > 0 {
			if waiting.Add(1) == 4 {
				close(full)
			}
			<-full
		}
	}
	w.onCall.Store(&block)
	change("once", rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 200})
	require.Equal(t, [7]int64{600, 76, 0, 0, 76, 76, 0}, w.runs(id).counts())
	w.onCall.Store(nil)
	require.GreaterOrEqual(t, waiting.Load(), int64(4))

	const limit, batch = 60, 3
	change("twice", rpc.Speed{MaximumBatchSize: batch, MaximumParallelBatches: 4, MaximumRecordsPerSecond: limit})
	began := len(w.sim.Journal(destsim.JournalFilter{Method: rpc.MethodSyncBatch}).Entries)
	require.Equal(t, [7]int64{600, 76, 0, 0, 76, 76, 0}, w.runs(id).counts())
	require.Equal(t, 6, logs(t, all[0]))
	sent := w.sim.Journal(destsim.JournalFilter{Method: rpc.MethodSyncBatch}).Entries[began:]
	records := func(e destsim.JournalEntry) int { return e.Records }
	most := busiest(sent, records)
	require.LessOrEqual(t, most, limit+batch, "of what is written in a second one may arrive late")
	require.Greater(t, most, limit/2+batch, "one alone sends more than its half")
	w.clean(id)
	t.Logf("%d records in %s, at most %d in a second", 76, sent[len(sent)-1].Received.Sub(sent[0].Received), most)
}

// TestUnbroken: what is asked for goes through to its answer, also when the one who asks
// is told to stop meanwhile; who was stopped before asks for nothing.
func TestUnbroken(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	got, _, err := unbroken(ctx, time.Minute, func(asked context.Context) (string, int, error) {
		stop(executor.ErrStop)
		return "taken", 0, asked.Err()
	})
	require.NoError(t, err)
	require.Equal(t, "taken", got)
	_, _, err = unbroken(ctx, time.Minute, func(context.Context) (string, int, error) {
		t.Error("asked all the same")
		return "", 0, nil
	})
	require.ErrorIs(t, err, executor.ErrStop)
}
