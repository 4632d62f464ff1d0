package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/store"
)

// cord is the way of a process to the database, which can be cut.
type cord struct {
	net.Listener
	to    string
	mu    sync.Mutex
	ends  map[net.Conn]bool
	isCut bool
}

func newCord(t *testing.T) *cord {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := &cord{Listener: l, to: fmt.Sprintf("127.0.0.1:%d", testkit.StartPostgres(t).Port), ends: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { c.carry(in) })
		}
	})
	t.Cleanup(func() { c.cut(); _ = l.Close(); all.Wait() })
	return c
}

func (c *cord) carry(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer out.Close()
	c.mu.Lock()
	c.ends[in], c.ends[out] = true, true
	refused := c.isCut
	c.mu.Unlock()
	if refused {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(in, out)
		_ = in.Close()
	}()
	_, _ = io.Copy(out, in)
	_ = out.Close()
	<-back
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ends, in)
	delete(c.ends, out)
}

// cut ends all connections, and lets none begin until mend.
func (c *cord) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for end := range c.ends {
		_ = end.Close()
	}
}

func (c *cord) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = false
}

// apart is a process that serves the API and one that works, which has a cord.
func apart(t *testing.T, set func(*Config)) (w *world, worker *Server, c *cord) {
	t.Helper()
	url, c := postgresURL(testkit.StartPostgres(t)), newCord(t)
	dir := t.TempDir()
	w = newWorld(t, func(c *Config) {
		c.Store, c.MasterKey, c.Dir, c.Role, c.pulse = url, bytes.Repeat([]byte{7}, masterKeySize), dir, RoleAPI, quickPulse()
	})
	config := w.s.config.again()
	config.Role, config.Workers = RoleWorker, 1
	config.Store = fmt.Sprintf("postgres://%s:%s@%s/postgres?search_path=%s&sslmode=disable", testkit.PostgresUser, testkit.PostgresPassword, c.Addr(), w.s.store.Schema())
	if set != nil {
		set(&config)
	}
	worker, err := New(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { c.mend(); require.NoError(t, worker.Close()) })
	return w, worker, c
}

// waits waits until a run waits for the store, or is over.
func waits(t *testing.T, s *Server, run int64) {
	t.Helper()
	done, stuck := s.engine.Ends(run)
	require.NotNil(t, done)
	select {
	case <-stuck:
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the run goes on without its store")
	}
}

// atCall does something at the last of the calls that a rehearsal makes, when they are
// made again.
func (w *world) atCall(rehearse, do func()) (done <-chan struct{}) {
	var calls atomic.Int64
	count := func() { calls.Add(1) }
	w.onCall.Store(&count)
	rehearse()
	last, came := calls.Swap(0), make(chan struct{})
	require.NotZero(w.t, last)
	act := func() {
		if calls.Add(1) == last {
			do()
			close(came)
		}
	}
	w.onCall.Store(&act)
	return came
}

// TestPlanningWithoutTheStore: a run that cannot be planned because the store is away
// waits, and goes on when that is back. That is nothing that a run fails of.
func TestPlanningWithoutTheStore(t *testing.T) {
	w, worker, cord := apart(t, nil)
	id := w.newSync()
	cut := w.atCall(func() { // the last one of those by which a destination is asked
		w.table("DELETE FROM object_caches")
		require.NoError(t, w.s.destinations.Refresh(t.Context(), &store.Destination{Row: store.Row{ID: 1}, Type: "custom_api"}))
	}, cord.cut)
	w.table("DELETE FROM object_caches")
	run := w.trigger(id)
	<-cut
	waits(t, worker, run)
	cord.mend()
	w.control("POST", "/settle", nil).want(http.StatusOK)
	ended := w.shownRun(run)
	require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
	w.clean(id)
}

// TestRestartOfTheDatabase: all connections break at once, in the middle of a run that
// reads its source in the same database. The run goes on.
func TestRestartOfTheDatabase(t *testing.T) {
	matrixtest.Long(t)
	w, _, cord := apart(t, nil)
	rows := w.s.store.Schema() + "_rows"
	w.table("CREATE SCHEMA " + rows)
	w.table("CREATE TABLE " + rows + ".customers (email text PRIMARY KEY, name text)")
	w.table("INSERT INTO " + rows + ".customers SELECT n || '@example.com', repeat('x', 1000) FROM generate_series(1, 10000) n")
	id := w.syncFrom(origin{
		connection: map[string]any{"name": "Shop", "type": "postgres", "credentials": map[string]any{
			"host": "127.0.0.1", "port": cord.Addr().(*net.TCPAddr).Port, "database": "postgres",
			"username": testkit.PostgresUser, "password": testkit.PostgresPassword, "sslmode": "disable",
		}},
		object: map[string]any{"type": "table", "table_catalog": "postgres", "table_schema": rows, "table_name": "customers"},
	}, nil)
	var calls atomic.Int64
	restart := func() {
		if calls.Add(1) == 2 { // the first batch, after get_sync_speed
			cord.cut()
			cord.mend()
		}
	}
	w.onCall.Store(&restart)
	run := w.trigger(id)
	w.control("POST", "/settle", nil).want(http.StatusOK)
	ended := w.shownRun(run)
	require.Equal(t, "completed", ended.at("data.status"), string(ended.text))
	require.Greater(t, calls.Load(), int64(3))
	require.EqualValues(t, 10000, ended.id("data.records_updated"))
	w.clean(id)
}
