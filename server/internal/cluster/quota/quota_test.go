package quota

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// installation makes the table in a schema of the test, as the store does, and
// gives connections for one process after the other.
func installation(t testing.TB, schema string) (process func() *pgxpool.Pool) {
	t.Helper()
	s := testkit.StartPostgres(t)
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return goleak.Find(before) == nil }, 10*time.Second, time.Millisecond)
	})
	process = func() *pgxpool.Pool {
		pool, err := pgxpool.New(context.Background(), fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=postgres search_path=%s pool_max_conns=4",
			s.Folder, s.Port, testkit.PostgresUser, testkit.PostgresPassword, schema))
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	pool := process()
	steps, err := os.ReadFile("../../store/migrations/postgres/0002_shared.sql")
	require.NoError(t, err)
	execute(t, pool, "DROP SCHEMA IF EXISTS "+schema+" CASCADE")
	execute(t, pool, "CREATE SCHEMA "+schema)
	execute(t, pool, regexp.MustCompile(`(?s)CREATE UNLOGGED TABLE limits.*?;\n`).FindString(string(steps)))
	execute(t, pool, regexp.MustCompile(`(?s)INSERT INTO limits.*?;\n`).FindString(string(steps)))
	return process
}

func execute(t require.TestingT, pool *pgxpool.Pool, statement string, args ...any) {
	_, err := pool.Exec(context.Background(), statement, args...)
	require.NoError(t, err)
}

// drive sends as fast as a limiter lets it from so many senders, until the end.
func drive(l *pace.Limiter, senders int, end time.Time) (sent []time.Time) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for range senders {
		all.Go(func() {
			for {
				taken := time.Now()
				if !taken.Before(end) {
					return
				}
				if wait := l.Take(taken, nil, 0); wait > 0 {
					time.Sleep(wait)
					continue
				}
				if !l.Still(taken, nil, 0) {
					continue
				}
				now := time.Now()
				l.Written(now, nil, 0)
				mu.Lock()
				sent = append(sent, now)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return sent
}

// densest is the most of any second.
func densest(sent []time.Time) (most int) {
	slices.SortFunc(sent, time.Time.Compare)
	from := 0
	for i, at := range sent {
		for at.Sub(sent[from]) >= time.Second {
			from++
		}
		most = max(most, i+1-from)
	}
	return most
}
