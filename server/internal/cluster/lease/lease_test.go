package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunWithPostgres(m)) }

// tables makes the two tables in a schema of the test, as the store does.
func tables(t *testing.T, schema string) *pgxpool.Pool {
	t.Helper()
	s := testkit.StartPostgres(t)
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	pool, err := pgxpool.New(t.Context(), fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=postgres search_path=%s",
		s.Folder, s.Port, testkit.PostgresUser, testkit.PostgresPassword, schema))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	steps, err := os.ReadFile("../../store/migrations/postgres/0002_shared.sql")
	require.NoError(t, err)
	execute(t, pool, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
	execute(t, pool, "CREATE SCHEMA "+schema)
	made := regexp.MustCompile(`(?s)CREATE TABLE (leases|processes) \(.*?\n\);`).FindAllString(string(steps), -1)
	require.Len(t, made, 2)
	for _, table := range made {
		execute(t, pool, table)
	}
	return pool
}

func execute(t require.TestingT, pool *pgxpool.Pool, statement string, args ...any) {
	_, err := pool.Exec(context.Background(), statement, args...)
	require.NoError(t, err)
}

// runOut lets the time of a lease pass.
func runOut(t require.TestingT, pool *pgxpool.Pool, name string) {
	execute(t, pool, "UPDATE leases SET until = clock_timestamp() - interval '1 second' WHERE name = $1", name)
}

// holds asks in a transaction of its own.
func holds(ctx context.Context, pool *pgxpool.Pool, lease Lease) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	return Holds(ctx, tx, lease)
}

// What several holders may do follows from who took a lease last and whether it has
// run out.
func TestLeasesFollowTheModel(t *testing.T) {
	pool := tables(t, "lease_model")
	ctx := t.Context()
	round := 0
	rapid.Check(t, func(t *rapid.T) {
		round++
		type state struct {
			lease  Lease
			holder string // "": no one
			out    bool
		}
		holders := map[string]*Leases{"a": New(pool, "a"), "b": New(pool, "b"), "c": New(pool, "c")}
		names := []string{fmt.Sprintf("one %d", round), fmt.Sprintf("two %d", round)}
		now := map[string]*state{names[0]: {}, names[1]: {}}
		taken := map[string]map[string]Lease{names[0]: {}, names[1]: {}} // what each holder took last
		step := func(do func(s *state, name, who string)) func(*rapid.T) {
			return func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				do(now[name], name, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "holder"))
			}
		}
		// mine reports whether the last lease of a holder is the one that counts.
		mine := func(s *state, name, who string) bool { return s.holder == who && s.lease == taken[name][who] }
		t.Repeat(map[string]func(*rapid.T){
			"take": step(func(s *state, name, who string) {
				lease, err := holders[who].Take(ctx, name, time.Hour)
				if s.holder != "" && s.holder != who && !s.out {
					require.ErrorIs(t, err, ErrHeld)
					require.Zero(t, lease)
					return
				}
				require.NoError(t, err)
				require.Equal(t, Lease{name, s.lease.Fence + 1}, lease)
				*s, taken[name][who] = state{lease: lease, holder: who}, lease
			}),
			"keep": step(func(s *state, name, who string) {
				err := holders[who].Keep(ctx, taken[name][who], time.Hour)
				if !mine(s, name, who) {
					require.ErrorIs(t, err, ErrLost)
					return
				}
				require.NoError(t, err)
				s.out = false
			}),
			"give": step(func(s *state, name, who string) {
				require.NoError(t, holders[who].Give(ctx, taken[name][who]))
				if mine(s, name, who) {
					s.holder = ""
				}
			}),
			"run out": step(func(s *state, name, _ string) {
				runOut(t, pool, name)
				s.out = true
			}),
			"": func(t *rapid.T) {
				tx, err := pool.Begin(ctx)
				require.NoError(t, err)
				want := map[string]string{}
				for name, s := range now {
					for who := range holders {
						if err := Holds(ctx, tx, taken[name][who]); mine(s, name, who) {
							require.NoError(t, err)
						} else {
							require.ErrorIs(t, err, ErrLost)
						}
					}
					if s.holder != "" && !s.out {
						want[name] = s.holder
					}
				}
				require.NoError(t, tx.Rollback(ctx))
				held, err := holders["a"].Held(ctx, names...)
				require.NoError(t, err)
				require.Equal(t, want, held)
			},
		})
	})
}

// A process that stood still while its lease ran out finds another holder.
func TestAFrozenHolderHasLost(t *testing.T) {
	pool := tables(t, "lease_frozen")
	ctx := t.Context()
	frozen, other := New(pool, "frozen"), New(pool, "other")
	old, err := frozen.Take(ctx, "sync 1", time.Millisecond)
	require.NoError(t, err)
	_, err = other.Take(ctx, "sync 1", time.Hour)
	for errors.Is(err, ErrHeld) {
		_, err = other.Take(ctx, "sync 1", time.Hour)
	}
	require.NoError(t, err)
	require.ErrorIs(t, frozen.Keep(ctx, old, time.Hour), ErrLost)
	require.ErrorIs(t, holds(ctx, pool, old), ErrLost)
	require.ErrorIs(t, holds(ctx, pool, Lease{}), ErrLost)
	require.NoError(t, frozen.Give(ctx, old))
	held, err := frozen.Held(ctx)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"sync 1": "other"}, held)
	_, err = frozen.Take(ctx, "sync 1", time.Hour)
	require.ErrorIs(t, err, ErrHeld)
	require.EqualError(t, err, "take lease sync 1: the lease is held by another process")
}

// No one becomes the holder while a transaction counts on the fence before, and
// meanwhile that holder may still keep its lease.
func TestAChangeUnderAFenceKeepsOthersWaiting(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept %v", kept), func(t *testing.T) {
			pool := tables(t, fmt.Sprintf("lease_waits_%v", kept))
			ctx := t.Context()
			execute(t, pool, "CREATE TABLE written (what text)")
			one, two := New(pool, "one"), New(pool, "two")
			old, err := one.Take(ctx, "sync 1", time.Hour)
			require.NoError(t, err)
			runOut(t, pool, "sync 1")
			tx, err := pool.Begin(ctx)
			require.NoError(t, err)
			require.NoError(t, Holds(ctx, tx, old))

			type answer struct {
				lease Lease
				seen  int
				err   error
			}
			answers := make(chan answer, 1)
			go func() {
				lease, err := two.Take(ctx, "sync 1", time.Hour)
				var seen int
				err = errors.Join(err, pool.QueryRow(ctx, "SELECT count(*) FROM written").Scan(&seen))
				answers <- answer{lease, seen, err}
			}()
			for waiting := 0; waiting == 0; {
				require.NoError(t, pool.QueryRow(ctx, "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
			}
			require.NoError(t, holds(ctx, pool, old))
			if kept {
				require.NoError(t, one.Keep(ctx, old, time.Hour))
			}
			_, err = tx.Exec(ctx, "INSERT INTO written VALUES ('by the old fence')")
			require.NoError(t, err)
			require.Empty(t, answers)
			require.NoError(t, tx.Commit(ctx))
			got := <-answers
			if kept {
				require.ErrorIs(t, got.err, ErrHeld)
				require.NoError(t, holds(ctx, pool, old))
				return
			}
			require.NoError(t, got.err)
			require.Equal(t, Lease{"sync 1", old.Fence + 1}, got.lease)
			require.Equal(t, 1, got.seen)
			require.ErrorIs(t, holds(ctx, pool, old), ErrLost)
		})
	}
}

// Of many that want a name for the first time, and again when it has run out, one
// gets it.
func TestOneOfManyTakesIt(t *testing.T) {
	pool := tables(t, "lease_many")
	ctx := t.Context()
	for name := range 10 {
		name := fmt.Sprint(name)
		for fence := int64(1); fence <= 3; fence++ {
			var all sync.WaitGroup
			var mu sync.Mutex
			var winners []Lease
			for i := range 8 {
				all.Go(func() {
					lease, err := New(pool, fmt.Sprintf("%d %d", fence, i)).Take(ctx, name, time.Hour)
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						winners = append(winners, lease)
					} else if !errors.Is(err, ErrHeld) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			require.Equal(t, []Lease{{name, fence}}, winners)
			runOut(t, pool, name)
		}
	}
}

// A lease that no process can have taken, or of a clock that was set back, is over.
func TestAnImpossibleLease(t *testing.T) {
	pool := tables(t, "lease_impossible")
	ctx := t.Context()
	for i, until := range []string{"infinity", "-infinity", "tomorrow"} {
		name := fmt.Sprint(i)
		execute(t, pool, "INSERT INTO leases VALUES ($1, 7, 'ghost', $2::timestamptz + interval '2 days')", name, until)
		l := New(pool, "a")
		held, err := l.Held(ctx, name)
		require.NoError(t, err)
		require.Empty(t, held)
		taken, err := l.Take(ctx, name, time.Hour)
		require.NoError(t, err)
		require.Equal(t, Lease{name, 8}, taken)
	}
}

func TestErrorsNameTheLease(t *testing.T) {
	pool := tables(t, "lease_errors")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	l := New(pool, "a")
	_, err := l.Take(over, "leader", time.Hour)
	require.ErrorContains(t, err, "take lease leader: ")
	require.ErrorContains(t, l.Keep(over, Lease{"leader", 1}, time.Hour), "keep lease leader: ")
	require.ErrorContains(t, l.Give(over, Lease{"leader", 1}), "give lease leader: ")
	_, err = l.Held(over)
	require.ErrorContains(t, err, "read leases: ")
	require.ErrorContains(t, l.Enter(over, Process{}), "list process a: ")
	require.NoError(t, l.Beat(over)) // it is not on the list
	require.ErrorContains(t, l.Leave(over), "take process a off the list: ")
	_, err = l.Processes(over)
	require.ErrorContains(t, err, "list processes: ")
}
