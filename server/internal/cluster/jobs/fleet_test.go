package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/cluster/lease"
)

func TestMain(m *testing.M) { os.Exit(testkit.RunWithPostgres(m)) }

// fleet is an installation in a schema of its own, whose processes are queues of
// this one.
type fleet struct {
	t      testing.TB
	schema string
	host   string
	port   int
	pool   *pgxpool.Pool // beside all processes
	log    *records
}

func newFleet(t testing.TB, schema string) *fleet {
	t.Helper()
	s := testkit.StartPostgres(t)
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	f := &fleet{t: t, schema: schema, host: s.Folder, port: s.Port, log: &records{}}
	f.pool = f.connect()
	f.execute("DROP SCHEMA IF EXISTS " + schema + " CASCADE")
	f.execute("CREATE SCHEMA " + schema)
	steps, err := os.ReadFile("../../store/migrations/postgres/0002_shared.sql")
	require.NoError(t, err)
	f.execute(regexp.MustCompile(`(?s)CREATE TABLE processes \(.*?\n\);`).FindString(string(steps)))
	return f
}

func (f *fleet) connect() *pgxpool.Pool {
	f.t.Helper()
	pool, err := pgxpool.New(context.Background(), fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=postgres search_path=%s pool_max_conns=4",
		f.host, f.port, testkit.PostgresUser, testkit.PostgresPassword, f.schema))
	require.NoError(f.t, err)
	f.t.Cleanup(pool.Close)
	return pool
}

func (f *fleet) execute(statement string, args ...any) {
	f.t.Helper()
	_, err := f.pool.Exec(context.Background(), statement, args...)
	require.NoError(f.t, err)
}

// process starts one whose connections are its own. It is stopped when the test ends.
func (f *fleet) process(name string, workers int, work func(context.Context, Run) (bool, error)) *Queue {
	f.t.Helper()
	return f.skewed(name, workers, time.Now, work)
}

func (f *fleet) skewed(name string, workers int, own func() time.Time, work func(context.Context, Run) (bool, error)) *Queue {
	f.t.Helper()
	ctx := context.Background()
	pool := f.connect()
	require.NoError(f.t, lease.New(pool, name).Enter(ctx, lease.Process{}))
	q, err := open(ctx, Options{Pool: pool, Schema: f.schema, Process: name, Workers: workers, Work: work, Log: slog.New(f.log)}, own)
	require.NoError(f.t, err)
	require.NoError(f.t, q.Start(ctx))
	f.t.Cleanup(func() { require.NoError(f.t, q.Stop(ctx)) })
	return q
}

// add enqueues runs, each in a transaction of its own.
func (f *fleet) add(q *Queue, runs ...Run) {
	f.t.Helper()
	for _, run := range runs {
		tx, err := f.pool.Begin(context.Background())
		require.NoError(f.t, err)
		require.NoError(f.t, q.Add(context.Background(), tx, run))
		require.NoError(f.t, tx.Commit(context.Background()))
	}
}

// number reads one.
func (f *fleet) number(query string, args ...any) (n int) {
	f.t.Helper()
	require.NoError(f.t, f.pool.QueryRow(context.Background(), query, args...).Scan(&n))
	return n
}

// until asks again and again.
func (f *fleet) until(query string, args ...any) {
	f.t.Helper()
	for f.number(query, args...) == 0 {
	}
}

// completed waits until so many jobs are.
func (f *fleet) completed(n int) {
	f.t.Helper()
	f.until("SELECT (count(*) = $1)::int FROM river_job WHERE state = 'completed'", n)
}

// told waits until something was logged.
func (f *fleet) told(message string) {
	f.t.Helper()
	for len(f.log.told(message)) == 0 {
		f.number("SELECT 1")
	}
}

// records keep what was logged.
type records struct {
	mu   sync.Mutex
	said []slog.Record
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }

func (r *records) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, record)
	return nil
}

// WithAttrs keeps the attributes with each record.
func (r *records) WithAttrs(attrs []slog.Attr) slog.Handler { return with{r, attrs} }

func (r *records) WithGroup(string) slog.Handler { return r }

type with struct {
	*records
	attrs []slog.Attr
}

func (w with) Handle(ctx context.Context, record slog.Record) error {
	record.AddAttrs(w.attrs...)
	return w.records.Handle(ctx, record)
}

func (w with) WithAttrs(attrs []slog.Attr) slog.Handler {
	return with{w.records, append(append([]slog.Attr{}, w.attrs...), attrs...)}
}

// told lists the records with a message: their attributes as text.
func (r *records) told(message string) (all []map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.said {
		if record.Message != message {
			continue
		}
		attrs := map[string]string{}
		record.Attrs(func(a slog.Attr) bool {
			attrs[a.Key] = a.Value.String()
			return true
		})
		all = append(all, attrs)
	}
	return all
}
