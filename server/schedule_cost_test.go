package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/server/internal/store"
)

func triggeredBy(triggers map[string]any) map[string]any {
	return map[string]any{"mode": map[string]any{"type": "triggered", "triggers": triggers}}
}

func scheduledAt(schedule map[string]any) map[string]any {
	return triggeredBy(map[string]any{"schedule": schedule})
}

// copies stores a sync n times more, past the API.
func (w *world) copies(id int64, n int) {
	w.change(func(tx *store.Tx) error {
		y, err := syncByID(tx, id)
		for range n {
			more := *y
			more.ID, more.Version = 0, 0
			if err == nil {
				err = store.Syncs.Create(tx, &more)
			}
		}
		return err
	})
}

// work counts what fn makes the store do.
func (w *world) work(fn func()) store.Work {
	before := w.s.store.Work()
	fn()
	after := w.s.store.Work()
	return store.Work{Statements: after.Statements - before.Statements, Rows: after.Rows - before.Rows}
}

// TestCostOfAnEnd counts the statements and rows of a run that falls due, ends, and
// starts another one: as many with 10,000 other syncs as with 10, some of which fall
// due by themselves and some after others.
func TestCostOfAnEnd(t *testing.T) {
	cost := func(others int) (falls, clock store.Work) {
		w := newSyncWorld(t, func(c *Config) { c.Development = false })
		w.standsAt("2026-12-01T08:30:00Z")
		hourly := w.kept(scheduledAt(map[string]any{"frequency": "hourly"})).id("data.id")
		w.kept(triggeredBy(map[string]any{"sync_sequence": map[string]any{"sync_id": hourly}}))
		unused := w.kept(nil).id("data.id")
		w.copies(w.kept(scheduledAt(map[string]any{"frequency": "daily", "hour": 23})).id("data.id"), others/2)
		w.copies(w.kept(triggeredBy(map[string]any{"sync_sequence": map[string]any{"sync_id": unused}})).id("data.id"), others/2)
		w.advance(0)
		falls = w.work(func() { require.Contains(t, w.advance(59*time.Minute), "schedule of sync") })
		require.EqualValues(t, 2, w.counts().Runs["completed"], "the sync and what follows it")
		clock = w.work(func() { w.control("POST", "/clock", `{"set":"2026-12-01T09:40:00Z"}`).want(200) })
		return falls, clock
	}
	falls, clock := cost(10)
	many, manyClock := cost(10_000)
	// Progress is written by real time, so that a slow machine may count a little more.
	require.InDelta(t, falls.Rows, many.Rows, 40)
	require.InDelta(t, falls.Statements, many.Statements, 40)
	require.Equal(t, clock, manyClock, "a clock that is set forwards")
}

// counts counts what is stored.
func (w *world) counts() (all store.Counts) {
	w.t.Helper()
	w.view(func(tx *store.Tx) (err error) {
		all, err = tx.Counts()
		return err
	})
	return all
}

// again closes the service and starts it on the same folder.
func (w *world) again(between func(db *sqlite.Conn)) {
	w.t.Helper()
	config := w.s.config
	require.NoError(w.t, w.s.Close())
	if between != nil {
		db := must(sqlite.OpenConn(filepath.Join(config.Dir, "destkit.db"), sqlite.OpenReadWrite))(w.t)
		between(db)
		require.NoError(w.t, db.Close())
		require.NoError(w.t, os.Remove(filepath.Join(config.Dir, "destkit.db-sum"))) // the change is meant
	}
	w.s = must(New(w.t.Context(), config))(w.t)
	w.t.Cleanup(func() { _ = w.s.Close() })
}

func ownFolder(t testing.TB) func(*Config) {
	return func(c *Config) {
		c.Dir, c.MasterKey = t.TempDir(), bytes.Repeat([]byte{7}, masterKeySize)
		c.Development = false
	}
}

// TestCostOfAStart: a start reads no sync that is not due, live, or to be tried again,
// and no run that is over and whose records stay.
func TestCostOfAStart(t *testing.T) {
	cost := func(others int) uint64 {
		w, id := newKept(t, scheduledAt(map[string]any{"frequency": "daily", "hour": 23}), ownFolder(t))
		w.oneRun(id)
		w.copies(id, others)
		w.again(nil)
		return w.s.store.Work().Rows
	}
	require.Equal(t, cost(3), cost(2000))
}

// TestSchedulesAreKept: what is due is in the store. What fell due while the process
// was away is left out, what was to come comes, in the order of before, also by an
// earlier clock, and from a folder of a program that kept none of it.
func TestSchedulesAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		between string // what happens to the stored schedules
		start   string // the time of the clock afterwards
		want    []string
	}{
		"later":         {"", "2026-12-01T09:10:00Z", []string{"2 09:30", "1 10:00", "2 10:30"}},
		"earlier":       {"", "2026-12-01T07:20:00Z", []string{"2 07:30", "1 08:00", "2 08:30"}},
		"from before":   {"UPDATE schedules SET due_at = NULL, planned_at = NULL, turn = sync_id", "2026-12-01T08:25:00Z", []string{"2 08:30", "1 09:00"}},
		"still to come": {"", "2026-12-01T08:45:00Z", []string{"1 09:00", "2 09:30"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSyncWorld(t, ownFolder(t))
			w.standsAt("2026-12-01T08:20:00Z")
			w.kept(scheduledAt(map[string]any{"frequency": "hourly"}))
			w.kept(scheduledAt(map[string]any{"frequency": "hourly", "minute": 30}))
			w.again(func(db *sqlite.Conn) {
				require.NoError(t, sqlitex.ExecuteScript(db, tc.between, nil))
			})
			w.control("POST", "/clock", `{"freeze":true}`).want(200)
			w.s.schedule.Forget() // as a start by that clock does
			require.NoError(t, w.s.clock.Set(at(t, tc.start)))
			require.NoError(t, w.s.schedule.All(t.Context()))
			w.advance(2 * time.Hour)
			var got []string
			w.view(func(tx *store.Tx) error {
				for id := int64(1); ; id++ {
					run, err := store.SyncRuns.Any(tx, id)
					if err != nil {
						return nil
					}
					got = append(got, fmt.Sprintf("%d %s", run.SyncID, run.Run.ScheduledExecutionTime.Format("15:04")))
				}
			})
			require.GreaterOrEqual(t, len(got), len(tc.want))
			require.Equal(t, tc.want, got[:len(tc.want)])
			require.NoError(t, w.s.Close())
		})
	}
}

// TestOrderOfOneMoment: of two syncs that fall due at one moment the one that was
// planned first comes first, whatever their ids.
func TestOrderOfOneMoment(t *testing.T) {
	w := newSyncWorld(t)
	w.standsAt("2026-12-01T07:30:00Z")
	hourly := w.kept(scheduledAt(map[string]any{"frequency": "hourly"})).id("data.id")
	daily := w.kept(scheduledAt(map[string]any{"frequency": "daily", "hour": 9})).id("data.id")
	w.advance(2 * time.Hour)
	var order []int64
	for id := range int64(3) {
		order = append(order, w.keptRun(id+1).SyncID)
	}
	require.Equal(t, []int64{hourly, daily, hourly}, order, "the daily one waited since 7:30, the hourly one since 8:00")
}

// TestASyncThatCannotRun: one whose run cannot be queued keeps no other from running,
// and is planned again when it is saved.
func TestASyncThatCannotRun(t *testing.T) {
	w := newSyncWorld(t, ownFolder(t))
	w.standsAt("2026-12-01T08:30:00Z")
	broken := w.kept(scheduledAt(map[string]any{"frequency": "hourly"})).id("data.id")
	w.kept(scheduledAt(map[string]any{"frequency": "hourly"}))
	db := must(sqlite.OpenConn(filepath.Join(w.s.config.Dir, "destkit.db"), sqlite.OpenReadWrite))(t)
	require.NoError(t, sqlitex.ExecuteScript(db, fmt.Sprintf("UPDATE syncs SET config = '{' || config WHERE id = %d", broken), nil))
	require.NoError(t, db.Close())
	w.advance(2 * time.Hour)
	require.EqualValues(t, map[string]int64{"completed": 2}, w.counts().Runs)
}

func at(t *testing.T, text string) time.Time {
	moment := must(time.Parse(time.RFC3339, text))(t)
	return moment
}

func (w *world) view(read func(*store.Tx) error) {
	w.t.Helper()
	require.NoError(w.t, w.s.store.View(w.t.Context(), read))
}

// keptRun is a run as it is stored.
func (w *world) keptRun(id int64) (run *store.SyncRun) {
	w.t.Helper()
	w.view(func(tx *store.Tx) (err error) {
		run, err = store.SyncRuns.Any(tx, id)
		return err
	})
	return run
}

// TestSchedulesAfterARestoreThatFails: they fall due as if there had been no try.
func TestSchedulesAfterARestoreThatFails(t *testing.T) {
	w := newSyncWorld(t)
	w.standsAt("2026-12-01T08:30:00Z")
	_, runs := w.scheduled(map[string]any{"frequency": "hourly"})
	w.control("POST", "/restore", append([]byte("SQLite format 3\x00"), make([]byte, 200)...)).want(400)
	w.advance(time.Hour)
	require.Equal(t, []string{"2026-12-01T09:00:00.000Z completed"}, runs())
}
