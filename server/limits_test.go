package server

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
)

// limited is a world whose destination announces a limit that can be changed.
type limited struct {
	*syncWorld
	limit       atomic.Int64 // 0 announces nothing
	connections atomic.Int64 // that were made to the destination
}

func newLimited(t *testing.T, speed rpc.Speed, limit int64, change ...func(*Config)) *limited {
	l := &limited{}
	l.limit.Store(limit)
	w := newWorld(t, change...)
	sim, err := destsim.New(destsim.Config{Preset: "crm", Token: "destination-token", Speed: speed, RateLimit: -1})
	require.NoError(t, err)
	w.sim = sim
	w.dest = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if hook := w.onCall.Load(); hook != nil {
			(*hook)()
		}
		if limit := l.limit.Load(); limit > 0 {
			rw.Header().Set("X-RateLimit-Limit", strconv.FormatInt(limit, 10))
		}
		sim.ServeHTTP(rw, r)
	}))
	w.dest.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			l.connections.Add(1)
		}
	}
	w.dest.Start()
	t.Cleanup(func() { w.dest.Close(); sim.Close() })
	l.syncWorld = &syncWorld{w, w.newSource(), w.newDestination()}
	l.changeSource(`DELETE FROM customers`)
	return l
}

// customers fills the source.
func (l *limited) customers(n int) {
	l.changeSource(fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO customers (id, email, name) SELECT i, 'user' || i || '@example.com', 'User' FROM n`, n))
}

func (l *limited) trigger(id int64) (run int64) {
	return l.do("POST", fmt.Sprintf("/syncs/%d/trigger", id), l.key, nil).want(200).id("data.sync_run_id")
}

// ended waits for the end of a run, also of one that rests after a 429, which settle
// would take for quiet.
func (l *limited) ended(run int64) *answer {
	if done := l.s.engine.Ended(run); done != nil {
		<-done
	}
	return l.run(run)
}

func (l *limited) run(id int64) *answer {
	return l.do("GET", fmt.Sprintf("/sync_runs/%d", id), l.key, nil).want(200)
}

func (l *limited) calls(method string) []destsim.JournalEntry {
	return l.sim.Journal(destsim.JournalFilter{Method: method}).Entries
}

// busiest is the most that the destination saw in any second.
func busiest(entries []destsim.JournalEntry, weight func(destsim.JournalEntry) int) (most int) {
	for i, first := range entries {
		sum := 0
		for _, e := range entries[i:] {
			if e.Received.Before(first.Received.Add(time.Second)) {
				sum += weight(e)
			}
		}
		most = max(most, sum)
	}
	return most
}

func oneCall(destsim.JournalEntry) int { return 1 }

// TestOneLimitForAllCallsOfAConnection: two runs at once, their planning and
// get_sync_speed together stay below the limit that replies announce (spec 8).
func TestOneLimitForAllCallsOfAConnection(t *testing.T) {
	proves(t, "F-8-10", "F-8-11")
	t.Parallel()
	const limit, records = 100, 110
	l := newLimited(t, rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 8, MaximumRecordsPerSecond: 1_000_000}, limit)
	l.customers(records)
	syncs := []int64{l.kept(nil).id("data.id"), l.kept(nil).id("data.id")}
	var runs []int64
	for _, id := range syncs {
		runs = append(runs, l.trigger(id))
	}
	l.do("POST", fmt.Sprintf("/destinations/%d/refresh_objects", l.syncWorld.dest), l.key, nil).want(200)
	for _, run := range runs {
		require.EqualValues(t, records, l.ended(run).id("data.records_updated"))
	}
	all := l.calls("")
	require.Greater(t, len(all), 2*records)
	require.LessOrEqual(t, busiest(all, oneCall), limit+limit/100)
	took := all[len(all)-1].Received.Sub(all[0].Received).Seconds()
	require.Less(t, float64(len(all)-limit)/took, 1.05*limit)
}

// TestBatchesKeepTheSpeedOfTheirSync: a batch is never larger than the records
// of a second, and no second sees more than one batch too much (spec 8).
func TestBatchesKeepTheSpeedOfTheirSync(t *testing.T) {
	proves(t, "F-8-12")
	t.Parallel()
	l := newLimited(t, rpc.Speed{MaximumBatchSize: 500, MaximumParallelBatches: 10, MaximumRecordsPerSecond: 60}, 0)
	l.customers(150)
	require.EqualValues(t, 150, l.ended(l.trigger(l.kept(nil).id("data.id"))).id("data.records_updated"))
	batches := l.calls(rpc.MethodSyncBatch)
	for _, b := range batches {
		require.LessOrEqual(t, b.Records, 60)
	}
	require.LessOrEqual(t, busiest(batches, func(e destsim.JournalEntry) int { return e.Records }), 120)
	require.GreaterOrEqual(t, batches[len(batches)-1].Received.Sub(batches[0].Received), 1900*time.Millisecond)
}

// TestALimitThatChangesUnderARun binds from the next send.
func TestALimitThatChangesUnderARun(t *testing.T) {
	proves(t, "F-8-11")
	t.Parallel()
	l := newLimited(t, rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000}, 0)
	l.customers(90)
	id := l.kept(nil).id("data.id")
	const first, limit = 40, 40
	var seen atomic.Int64
	count := func() {
		if seen.Add(1) == first+1 { // after get_sync_speed
			l.limit.Store(limit)
		}
	}
	l.onCall.Store(&count)
	require.EqualValues(t, 90, l.ended(l.trigger(id)).id("data.records_updated"))
	batches := l.calls(rpc.MethodSyncBatch)
	require.Len(t, batches, 90)
	require.LessOrEqual(t, busiest(batches[first:], oneCall), limit+1)
	fast, slow := batches[first-1].Received.Sub(batches[0].Received), batches[89].Received.Sub(batches[first].Received)
	require.GreaterOrEqual(t, slow, time.Second)
	require.Less(t, fast, slow)
}

// TestThrottlingHoldsAllRunsOfAConnection: after a 429 nothing is sent for as
// long as it asks, by no run, and no record is the worse for it.
func TestThrottlingHoldsAllRunsOfAConnection(t *testing.T) {
	proves(t, "F-8-13")
	for name, tc := range map[string]struct {
		fault destsim.Fault
		rest  time.Duration
	}{
		"seconds": {destsim.Fault{RetryAfter: "seconds", Seconds: 30}, 30 * time.Second},
		"an age":  {destsim.Fault{RetryAfter: "seconds", Seconds: 1_000_000_000}, time.Minute},
		"nothing": {destsim.Fault{RetryAfter: "absent"}, time.Second},
		"garbage": {destsim.Fault{RetryAfter: "garbage"}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(t, rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000}, 0)
			l.control("POST", "/clock", `{"freeze":true}`).want(200)
			l.customers(30)
			first, second := l.kept(nil).id("data.id"), l.kept(nil).id("data.id")
			tc.fault.Kind, tc.fault.When = "throttle", destsim.Trigger{Method: rpc.MethodSyncBatch, Times: 1}
			_, err := l.sim.ArmFault(tc.fault)
			require.NoError(t, err)
			runs := []int64{l.trigger(first)}
			l.control("POST", "/settle", nil).want(200)
			require.Len(t, l.calls(rpc.MethodSyncBatch), 1)
			calls := len(l.calls(""))
			runs = append(runs, l.trigger(second))
			l.control("POST", "/settle", nil).want(200)
			l.control("POST", "/clock", map[string]any{"advance": (tc.rest - 300*time.Millisecond).String()}).want(200)
			require.Len(t, l.calls(""), calls, "not even get_sync_speed of the second run")
			for _, run := range runs {
				require.Equal(t, "working", l.run(run).at("data.status"))
			}
			l.control("POST", "/clock", map[string]any{"advance": "2s"}).want(200)
			for _, run := range runs {
				a := l.run(run)
				require.Equal(t, "completed", a.at("data.status"), string(a.text))
				require.Equal(t, [7]int64{30, 30, 0, 0, 30, 30, 0}, a.counts())
			}
			require.Len(t, l.calls(rpc.MethodSyncBatch), 7)
		})
	}
}

// TestAClockThatStandsStillIsQuiet: a run that waits for its speed keeps no one
// who settles, and goes on when the clock does.
func TestAClockThatStandsStillIsQuiet(t *testing.T) {
	l := newLimited(t, rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 10}, 0)
	l.control("POST", "/clock", `{"freeze":true}`).want(200)
	l.customers(50)
	run := l.trigger(l.kept(nil).id("data.id"))
	l.control("POST", "/settle", nil).want(200)
	require.Equal(t, "working", l.run(run).at("data.status"))
	require.Len(t, l.calls(rpc.MethodSyncBatch), 1)
	l.control("POST", "/clock", `{"advance":"2500ms"}`).want(200)
	require.Len(t, l.calls(rpc.MethodSyncBatch), 3)
	l.control("POST", "/clock", `{"advance":"1h"}`).want(200)
	require.EqualValues(t, 50, l.run(run).id("data.records_updated"))
}

// TestConnectionsAreUsedAgain: no more network connections than calls at once,
// over many batches.
func TestConnectionsAreUsedAgain(t *testing.T) {
	l := newLimited(t, rpc.Speed{MaximumBatchSize: 1, MaximumParallelBatches: 4, MaximumRecordsPerSecond: 1_000_000}, 0)
	l.customers(80)
	before := l.connections.Load()
	require.EqualValues(t, 80, l.ended(l.trigger(l.kept(nil).id("data.id"))).id("data.records_updated"))
	require.LessOrEqual(t, l.connections.Load()-before, int64(4))
}

// TestDeadlinesOfCalls: a batch has a deadline of its own (spec 8).
func TestDeadlinesOfCalls(t *testing.T) {
	proves(t, "F-8-09")
	for name, tc := range map[string]struct {
		method  string
		config  Config
		status  string
		message string
	}{
		"batch":   {rpc.MethodSyncBatch, Config{BatchTimeout: 60 * time.Millisecond}, "completed", ""},
		"speed":   {rpc.MethodGetSyncSpeed, Config{CallTimeout: 60 * time.Millisecond, BatchTimeout: time.Minute}, "failed", "TIMEOUT"},
		"neither": {rpc.MethodGetSyncSpeed, Config{BatchTimeout: 60 * time.Millisecond}, "completed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited(t, rpc.Speed{MaximumBatchSize: 10, MaximumParallelBatches: 1, MaximumRecordsPerSecond: 1_000_000}, 0, func(c *Config) {
				c.CallTimeout, c.BatchTimeout = tc.config.CallTimeout, tc.config.BatchTimeout
			})
			l.customers(1)
			id := l.kept(nil).id("data.id")
			fault := destsim.Fault{Kind: "hang", At: "after", When: destsim.Trigger{Method: tc.method, Times: 4}}
			if name == "neither" {
				fault = destsim.Fault{Kind: "delay", Delay: &destsim.Delay{MS: 100}, When: destsim.Trigger{Method: tc.method, Times: 1}}
			}
			_, err := l.sim.ArmFault(fault)
			require.NoError(t, err)
			run := l.trigger(id)
			l.control("POST", "/clock", `{"advance":"1h"}`).want(200)
			a := l.run(run)
			require.Equal(t, tc.status, a.at("data.status"), string(a.text))
			if tc.message != "" {
				require.Equal(t, tc.message, a.at("data.error_code"))
				require.Contains(t, a.at("data.error_message"), "did not answer")
			}
		})
	}
}
