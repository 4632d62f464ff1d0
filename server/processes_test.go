package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/cluster/jobs"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/cluster/member"
	"github.com/destkit/destkit/server/internal/lifecycle"
	"github.com/destkit/destkit/server/internal/runs"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// quickPulse makes what the leader does quick. What runs out does so when a test says
// so (past), in the database.
func quickPulse() *member.Pulse {
	p := member.UsualPulse
	p.Lead, p.Run = time.Minute, time.Minute
	p.Look, p.LeadKeep, p.RunKeep, p.WorldTry = 10*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond, 5*time.Millisecond
	return &p
}

// newFleet starts a service as several processes on one schema, one with each role.
// The first one is that of the world, with the leadership.
func newFleet(t *testing.T, roles ...string) (*world, []*Server) {
	t.Helper()
	url, dir := postgresURL(testkit.StartPostgres(t)), t.TempDir()
	config := func(c *Config, role string) {
		c.Store, c.MasterKey, c.Dir, c.Role, c.pulse = url, bytes.Repeat([]byte{7}, masterKeySize), dir, role, quickPulse()
	}
	w := newWorld(t, func(c *Config) { config(c, roles[0]) })
	all := []*Server{w.s}
	for _, role := range roles[1:] {
		c := Config{AllowFiles: everyFolder, Emulate: w.s.config.Emulate, Development: true}
		config(&c, role)
		s, err := New(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		all = append(all, s)
	}
	for _, s := range all {
		s.member.Beat(t.Context())
	}
	return w, all
}

// kill ends a process where it stands: it hands nothing back and says nothing.
func kill(s *Server) { s.member.Kill(func() { s.background.Stop(executor.ErrStop) }) }

// past lets the time pass in which a process that is silent counts as dead and loses
// its leases.
func past(t *testing.T, s *Server) {
	t.Helper()
	lapse(t, s)
	_, err := s.store.Pool().Exec(t.Context(), "UPDATE processes SET seen = seen - interval '1 hour' WHERE id = $1", s.config.Process)
	require.NoError(t, err)
}

// lapse lets the leases of a process run out.
func lapse(t *testing.T, s *Server) {
	t.Helper()
	_, err := s.store.Pool().Exec(t.Context(), "UPDATE leases SET until = clock_timestamp() WHERE holder = $1", s.config.Process)
	require.NoError(t, err)
}

// other lets another process answer the calls of the world.
func (w *world) other(s *Server) *world {
	return &world{t: w.t, s: s, pat: w.pat, key: w.key, dest: w.dest, sim: w.sim, source: w.source, seen: map[string]map[int]bool{}}
}

func (w *world) shownRun(id int64) *answer {
	w.t.Helper()
	return w.do("GET", fmt.Sprintf("/sync_runs/%d", id), w.key, nil).want(http.StatusOK)
}

// clean demands that the audit of a sync finds nothing, on either side.
func (w *world) clean(id int64) {
	w.t.Helper()
	audited := w.control("POST", "/audit", map[string]any{
		"sync_id": id, "readback": map[string]any{"url": w.dest.URL + "/_control/readback"},
	}).want(http.StatusOK)
	require.Empty(w.t, audited.at("findings"), string(audited.text))
}

// TestRunsElsewhere: what one process is asked for another one does.
func TestRunsElsewhere(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	id := w.newSync()
	first := w.runs(id)
	require.Equal(t, [7]int64{1, 1, 0, 0, 1, 1, 0}, first.counts(), string(first.text))
	require.Equal(t, [7]int64{1, 0, 0, 0, 0, 0, 0}, w.runs(id).counts(), "what was acknowledged is known everywhere")
	w.clean(id)
	listed := w.control("GET", "/processes", nil).want(http.StatusOK)
	for i, role := range []string{RoleAPI, RoleWorker} {
		at := func(name string) any { return listed.at(fmt.Sprintf("processes.%d.%s", i, name)) }
		require.Equal(t, role, at("role"))
		require.Equal(t, all[i].config.Process, at("id"))
		require.Equal(t, true, at("alive"))
		require.Equal(t, i == 0, at("leader"))
		require.Equal(t, i == 0, at("self"))
		require.NoError(t, all[i].Ready(t.Context()))
	}
	worker := w.other(all[1])
	worker.do("GET", "/syncs", w.key, nil).want(http.StatusServiceUnavailable)
	worker.control("GET", "/clock", nil).want(http.StatusOK)
	for _, change := range []struct{ method, path, body string }{
		{"POST", "/clock", `{"advance":"1h"}`}, {"GET", "/snapshot", ""}, {"POST", "/fork", `{"name":"f"}`}, {"POST", "/reset", ""},
	} {
		refused := w.control(change.method, change.path, change.body).want(http.StatusConflict)
		require.Contains(t, string(refused.text), all[1].config.Process+" (worker)")
	}
	require.NoError(t, all[1].member.Leases().Leave(t.Context()))
	w.control("POST", "/clock", `{"advance":"1h"}`).want(http.StatusOK)
	require.NoError(t, all[1].member.AdoptClock(t.Context()))
	require.WithinDuration(t, w.s.Clock().Now(), all[1].Clock().Now(), time.Minute, "the clock is that of the installation")
}

// TestTakeover: a process dies in the middle of a run, and another one goes on.
func TestTakeover(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	id := w.newSync()
	reached, release := w.hold()
	run := w.trigger(id)
	<-reached
	// A turn that cannot be read keeps no process from finding the run.
	_, err := w.s.store.Pool().Exec(t.Context(), "INSERT INTO settings (key, value) VALUES ($1, 'x')", runs.TurnSetting(run))
	require.NoError(t, err)
	dead := all[1]
	kill(dead)
	other, err := New(t.Context(), all[1].config.again())
	require.NoError(t, err)
	defer other.Close()
	past(t, dead)
	release()
	w.control("POST", "/settle", nil).want(http.StatusOK)
	ended := w.shownRun(run)
	require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
	require.Equal(t, [7]int64{1, 1, 0, 0, 1, 1, 0}, ended.counts())
	w.clean(id)
	require.Positive(t, w.s.member.Takeovers())
}

// again is the configuration of another process.
func (c Config) again() Config {
	c.Process, c.dirs = "", nil
	return c
}

// TestFrozenWorker: a process stands still for longer than its lease lasts, and wakes
// up beside the one that has gone on: nothing of what it writes counts.
func TestFrozenWorker(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	id := w.newSync()
	reached, release := w.hold()
	run := w.trigger(id)
	<-reached
	frozen := all[1]
	frozen.member.Leases().Freeze(true)
	past(t, frozen)
	other, err := New(t.Context(), all[1].config.again())
	require.NoError(t, err)
	defer other.Close()
	taken := func() bool {
		_, works := other.engine.Working()[run]
		return works
	}
	require.Eventually(t, taken, time.Minute, time.Millisecond)
	release()
	w.control("POST", "/settle", nil).want(http.StatusOK)
	require.Equal(t, "completed", w.shownRun(run).at("data.status"))
	require.Equal(t, [7]int64{1, 1, 0, 0, 1, 1, 0}, w.shownRun(run).counts())
	frozen.member.Leases().Freeze(false)
	require.Eventually(t, func() bool { return all[1].engine.Load() == 0 }, time.Minute, time.Millisecond)
	w.clean(id)
	before := w.shownRun(run).text
	require.Equal(t, string(before), string(w.shownRun(run).text))
}

// TestAJobOfAStateThatWasReplaced: a job may name a run that has been replaced by one of
// another sync, with the same number. It works on nothing, and keeps nothing waiting.
func TestAJobOfAStateThatWasReplaced(t *testing.T) {
	w, all := newFleet(t, RoleAPI)
	id, m := w.newSync(), all[0].member
	run := w.trigger(id)
	var workspace int64
	require.NoError(t, w.s.store.View(t.Context(), func(tx *store.Tx) error {
		queued, err := tx.AnySyncRun(run)
		if err == nil {
			workspace = queued.WorkspaceID
		}
		return err
	}))
	carry := func(syncID int64) {
		again, err := m.Carry(t.Context(), jobs.Run{ID: run, WorkspaceID: workspace, SyncID: syncID, Turn: member.FirstTurn})
		require.NoError(t, err)
		require.False(t, again)
	}
	carry(id + 1)
	require.Equal(t, "queued", w.status(run))
	_, err := m.Leases().Hold(t.Context(), lease.OfSync(id+1), time.Minute)
	require.NoError(t, err)
	carry(id + 1) // it does not wait for a lease that gives no right
	require.Equal(t, "queued", w.status(run))
	carry(id)
	require.Equal(t, "completed", w.status(run))
}

// TestCancelElsewhere ends a run of another process, which may be dead.
func TestCancelElsewhere(t *testing.T) {
	for name, dies := range map[string]bool{"it is told": false, "it is dead": true} {
		t.Run(name, func(t *testing.T) {
			w, all := newFleet(t, RoleAPI, RoleWorker)
			id := w.newSync()
			reached, release := w.hold()
			run := w.trigger(id)
			<-reached
			if dies {
				kill(all[1])
			}
			w.do("POST", fmt.Sprintf("/sync_runs/%d/cancel", run), w.key, nil).want(http.StatusOK)
			if dies {
				other, err := New(t.Context(), all[1].config.again())
				require.NoError(t, err)
				defer other.Close()
				past(t, all[1])
			}
			release()
			w.control("POST", "/settle", nil).want(http.StatusOK)
			ended := w.shownRun(run)
			require.Equal(t, "failed", ended.at("data.status"))
			require.Equal(t, true, ended.at("data.canceled"))
			require.Equal(t, "CANCELED", ended.at("data.error_code"))
			w.clean(id)
		})
	}
}

// TestDrain: a process that is told to stop hands its run over, and another one
// leads.
func TestDrain(t *testing.T) {
	w, all := newFleet(t, RoleAll, RoleAPI)
	w.newSource()
	id := w.newSync()
	reached, release := w.hold()
	run := w.trigger(id)
	<-reached
	drained := make(chan error)
	go func() { drained <- all[0].Drain(context.Background()) }()
	require.Eventually(t, func() bool { return all[0].Ready(t.Context()) != nil }, time.Minute, time.Millisecond)
	release()
	require.NoError(t, <-drained)
	require.Equal(t, "working", w.shownRun(run).at("data.status"), "calls are still answered")
	other, err := New(t.Context(), all[0].config.again())
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, all[1].Settle(t.Context()))
	require.Equal(t, "completed", w.shownRun(run).at("data.status"))
	require.Equal(t, [7]int64{1, 1, 0, 0, 1, 1, 0}, w.shownRun(run).counts())
	require.False(t, all[0].member.Leads())
	require.Eventually(t, func() bool { return all[1].member.Leads() || other.member.Leads() }, time.Minute, time.Millisecond)
	w.other(all[1]).clean(id)
}

// TestResetElsewhere deletes what another process works on.
func TestResetElsewhere(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	id := w.newSync()
	reached, release := w.hold()
	w.trigger(id)
	<-reached
	release()
	organization := w.control("GET", "/organizations", nil).want(http.StatusOK).id("organizations.0.id")
	w.control("POST", fmt.Sprintf("/organizations/%d/reset", organization), nil).want(http.StatusOK)
	require.Eventually(t, func() bool { return all[1].engine.Load() == 0 }, time.Minute, time.Millisecond)
	has, err := w.s.live.Booked(id)
	require.NoError(t, err)
	require.False(t, has, "its books are gone")
}

// TestScheduleFiresOnce: the leader freezes before a schedule falls due, another one
// takes over, and the first wakes up and still believes that it leads. Later no one
// leads at the moment itself.
func TestScheduleFiresOnce(t *testing.T) {
	start := time.Date(2027, 3, 1, 10, 30, 0, 0, time.UTC)
	var moved atomic.Int64
	began := time.Now()
	system := func() time.Time { return start.Add(time.Since(began) + time.Duration(moved.Load())) }
	// The first works on no run: it is not to see how late it is.
	w, all := newFleet(t, RoleAPI, RoleAll)
	for i, s := range all {
		require.NoError(t, s.Close())
		c := s.config.again()
		c.SystemClock = system
		var err error
		all[i], err = New(t.Context(), c)
		require.NoError(t, err)
		defer all[i].Close()
	}
	first, second := all[0], all[1]
	w.s = first
	hourly := syncBody(w.newSource(), w.newDestination())
	hourly["mode"] = map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "hourly"}}}
	id := w.do("POST", "/syncs", w.key, hourly).want(http.StatusOK).id("data.sync_id")
	require.True(t, first.member.Leads())
	// now lets the clocks see how late it is.
	now := func(s *Server) {
		s.clock.Freeze(true)
		s.clock.Freeze(false)
		require.NoError(t, s.clock.Settle(t.Context()))
	}
	runs := func() int64 {
		return w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(http.StatusOK).id("pagination.total_records")
	}

	first.member.Leases().Freeze(true)
	deposed := func(old, next *Server) func() bool {
		return func() bool {
			lapse(t, old) // once more: it may have been about to keep the lease
			return next.member.Leads()
		}
	}
	require.Eventually(t, deposed(first, second), time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return second.schedule.Planned(id) }, time.Minute, time.Millisecond)
	moved.Store(int64(30 * time.Minute))
	now(second)
	require.EqualValues(t, 1, runs())
	require.True(t, first.member.Leads(), "it cannot know")
	now(first)
	require.EqualValues(t, 1, runs(), "one moment, one run")
	require.NoError(t, second.Settle(t.Context()))

	second.member.Leases().Freeze(true)
	first.member.Leases().Freeze(false)
	require.Eventually(t, func() bool { return !first.member.Leads() }, time.Minute, time.Millisecond)
	moved.Add(int64(time.Hour))
	require.Eventually(t, deposed(second, first), time.Minute, 10*time.Millisecond)
	require.Eventually(t, func() bool { return runs() == 2 }, time.Minute, time.Millisecond, "what fell due while nobody led is made up for")
	second.member.Leases().Freeze(false)
	now(second)
	require.EqualValues(t, 2, runs())
	require.NoError(t, first.Settle(t.Context()))
	w.clean(id)
}

// TestLeaderBeginsAgain: a leader that cannot read what falls due when it begins reads
// it a little later, from the end of the leader before on.
func TestLeaderBeginsAgain(t *testing.T) {
	w, _ := newFleet(t, RoleAPI)
	hourly := syncBody(w.newSource(), w.newDestination())
	hourly["mode"] = map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "hourly"}}}
	id := w.do("POST", "/syncs", w.key, hourly).want(http.StatusOK).id("data.sync_id")
	before := w.s.member.Fence()
	w.table("ALTER TABLE syncs RENAME TO hidden")
	w.s.member.Abdicate()
	require.Eventually(t, func() bool {
		fence := w.s.member.Fence()
		return fence != 0 && fence != before
	}, time.Minute, time.Millisecond)
	require.False(t, w.s.schedule.Planned(id))
	w.table("ALTER TABLE hidden RENAME TO syncs")
	require.Eventually(t, func() bool { return w.s.schedule.Planned(id) }, member.UsualPulse.Read/2, time.Millisecond)
}

// TestAdvanceWaitsForTheLeader: a machine that stood still loses its leader, and a clock
// that is advanced passes by nothing of what falls due meanwhile.
func TestAdvanceWaitsForTheLeader(t *testing.T) {
	w, _ := newFleet(t, RoleAll)
	w.control("POST", "/clock", `{"freeze":true}`).want(http.StatusOK)
	hourly := syncBody(w.newSource(), w.newDestination())
	hourly["mode"] = map[string]any{"type": "triggered", "triggers": map[string]any{"schedule": map[string]any{"frequency": "hourly"}}}
	id := w.do("POST", "/syncs", w.key, hourly).want(http.StatusOK).id("data.sync_id")
	for hours := 1; hours <= 4; hours++ {
		before := w.s.member.Fence()
		w.s.member.Abdicate()
		w.control("POST", "/clock", `{"advance":"1h"}`).want(http.StatusOK)
		require.NotEqual(t, before, w.s.member.Fence())
		runs := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(http.StatusOK)
		require.Len(t, runs.at("data"), hours, string(runs.text))
	}
	w.s.member.Abdicate()
	later := w.s.clock.Now().Add(3 * time.Hour).Format(time.RFC3339)
	w.control("POST", "/clock", `{"set":"`+later+`"}`).want(http.StatusOK)
	w.control("POST", "/settle", nil).want(http.StatusOK)
	runs := w.do("GET", fmt.Sprintf("/syncs/%d/sync_runs", id), w.key, nil).want(http.StatusOK)
	require.Len(t, runs.at("data"), 5, "what is overdue runs once: %s", runs.text)
}

// TestTheLeaderTells: what a worker has found out the leader sends and tries again.
func TestTheLeaderTells(t *testing.T) {
	w, all := newFleet(t, RoleAPI, RoleWorker)
	require.True(t, w.s.member.Leads())
	require.False(t, all[1].member.Leads())
	var heard sync.Map
	hook := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct{ Event string }
		if json.NewDecoder(r.Body).Decode(&body) == nil {
			n, _ := heard.LoadOrStore(body.Event, new(atomic.Int64))
			n.(*atomic.Int64).Add(1)
		}
	}))
	defer hook.Close()
	w.control("POST", "/trust", pemOf(hook)).want(http.StatusOK)
	w.do("POST", "/webhooks", w.key, map[string]any{"name": "Hook", "endpoint": hook.URL}).want(http.StatusCreated)
	id := w.newSync()
	require.Equal(t, "completed", w.runs(id).at("data.status"))
	for _, event := range []string{lifecycle.EventTriggered, lifecycle.EventStarted, lifecycle.EventCompleted, lifecycle.EventSuccess} {
		n, ok := heard.Load(event)
		require.True(t, ok, event)
		require.EqualValues(t, 1, n.(*atomic.Int64).Load(), event)
	}
	require.NoError(t, os.Rename(w.source, w.source+".away"))
	require.Equal(t, "failed", w.runs(id).at("data.status"))
	waits := func() bool {

		return w.s.retries.Waits(id)
	}
	require.Eventually(t, waits, time.Minute, time.Millisecond, "the leader tries again")
}
