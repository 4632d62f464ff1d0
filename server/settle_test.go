package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim"
	"github.com/destkit/destkit/destsim/rpc"
)

// pacedWorld is a world with a sync of 20 rows that go one by one: the destination
// takes so many in a second.
func pacedWorld(t *testing.T, perSecond int64) (w *syncWorld, id int64) {
	w = newSyncWorld(t)
	w.changeSource(`WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 20) INSERT INTO customers (id, email, name) SELECT i, 'user' || i || '@example.com', 'User' FROM n`)
	must(w.sim.ArmFault(destsim.Fault{
		Kind: "speed", Speeds: []rpc.Speed{{MaximumBatchSize: 10, MaximumParallelBatches: 1, MaximumRecordsPerSecond: perSecond}},
		When: destsim.Trigger{Method: rpc.MethodGetSyncSpeed},
	}))(t)
	return w, w.kept(nil).id("data.id")
}

// shown is the status of a run.
func (w *world) status(run int64) any {
	w.t.Helper()
	return w.do("GET", fmt.Sprintf("/sync_runs/%d", run), w.key, nil).want(200).at("data.status")
}

// dozing waits until a batch of a sync waits for the clock.
func (w *world) dozing(id int64) {
	w.t.Helper()
	w.eventually(func() bool {
		return slices.ContainsFunc(w.s.clock.Waiting(), func(name string) bool { return strings.Contains(name, fmt.Sprintf("sync %d", id)) })
	})
}

// eventually looks again and again; what never comes ends with the tests.
func (w *world) eventually(is func() bool) {
	w.t.Helper()
	for !is() {
		require.NoError(w.t, w.t.Context().Err())
		time.Sleep(time.Millisecond) // what is waited for needs the processor
	}
}

// TestSettleWaitsForAPacedRun: its pause is longer than a second, and it ends by
// itself nevertheless.
func TestSettleWaitsForAPacedRun(t *testing.T) {
	t.Parallel()
	w, id := pacedWorld(t, 8)
	w.oneRun(id).ended("completed")
}

// TestSettleWaitsForAnotherAttempt: the destination fails once, and the run comes back
// a second later.
func TestSettleWaitsForAnotherAttempt(t *testing.T) {
	t.Parallel()
	w, id := newKept(t, nil)
	must(w.sim.ArmFault(destsim.Fault{Kind: "http_status", Status: 503, When: destsim.Trigger{Method: rpc.MethodSyncBatch, Times: 1}}))(t)
	w.oneRun(id).ended("completed")
}

// TestAClockThatStandsStillIsQuiet: a run that waits for its speed keeps no one
// who settles, and goes on when the clock does.
func TestAClockThatStandsStillIsQuiet(t *testing.T) {
	w, id := pacedWorld(t, 10)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	run := w.trigger(id)
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, "working", w.status(run))
	require.Equal(t, 1, w.batches())
	w.control("POST", "/clock", `{"advance":"500ms"}`).want(200)
	require.Equal(t, 1, w.batches())
	w.control("POST", "/clock", `{"advance":"1h"}`).want(200)
	require.Equal(t, "completed", w.status(run))
	require.Equal(t, 2, w.batches())
}

// TestAdvanceWaitsForAPacedRun that fell due at the end of the way.
func TestAdvanceWaitsForAPacedRun(t *testing.T) {
	t.Parallel()
	w, id := pacedWorld(t, 8)
	w.do("PATCH", fmt.Sprintf("/syncs/%d", id), w.key, w.body(scheduledAt(map[string]any{"frequency": "hourly"}))).want(200)
	now := w.s.clock.Now()
	due := now.Truncate(time.Hour).Add(time.Hour)
	w.control("POST", "/clock", fmt.Sprintf(`{"advance":"%s"}`, due.Sub(now)+time.Second/2)).want(200)
	runs := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(200)
	require.Equal(t, "completed", runs.at("data.0.status"), string(runs.text))
}

// TestAdvanceDoesNotWaitForAnotherAttempt: the run waits for ten minutes, which another
// advance is there to pass.
func TestAdvanceDoesNotWaitForAnotherAttempt(t *testing.T) {
	w, id := newKept(t, nil)
	must(w.sim.ArmFault(destsim.Fault{
		Kind: "http_status", Status: 503, Headers: map[string]string{"Retry-After": "600"}, When: destsim.Trigger{Method: rpc.MethodSyncBatch, Times: 1},
	}))(t)
	run := w.trigger(id)
	w.dozing(id)
	w.control("POST", "/clock", `{"advance":"1s"}`).want(200)
	require.Equal(t, "working", w.status(run))
	w.control("POST", "/clock", `{"advance":"10m"}`).want(200)
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, "completed", w.status(run))
}

// TestClockSetBackDuringAPacedRun: the run goes on at its rate.
func TestClockSetBackDuringAPacedRun(t *testing.T) {
	t.Parallel()
	w, id := pacedWorld(t, 8)
	run := w.trigger(id)
	w.dozing(id)
	w.control("POST", "/clock", fmt.Sprintf(`{"set":%q}`, w.s.clock.Now().Add(-24*time.Hour).Format(time.RFC3339))).want(200)
	w.control("POST", "/settle", nil).want(200)
	require.Equal(t, "completed", w.status(run))
}

// TestClockSetBackKeepsRetries: another run comes as long after the set as it would have
// without, also after a restart of the timers.
func TestClockSetBackKeepsRetries(t *testing.T) {
	w := newSyncWorld(t)
	w.control("POST", "/clock", `{"freeze":true}`).want(200)
	id := w.kept(nil).id("data.id")
	mend := w.broken()
	w.trigger(id)
	w.advance(2 * time.Minute) // the first retry has failed, and the next one is minutes away
	mend()
	before := w.history(id)
	w.control("POST", "/clock", fmt.Sprintf(`{"set":%q}`, w.s.clock.Now().Add(-30*24*time.Hour).Format(time.RFC3339))).want(200)
	w.advance(5 * time.Minute)
	require.ElementsMatch(t, append(before, "completed Retry"), w.history(id), "in the order of their moments")
}
