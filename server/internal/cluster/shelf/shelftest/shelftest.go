// Package shelftest gives tests a shelf on the PostgreSQL of the test run. It is
// for tests only, and refuses to know what they keep there.
package shelftest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/internal/testkit"
	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/cluster/shelf"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// serverVariable names a PostgreSQL for measurements, postgres://…: that of the
// test run does not wait for its disk.
const serverVariable = "DESTKIT_BENCH_POSTGRES"

// Room is a part of the shelf: syncs with numbers of their own. As JSON it can be
// handed to a child process.
type Room struct {
	URL   string
	First int64 // is added to the numbers of syncs
}

var rooms atomic.Int64

// Take gives a room that is new. The first one starts the server and makes
// the schema; without PostgreSQL the test is skipped.
func Take(t testing.TB) Room {
	t.Helper()
	url := os.Getenv(serverVariable)
	if url == "" {
		at := testkit.StartPostgres(t)
		url = fmt.Sprintf("postgres://%s:%s@/postgres?host=%s&port=%d", testkit.PostgresUser, testkit.PostgresPassword, at.Folder, at.Port)
	}
	url, err := schemaOn(url)
	if err != nil {
		t.Fatalf("make schema of the shelf: %v", err)
	}
	return Room{URL: url, First: rooms.Add(1) * 1_000_000}
}

var schema struct {
	once sync.Once
	url  string
	err  error
}

// schemaOn makes the tables as the service makes them, once in a test run.
func schemaOn(server string) (string, error) {
	schema.once.Do(func() {
		join := "?"
		if strings.Contains(server, join) {
			join = "&"
		}
		schema.url = server + join + "search_path=shelf_" + fmt.Sprint(os.Getpid())
		key := make([]byte, 32)
		_, _ = rand.Read(key)
		var s *store.Store
		if s, schema.err = store.Open(context.Background(), store.Options{URL: schema.url, MasterKey: key}); schema.err == nil {
			schema.err = s.Close()
		}
	})
	return schema.url, schema.err
}

var pools struct {
	sync.Mutex
	of map[string]*pgxpool.Pool
}

// Pool gives the connections of this process to the schema; they stay open.
func (r Room) Pool() (*pgxpool.Pool, error) {
	pools.Lock()
	defer pools.Unlock()
	if pool := pools.of[r.URL]; pool != nil {
		return pool, nil
	}
	config, err := pgxpool.ParseConfig(r.URL)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 16
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err == nil {
		if pools.of == nil {
			pools.of = map[string]*pgxpool.Pool{}
		}
		pools.of[r.URL] = pool
	}
	return pool, err
}

// Shelf opens the room, as a process does.
func (r Room) Shelf() (*Shelf, error) {
	pool, err := r.Pool()
	if err != nil {
		return nil, err
	}
	return &Shelf{on: shelf.New(pool, nil), pool: pool, first: r.First}, nil
}

// Shelf is the shelf of a room as one process sees it.
type Shelf struct {
	on    *shelf.Shelf
	pool  *pgxpool.Pool
	first int64
	dead  atomic.Bool
}

var _ ledger.Shelf = (*Shelf)(nil)

// errDead answers a process that was killed.
var errDead = errors.New("this process is dead")

// Kill ends the process of this shelf: nothing that it does from now on happens.
func (s *Shelf) Kill() { s.dead.Store(true) }

// SetFence gives the lease of a sync to whoever has this fence.
func (s *Shelf) SetFence(sync, fence int64) error {
	_, err := s.pool.Exec(context.Background(), `INSERT INTO leases VALUES ($1, $2, 'a test', now())
		ON CONFLICT (name) DO UPDATE SET fence = excluded.fence`, lease.OfSync(s.first+sync), fence)
	return err
}

// List implements ledger.Shelf.
func (s *Shelf) List(sync int64) ([]ledger.Shelved, error) { return s.on.List(s.first + sync) }

// Read implements ledger.Shelf.
func (s *Shelf) Read(file int64, p []byte, at int64) (int, error) { return s.on.Read(file, p, at) }

// Change implements ledger.Shelf.
func (s *Shelf) Change(sync, fence int64, changes []ledger.Change) error {
	if s.dead.Load() {
		return errDead
	}
	return s.on.Change(s.first+sync, fence, changes)
}
