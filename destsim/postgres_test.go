package destsim

import (
	"context"
	"fmt"
	"hash/fnv"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/testkit"
)

var schemas atomic.Int64

// postgresURL is a store of its own for a test.
func postgresURL(t testing.TB) string {
	return databaseURL(testkit.StartPostgres(t), fmt.Sprintf("test_%d", schemas.Add(1)))
}

func databaseURL(server testkit.Postgres, schema string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?schema=%s", testkit.PostgresUser, url.QueryEscape(testkit.PostgresPassword), server.Port, schema)
}

// connect opens a connection that looks into the schema of a store.
func connect(t *testing.T, store string) *pgx.Conn {
	conn, err := pgx.Connect(context.Background(), strings.Replace(store, "?schema=", "?search_path=", 1))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// tell runs a statement beside the simulators, in the schema of a store.
func tell(t *testing.T, store, statement string, args ...any) {
	_, err := connect(t, store).Exec(context.Background(), statement, args...)
	require.NoError(t, err)
}

// replicas are two simulators on one store.
func replicas(t *testing.T, config Config) (a, b *Sim, store string) {
	config.Store = postgresURL(t)
	return newSim(t, config), newSim(t, config), config.Store
}

// TestReplicasAreOneDestination: what one of them was told, the other answers
// on its next call.
func TestReplicasAreOneDestination(t *testing.T) {
	a, b, shared := replicas(t, Config{Token: "secret"})
	fields := func(s *Sim, token string) string {
		return post(s, `{"jsonrpc":"2.0","id":"1","method":"list_fields","params":{"object":{"object_api_name":"contact","label":"Contact"}}}`,
			"Authorization", "Bearer "+token).Body.String()
	}
	control := func(s *Sim, path, body string) string {
		w := ask(s, http.MethodPost, path, body)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return w.Body.String()
	}
	require.NotContains(t, fields(b, "secret"), "nickname")
	control(a, "/_control/schema", `{"action":"add_field","object":"contact","definition":{"name":"nickname","type":"string"}}`)
	require.Contains(t, fields(b, "secret"), "nickname")
	control(b, "/_control/schema", `{"action":"set_rate_limit","rate_limit":7}`)
	require.Equal(t, "7", post(a, "{}").Header().Get("X-RateLimit-Limit"))
	control(b, "/_control/hooks/alter_schema", `{"object":"contact"}`)
	require.Contains(t, fields(a, "secret"), alteredField)
	control(a, "/_control/hooks/alter_schema", `{"object":"contact","action":"end"}`)
	require.NotContains(t, fields(b, "secret"), alteredField)
	control(a, "/_control/hooks/rotate_token", `{}`)
	require.Contains(t, fields(b, "secret"), "authentication failed")
	require.Contains(t, fields(b, "secret-rotated"), "nickname")
	control(b, "/_control/hooks/break_downstream", `{}`)
	require.NoError(t, a.refresh())
	require.True(t, a.broken.Load())
	require.Contains(t, ask(a, http.MethodGet, "/_control/counts", "").Body.String(), `"of":"this process"`)
	control(b, "/_control/reset", "")
	require.NotContains(t, fields(a, "secret"), "nickname")

	_, err := New(Config{Store: shared, RateLimit: 99})
	require.ErrorIs(t, err, store.ErrOtherBase)
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	newSim(t, Config{Store: shared, RateLimit: 99}) // when no other one runs, its configuration counts
}

// TestAnEndedSimulatorIsWaitedFor: the connection of one that has ended outlives it for a
// moment; it is no other one that runs.
func TestAnEndedSimulatorIsWaitedFor(t *testing.T) {
	shared := postgresURL(t)
	require.NoError(t, newSim(t, Config{Store: shared}).Close())
	ended := connect(t, shared)
	ctx := context.Background()
	// The lock of those that run, which its connection holds.
	class := fnv.New32a()
	_, schema, _ := strings.Cut(shared, "?schema=")
	_, _ = class.Write([]byte("destsim " + schema))
	_, err := ended.Exec(ctx, "SELECT pg_advisory_lock_shared($1, 2)", int32(class.Sum32()))
	require.NoError(t, err)
	_, err = New(Config{Store: shared, RateLimit: 99})
	require.ErrorIs(t, err, store.ErrOtherBase, "the lock is that of one that runs")
	noticed := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() { noticed <- ended.Close(ctx) })
	newSim(t, Config{Store: shared, RateLimit: 99})
	require.NoError(t, <-noticed)
}

// TestReplicasWriteTheSameKeys: each batch has its full results, and each key is
// one record, whoever was first.
func TestReplicasWriteTheSameKeys(t *testing.T) {
	a, b, _ := replicas(t, Config{})
	var wg sync.WaitGroup
	for n := range 12 {
		s := []*Sim{a, b}[n%2]
		operation := []string{"upsert", "upsert", "delete", "upsert"}[n%4]
		wg.Go(func() {
			for round := range 6 {
				var records []string
				for i := range 60 {
					record := fmt.Sprintf(`{"email":"k%d","last_name":"n%d","first_name":"n%d"}`, (i*(2*n+1)+round)%97, n, n)
					if operation == "delete" {
						record = fmt.Sprintf(`{"email":"k%d"}`, (i*(2*n+1)+round)%97)
					}
					records = append(records, record)
				}
				for _, word := range words(t, invoke(s, rpc.MethodSyncBatch, planOf(s, "contact", operation, "email", records...))) {
					if word != "ok" {
						t.Errorf("%s: %s", operation, word)
					}
				}
			}
		})
	}
	wg.Wait()
	page, total, err := a.Records("contact", 0, 1000)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, r := range page {
		key, _ := store.Member(r.Fields, store.Quote("email"))
		last, _ := store.Member(r.Fields, store.Quote("last_name"))
		first, _ := store.Member(r.Fields, store.Quote("first_name"))
		require.Equal(t, string(last), string(first), "half a record")
		require.False(t, seen[string(key)], "two records of key %s", key)
		seen[string(key)] = true
	}
	require.Len(t, page, total)
	require.Equal(t, []string{"ok"}, write(t, b, "contact", "upsert", `{"email":"k0","last_name":"z","first_name":"z"}`))
	require.Equal(t, `{"email":"k0","last_name":"z","first_name":"z"}`, stored(t, a, "contact", "email", `"k0"`))
}

// TestReplicasInsertOnce: of many inserts of one key, one creates it.
func TestReplicasInsertOnce(t *testing.T) {
	a, b, _ := replicas(t, Config{})
	answers := make([][]string, 12)
	var wg sync.WaitGroup
	for n := range answers {
		wg.Go(func() {
			answers[n] = write(t, []*Sim{a, b}[n%2], "contact", "insert", `{"email":"a","last_name":"x"}`, fmt.Sprintf(`{"email":"b%d","last_name":"x"}`, n))
		})
	}
	wg.Wait()
	created := 0
	for _, answer := range answers {
		require.Equal(t, "ok", answer[1])
		if answer[0] == "ok" {
			created++
			continue
		}
		require.Equal(t, alreadyPresent, answer[0])
	}
	require.Equal(t, 1, created)
	require.Equal(t, `{"email":"a","last_name":"x"}`, stored(t, a, "contact", "email", `"a"`))
}

// TestReplicasCreateFields: a field that one batch creates is known to all, and
// to those that start when none runs any more.
func TestReplicasCreateFields(t *testing.T) {
	a, b, store := replicas(t, Config{})
	require.Equal(t, []string{"ok"}, write(t, a, "event", "upsert", `{"event_id":"1","colour":"red"}`))
	require.NoError(t, b.refresh())
	require.NotNil(t, b.catalogue.Load().byName["event"].byName["colour"])
	require.Equal(t, []string{"ok"}, write(t, b, "event", "upsert", `{"event_id":"2","colour":"blue"}`))
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	again := newSim(t, Config{Store: store})
	require.NotNil(t, again.catalogue.Load().byName["event"].byName["colour"])
	require.Equal(t, `{"event_id":"2","colour":"blue"}`, stored(t, again, "event", "event_id", `"2"`))
}

// TestReplicasShareLimits: requests of all of them come out of one bucket.
func TestReplicasShareLimits(t *testing.T) {
	a, b, _ := replicas(t, Config{EnforceLimits: true, RateLimit: 3})
	refused := 0
	for n := range 20 {
		if post([]*Sim{a, b}[n%2], `{"jsonrpc":"2.0","id":"1","method":"test_connection","params":{}}`).Code == http.StatusTooManyRequests {
			refused++
		}
	}
	require.Positive(t, refused)
	ok, err := a.common.Take("a bucket", 5, 1, 5)
	require.NoError(t, err)
	require.True(t, ok)
	ok, err = b.common.Take("a bucket", 5, 1, 5)
	require.NoError(t, err)
	require.False(t, ok)
	ok, err = b.common.Take("another", 6, 1, 5)
	require.NoError(t, err)
	require.False(t, ok, "more than fits in")
}

// TestPostgresLosesItsConnection: the batch under way fails as a whole, and the
// next one finds nothing of it.
func TestPostgresLosesItsConnection(t *testing.T) {
	a, b, store := replicas(t, Config{})
	require.Equal(t, []string{"ok"}, write(t, a, "contact", "upsert", `{"email":"a","last_name":"1"}`))
	ctx := context.Background()
	tx, err := connect(t, store).Begin(ctx)
	require.NoError(t, err)
	_, err = tx.Exec(ctx, "LOCK TABLE keys IN SHARE ROW EXCLUSIVE MODE") // reading goes on, writing waits
	require.NoError(t, err)
	done := make(chan []string)
	go func() {
		done <- write(t, a, "contact", "upsert", `{"email":"a","last_name":"2"}`, `{"email":"b","last_name":"2"}`)
	}()
	for ended := 0; ended == 0; {
		require.NoError(t, tx.QueryRow(ctx, `SELECT count(pg_terminate_backend(a.pid)) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE NOT l.granted AND l.relation = 'keys'::regclass`).Scan(&ended))
	}
	answer := <-done
	require.Len(t, answer, 1)
	require.Contains(t, answer[0], "the batch could not be stored")
	require.NotContains(t, answer[0], testkit.PostgresPassword)
	require.NoError(t, tx.Rollback(ctx))
	for _, s := range []*Sim{a, b} {
		require.Equal(t, `{"email":"a","last_name":"1"}`, stored(t, s, "contact", "email", `"a"`))
		require.Empty(t, stored(t, s, "contact", "email", `"b"`))
	}
	require.NoError(t, a.Restart())
	require.Equal(t, []string{"ok", "ok"}, write(t, a, "contact", "upsert", `{"email":"a","last_name":"2"}`, `{"email":"b","last_name":"2"}`))
	require.Equal(t, `{"email":"b","last_name":"2"}`, stored(t, b, "contact", "email", `"b"`))
}

// TestPostgresThatCannotBeUsed: every reason is said, and never the password.
func TestPostgresThatCannotBeUsed(t *testing.T) {
	server := testkit.StartPostgres(t)
	free, err := testkit.FreePort()
	require.NoError(t, err)
	store := postgresURL(t)
	newer := newSim(t, Config{Store: store})
	require.NoError(t, newer.Close())
	tell(t, store, "UPDATE destination SET version = 99")
	foreign := postgresURL(t)
	tell(t, foreign, `CREATE SCHEMA test_foreign; CREATE TABLE test_foreign.something (a integer)`)
	base := databaseURL(server, "test_x")
	for name, test := range map[string]struct{ store, want string }{
		"nobody there":   {strings.Replace(base, fmt.Sprint(server.Port), fmt.Sprint(free), 1), "cannot reach PostgreSQL: dial"},
		"password":       {strings.Replace(base, url.QueryEscape(testkit.PostgresPassword), "wr0ng-s3cret", 1), "password authentication failed"},
		"database":       {strings.Replace(base, "/postgres?", "/nowhere?", 1), `database "nowhere" does not exist`},
		"newer":          {store, "is of version 99"},
		"something else": {databaseURL(server, "test_foreign"), "holds something else"},
		"no URL":         {"postgres://u:wr0ng-s3cret@h:port/db", "store: the URL of the database is not one"},
		"parameter":      {base + "&colour=red", "unrecognized configuration parameter"},
		"schema":         {databaseURL(server, "pg_mine"), `schema "pg_mine" cannot be one`},
		"connections":    {base + "&pool_max_conns=2", "pool_max_conns must be 5 or more"},
	} {
		_, err := New(Config{Store: test.store})
		require.ErrorContains(t, err, test.want, name)
		require.NotContains(t, err.Error(), testkit.PostgresPassword, name)
		require.NotContains(t, err.Error(), "s3cret", name)
	}
}

// TestPostgresSnapshots go into every store and back.
func TestPostgresSnapshots(t *testing.T) {
	from, other, _ := replicas(t, Config{})
	var records []string
	for i := range 4010 { // more than a store keeps in memory while it is restored
		records = append(records, fmt.Sprintf(`{"email":"k%d","last_name":"x"}`, i))
	}
	require.Equal(t, "ok", write(t, from, "contact", "upsert", records...)[0])
	_, err := other.changeSchema(schemaChange{Action: "remove_object", Object: "order"})
	require.NoError(t, err)
	require.NoError(t, from.refresh())
	before := text(t, from)
	stores(t, func(t *testing.T, config Config) {
		to := newSim(t, config)
		require.NoError(t, to.Restore(strings.NewReader(before)))
		require.Equal(t, before, text(t, to))
		require.Equal(t, []string{"ok"}, write(t, to, "contact", "update", `{"email":"k7","last_name":"y"}`))
	})
	require.ErrorContains(t, other.Restore(strings.NewReader(before[:len(before)/2])), "restore snapshot: line")
	require.Equal(t, before, text(t, from))
	require.NoError(t, other.Restore(strings.NewReader(before)))
	require.Equal(t, []string{alreadyPresent}, write(t, from, "contact", "insert", `{"email":"k7","last_name":"y"}`))
	require.NoError(t, other.Reset())
	require.Empty(t, stored(t, from, "contact", "email", `"k7"`))
}
