package jobs

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"
)

// Whoever is free takes a run, and no other process does; what was rolled back is no run.
func TestEachRunIsWorkedOnce(t *testing.T) {
	f := newFleet(t, "jobs_once")
	ctx := t.Context()
	done := make(chan Run, 100)
	work := func(_ context.Context, run Run) (bool, error) {
		done <- run
		return false, nil
	}
	api := f.process("api", 0, nil)
	var want []Run
	for i := range int64(12) {
		run := Run{ID: 100 + i, WorkspaceID: 7, SyncID: i % 5, Turn: 1}
		tx, err := f.pool.Begin(ctx)
		require.NoError(t, err)
		require.NoError(t, api.Add(ctx, tx, Run{ID: 900 + i, SyncID: 1, Turn: 1}))
		require.NoError(t, tx.Rollback(ctx))
		f.add(api, run)
		want = append(want, run)
	}
	const waiting = "SELECT count(*) FROM river_job WHERE state <> 'completed'"
	require.Equal(t, 12, f.number(waiting))
	for _, name := range []string{"one", "two", "three"} {
		f.process(name, 2, work)
	}
	for i := range int64(12) { // and some while they work
		run := Run{ID: 200 + i, WorkspaceID: 8, SyncID: i % 5, Turn: 1}
		f.add(api, run)
		want = append(want, run)
	}
	var got []Run
	for range want {
		got = append(got, <-done)
	}
	slices.SortFunc(got, func(a, b Run) int { return int(a.ID - b.ID) })
	require.Equal(t, want, got)
	f.completed(24)
	require.Empty(t, done)
	require.Equal(t, 24, f.number("SELECT count(*) FROM river_job"))
	require.Zero(t, f.number(waiting))
}

// A turn is there once, the next one beside it, and one that has ended is in no one's
// way.
func TestTurnsAreUnique(t *testing.T) {
	f := newFleet(t, "jobs_turns")
	ctx := t.Context()
	begun, release := make(chan Run), make(chan struct{})
	q := f.process("one", 2, func(_ context.Context, run Run) (bool, error) {
		begun <- run
		<-release
		return false, nil
	})
	first, second := Run{ID: 5, WorkspaceID: 1, SyncID: 3, Turn: 1}, Run{ID: 5, WorkspaceID: 1, SyncID: 3, Turn: 2}
	tx, err := f.pool.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, q.Add(ctx, tx, first))
	require.NoError(t, q.Add(ctx, tx, first))
	require.NoError(t, tx.Commit(ctx))
	require.Equal(t, first, <-begun)
	f.add(q, first)
	require.Equal(t, 1, f.number("SELECT count(*) FROM river_job"))
	f.add(q, second)
	require.Equal(t, second, <-begun)
	f.add(q, Run{ID: 5, SyncID: 4, Turn: 1}) // of another sync: it waits
	require.Equal(t, 3, f.number("SELECT count(*) FROM river_job"))
	close(release)
	<-begun
	f.completed(3)
	f.add(q, first)
	require.Equal(t, first, <-begun)
}

// Again means at once, and costs no attempt.
func TestARunGoesOnAgain(t *testing.T) {
	f := newFleet(t, "jobs_again")
	calls := make(chan int, 10)
	n := 0
	q := f.process("one", 1, func(context.Context, Run) (bool, error) {
		n++
		calls <- n
		return n < 4, nil
	})
	f.add(q, Run{ID: 1, SyncID: 1, Turn: 1})
	for want := 1; want <= 4; want++ {
		require.Equal(t, want, <-calls)
	}
	f.until("SELECT count(*) FROM river_job WHERE state = 'completed' AND attempt = 1 AND errors IS NULL")
}

// A run whose worker fails or panics is tried again, a little later each time by the
// clock of the database, whatever the clock of the process says.
func TestAnErrorIsTriedAgain(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "jobs_error_"+name)
			calls, n := make(chan int), 0
			q := f.skewed("one", 1, func() time.Time { return time.Now().Add(ahead) }, func(context.Context, Run) (bool, error) {
				n++
				calls <- n
				switch n {
				case 1:
					return true, errors.New("the disk is full")
				case 2:
					panic("a bug")
				case 3:
					return true, nil
				}
				return false, nil
			})
			f.add(q, Run{ID: 11, SyncID: 12, Turn: 13})
			for call := 1; call <= 2; call++ {
				var before time.Time
				require.NoError(t, f.pool.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&before))
				require.Equal(t, call, <-calls)
				f.until("SELECT count(*) FROM river_job WHERE array_length(errors, 1) = $1", call)
				wait := []float64{0, 1, 16}[call]
				// An hour would show; that the machine is slow must not. The job may be at
				// work again by now: it keeps the time that it was put off to.
				require.Equal(t, 1, f.number(`SELECT count(*) FROM river_job
					WHERE scheduled_at BETWEEN $2::timestamptz + $1 * interval '0.85 second' AND clock_timestamp() + $1 * interval '1.15 second'`, wait, before))
				f.execute("UPDATE river_job SET state = 'available', scheduled_at = now() WHERE state <> 'running'")
				f.execute("SELECT pg_notify($1, $2)", q.wake, notice)
			}
			require.Equal(t, 3, <-calls)
			require.Equal(t, 4, <-calls)
			f.completed(1)
			told := f.log.told("run cannot be worked on; it is tried again")
			require.Len(t, told, 2)
			for i, key := range []string{"error", "panic"} {
				require.Equal(t, "11 12 13", told[i]["run"]+" "+told[i]["sync"]+" "+told[i]["turn"])
				require.Equal(t, []string{"the disk is full", "a bug"}[i], told[i][key])
			}
		})
	}
}

// A process that stops hands its runs back, and they go on elsewhere before all that
// waits.
func TestStopHandsOver(t *testing.T) {
	for name, end := range map[string]struct {
		again bool
		err   error
	}{"handed back": {true, nil}, "stopped": {false, ErrStop}, "failed": {false, errors.New("cut off")}} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "jobs_stop_"+name[:4])
			begun, cause := make(chan Run), make(chan error, 1)
			one := f.process("one", 1, func(ctx context.Context, run Run) (bool, error) {
				begun <- run
				<-ctx.Done()
				cause <- context.Cause(ctx)
				return end.again, end.err
			})
			first, second := Run{ID: 1, SyncID: 1, Turn: 1}, Run{ID: 2, SyncID: 2, Turn: 1}
			f.add(one, first)
			require.Equal(t, first, <-begun)
			f.add(one, second)
			require.NoError(t, one.Stop(t.Context()))
			require.Equal(t, ErrStop, <-cause)
			require.Equal(t, 2, f.number("SELECT count(*) FROM river_job WHERE state = 'available' AND attempt = 0"))
			var mu sync.Mutex
			var order []Run
			f.process("two", 1, func(_ context.Context, run Run) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, run)
				return false, nil
			})
			f.completed(2)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, []Run{first, second}, order)
			if name == "failed" {
				require.Len(t, f.log.told("run failed while the worker stopped; it is handed back"), 1)
			}
		})
	}
}

// Stop does not wait for longer than it may.
func TestStopGivesUp(t *testing.T) {
	f := newFleet(t, "jobs_stuck")
	begun, release := make(chan struct{}), make(chan struct{})
	q := f.process("one", 1, func(context.Context, Run) (bool, error) {
		close(begun)
		<-release
		return true, nil
	})
	f.add(q, Run{ID: 1, SyncID: 1, Turn: 1})
	<-begun
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := q.Stop(over)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "stop workers: runs are still at work")
	close(release)
	require.NoError(t, q.Stop(t.Context()))
	require.Equal(t, 1, f.number("SELECT count(*) FROM river_job WHERE state = 'available'"))
}

// Lost are the runs of which no job is left that anybody will work on.
func TestLostRuns(t *testing.T) {
	f := newFleet(t, "jobs_lost")
	ctx := t.Context()
	begun, release := make(chan Run), make(chan struct{})
	q := f.process("one", 1, func(_ context.Context, run Run) (bool, error) {
		begun <- run
		<-release
		return false, nil
	})
	working, waiting, gone := Run{1, 7, 1, 1}, Run{2, 7, 2, 1}, Run{3, 7, 3, 1}
	f.add(q, working)
	<-begun
	f.add(q, waiting)
	lost := func(runs ...Run) []Run {
		t.Helper()
		found, err := q.Lost(ctx, runs)
		require.NoError(t, err)
		return found
	}
	require.Empty(t, lost())
	require.Equal(t, []Run{gone}, lost(working, gone, waiting))
	next := working
	next.Turn++
	require.Equal(t, []Run{next}, lost(next, working))
	f.execute("UPDATE processes SET seen = seen - interval '11 seconds'")
	require.Equal(t, []Run{gone, working}, lost(gone, waiting, working))
	f.execute("DELETE FROM processes")
	require.Equal(t, []Run{working}, lost(working, waiting))
	f.add(q, next) // the next turn is no duplicate of the one that is left behind
	require.Equal(t, []Run{working}, lost(working, next))
	close(release)
	<-begun
	<-begun
	f.completed(3)
	require.Equal(t, []Run{working}, lost(working)) // its work ended, and the run is still open
}

// A job that was given to a process while its connection broke is found by that
// process, at the second look, and one that it works on is not taken from it.
func TestAJobThatNeverArrived(t *testing.T) {
	f := newFleet(t, "jobs_orphan")
	ctx := t.Context()
	begun, release := make(chan Run), make(chan struct{})
	q := f.process("one", 2, func(_ context.Context, run Run) (bool, error) {
		begun <- run
		<-release
		return false, nil
	})
	tx, err := f.pool.Begin(ctx)
	require.NoError(t, err)
	require.NoError(t, q.Add(ctx, tx, Run{ID: 1, SyncID: 1, Turn: 1}))
	_, err = tx.Exec(ctx, "UPDATE river_job SET state = 'running', attempt = 1, attempted_by = '{other,one}', attempted_at = now()")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(ctx))
	f.add(q, Run{ID: 2, SyncID: 1, Turn: 1})
	require.Equal(t, int64(2), (<-begun).ID)
	require.NoError(t, q.look(ctx))
	require.Equal(t, 2, f.number("SELECT count(*) FROM river_job WHERE state = 'running'"))
	require.NoError(t, q.look(ctx))
	require.Equal(t, int64(1), (<-begun).ID)
	require.Len(t, f.log.told("runs were given to this process and never arrived; they are handed back"), 1)
	close(release)
	f.completed(2)
	require.NoError(t, q.Stop(ctx))
	require.ErrorIs(t, q.Start(ctx), ErrStop)
}

// Rows that River cannot read come to no one, and take with them what was given out
// together with them. They are made readable, and hold nothing up for long.
func TestRowsThatCannotBeRead(t *testing.T) {
	f := newFleet(t, "jobs_unread")
	ctx := t.Context()
	api := f.process("api", 0, nil)
	garbage := []string{
		"attempted_by = ARRAY[NULL]::text[]", "tags = ARRAY[NULL]::text[]", "scheduled_at = '-infinity'", "created_at = 'infinity'",
		"errors = ARRAY['7'::jsonb]", "metadata = '[]'",
	}
	var want, got []int64
	for i, set := range garbage {
		f.add(api, Run{ID: int64(i + 1), SyncID: 1, Turn: 1})
		f.execute("UPDATE river_job SET "+set+" WHERE args ->> 'run' = $1::text", strconv.Itoa(i+1))
		want = append(want, int64(i+1))
	}
	f.add(api, Run{ID: 100, SyncID: 1, Turn: 1})
	want = append(want, 100)
	done := make(chan int64, len(want))
	q := f.process("one", len(want), func(_ context.Context, run Run) (bool, error) {
		done <- run.ID
		return false, nil
	})
	f.until("SELECT (count(*) = 0)::int FROM river_job WHERE state = 'available'")
	for range 2 {
		require.NoError(t, q.look(ctx))
	}
	for range want {
		got = append(got, <-done)
	}
	require.ElementsMatch(t, want, got)
	f.completed(len(want))
}

// A pause of which the table knows nothing was told by a user who may do no more
// than that: it is none. Any other holds until its end, and is said.
func TestAPauseThatIsNone(t *testing.T) {
	f := newFleet(t, "jobs_paused")
	ctx := t.Context()
	done := make(chan int64, 3)
	q := f.process("one", 1, func(_ context.Context, run Run) (bool, error) {
		done <- run.ID
		return false, nil
	})
	f.add(q, Run{ID: 1, SyncID: 1, Turn: 1})
	<-done
	f.execute(`SELECT pg_notify('jobs_paused.river_control', '{"action": "pause", "queue": "*"}')`)
	f.told("the queue was paused by a notice alone; it goes on")
	f.add(q, Run{ID: 2, SyncID: 1, Turn: 1})
	<-done
	require.NoError(t, q.client.QueuePause(ctx, river.QueueDefault, nil))
	f.told("the queue is paused: no run is worked on until it is resumed")
	f.add(q, Run{ID: 3, SyncID: 1, Turn: 1})
	require.NoError(t, q.look(ctx))
	require.Empty(t, done)
	require.NoError(t, q.client.QueueResume(ctx, river.QueueDefault, nil))
	<-done
	require.NoError(t, q.look(ctx))
	f.told("the queue goes on")
}

// What a dead process has left behind is cleared away after a week: a process is given
// the turn, which is over.
func TestRiverClearsAway(t *testing.T) {
	f := newFleet(t, "jobs_cleared")
	api := f.process("api", 0, nil)
	f.add(api, Run{ID: 1, SyncID: 1, Turn: 1}, Run{ID: 2, SyncID: 1, Turn: 1})
	f.execute("UPDATE river_job SET state = 'running', attempt = 1, attempted_by = '{dead}', attempted_at = now() - interval '6 days' - id * interval '1 day'")
	f.process("one", 1, func(context.Context, Run) (bool, error) { return false, nil })
	f.until("SELECT count(*) FROM river_job WHERE state <> 'running'")
	require.Equal(t, 1, f.number("SELECT count(*) FROM river_job WHERE state = 'running' AND args @> '{\"run\": 1}'"))
}

func TestOpenRefuses(t *testing.T) {
	f := newFleet(t, "jobs_refused")
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no pool":    {func(o *Options) { o.Pool = nil }, "a pool and the id of the process are needed"},
		"no process": {func(o *Options) { o.Process = "" }, "a pool and the id of the process are needed"},
		"no work":    {func(o *Options) { o.Workers = 1 }, "workers have nothing to do"},
		"too many": {func(o *Options) {
			o.Workers, o.Work = 10_001, func(context.Context, Run) (bool, error) { return false, nil }
		}, "invalid number of workers"},
		"negative": {func(o *Options) {
			o.Workers, o.Work = -1, func(context.Context, Run) (bool, error) { return false, nil }
		}, "invalid number of workers"},
		"a long schema": {func(o *Options) { o.Schema = strings.Repeat("s", 47) }, "the name of the schema sss"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Pool: f.pool, Schema: f.schema, Process: "one"}
			c.change(&o)
			_, err := Open(t.Context(), o)
			require.ErrorContains(t, err, c.want)
		})
	}
}
