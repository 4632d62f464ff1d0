package shelf_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/server/internal/cluster/lease"
	"github.com/destkit/destkit/server/internal/cluster/shelf"
	"github.com/destkit/destkit/server/internal/cluster/shelf/shelftest"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// line is what goes wrong with the connections of a pool.
type line struct {
	refuses atomic.Int64 // so many attempts to connect
	loses   atomic.Int64 // the answer to this one of the next requests
}

type lostConn struct {
	net.Conn
	line *line
}

// Read loses an answer: the server has done what it was asked.
func (c *lostConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.line.loses.Load() > 0 && c.line.loses.Add(-1) == 0 {
		_ = c.Close()
		return 0, syscall.ECONNRESET
	}
	return n, err
}

// badLine is a shelf behind such connections, its log, and a sync.
func badLine(t *testing.T) (*shelf.Shelf, *line, *bytes.Buffer, int64) {
	t.Helper()
	r := shelftest.Take(t)
	config, err := pgxpool.ParseConfig(r.URL)
	require.NoError(t, err)
	l, dial := &line{}, config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if l.refuses.Load() > 0 {
			l.refuses.Add(-1)
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		c, err := dial(ctx, network, address)
		return &lostConn{c, l}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	said := &bytes.Buffer{}
	return shelf.New(pool, slog.New(slog.NewTextHandler(said, nil))), l, said, r.First
}

// TestAnswersThatAreLost loses each answer of each kind of change once: what was
// done, or not, is done once in the end.
func TestAnswersThatAreLost(t *testing.T) {
	s, l, _, sync := badLine(t)
	s.WithTimeout(time.Minute, time.Microsecond)
	file := sync
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(file, "log")}))
	want, steps := "", [][]ledger.Change{}
	for answer := int64(1); answer < 6; answer++ {
		file := file + answer
		steps = append(steps,
			[]ledger.Change{makes(file, "state.new"), writes(file, 0, "one")},
			[]ledger.Change{writes(file, 3, "two")},
			[]ledger.Change{cuts(file, 4)},
			[]ledger.Change{writes(file, 4, "x"), writes(file, 5, "y")},
			[]ledger.Change{names(file, "state")},
			[]ledger.Change{removes(file, "state")})
		for _, step := range steps {
			l.loses.Store(answer)
			require.NoError(t, s.Change(sync, 0, step))
		}
		require.Equal(t, "onetxy", content(t, s, file, 4))
		steps = steps[:0]
	}
	for answer := range int64(6) {
		l.loses.Store(answer)
		require.NoError(t, s.Change(sync, 0, []ledger.Change{writes(file, int64(len(want)), "append")}))
		want += "append"
		l.loses.Store(answer)
		require.Equal(t, want, content(t, s, file, 5))
	}
	l.loses.Store(0)
	list, err := s.List(sync)
	require.NoError(t, err)
	require.Equal(t, []ledger.Shelved{{Name: "log", File: file, Size: int64(len(want))}}, list)
}

// TestWaits: a database that does not answer is waited for, which the log says once
// and once again when it is over; no error tells more than the reason.
func TestWaits(t *testing.T) {
	s, l, said, sync := badLine(t)
	l.refuses.Store(3)
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(sync, "log")}))
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	require.Len(t, lines, 2, said.String())
	require.Contains(t, lines[0], "the ledger waits for the database")
	require.Contains(t, lines[0], "refused")
	require.Contains(t, lines[1], "answers the ledger again")

	said.Reset()
	s, l, said, sync = badLine(t)
	l.refuses.Store(1 << 40)
	_, err := s.WithTimeout(time.Nanosecond, time.Nanosecond).List(sync)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.ErrorIs(t, err, ledger.ErrAway)
	require.Contains(t, said.String(), "in vain")
	for _, text := range []string{err.Error(), said.String()} {
		require.NotContains(t, text, "user=")
	}
}

// TestChangesThatWereLeftBehind: an append whose connection was lost may reach the
// server after it was done again, and after what came then.
func TestChangesThatWereLeftBehind(t *testing.T) {
	s, pool, sync := room(t)
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(sync, "log"), writes(sync, 0, "a")}))
	for _, next := range []string{"b", "c"} {
		require.NoError(t, s.Change(sync, 0, []ledger.Change{writes(sync, 1, "b")}))
		if next == "c" {
			require.NoError(t, s.Change(sync, 0, []ledger.Change{writes(sync, 2, "c")}))
		}
		tag, err := pool.Exec(t.Context(), shelf.AppendPart, lease.OfSync(sync), 0, sync, sync, 1, []byte("b"))
		require.NoError(t, err)
		require.Zero(t, tag.RowsAffected())
	}
	require.Equal(t, "abc", content(t, s, sync, 10))
}

// TestFence: a change under a fence that is not that of the lease is refused, also
// when the lease is taken at the same moment.
func TestFence(t *testing.T) {
	s, pool, sync := room(t)
	sql := func(text string, args ...any) {
		t.Helper()
		_, err := pool.Exec(t.Context(), text, args...)
		require.NoError(t, err)
	}
	leased := lease.OfSync(sync)
	require.ErrorIs(t, s.Change(sync, 1, []ledger.Change{makes(sync, "log")}), ledger.ErrFenced, "there is no lease")
	sql("INSERT INTO leases VALUES ($1, 1, 'a', now())", leased)
	require.NoError(t, s.Change(sync, 1, []ledger.Change{makes(sync, "log"), writes(sync, 0, "a")}))
	require.NoError(t, s.Change(sync, 1, []ledger.Change{writes(sync, 1, "b")}), "its time is over, and nobody has taken it")
	for name, changes := range map[string][]ledger.Change{
		"append": {writes(sync, 2, "x")}, "cut": {cuts(sync, 0)}, "name": {names(sync, "state")}, "remove": {removes(sync, "log")}, "make": {makes(sync+1, "log")},
	} {
		require.ErrorIs(t, s.Change(sync, 2, changes), ledger.ErrFenced, name)
		// Another process takes the lease while the change is on its way.
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		var fence int64
		require.NoError(t, tx.QueryRow(t.Context(), `WITH free AS (SELECT name FROM leases WHERE name = $1 FOR UPDATE)
			UPDATE leases SET fence = fence + 1 FROM free WHERE leases.name = free.name RETURNING fence`, leased).Scan(&fence))
		done := make(chan error)
		go func() { done <- s.Change(sync, fence-1, changes) }()
		for waiting := false; !waiting; {
			require.NoError(t, tx.QueryRow(t.Context(), "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)").Scan(&waiting))
		}
		require.NoError(t, tx.Commit(t.Context()))
		require.ErrorIs(t, <-done, ledger.ErrFenced, name)
		require.Equal(t, "ab", content(t, s, sync, 10))
		sql("UPDATE leases SET fence = 1 WHERE name = $1", leased)
	}
	require.NoError(t, s.Change(sync, 0, []ledger.Change{writes(sync, 2, "c")}), "unguarded")
}

// TestKeepingWaitsForNobody: a lease is kept while a change is on its way.
func TestKeepingWaitsForNobody(t *testing.T) {
	s, pool, sync := room(t)
	_, err := pool.Exec(t.Context(), "INSERT INTO leases VALUES ($1, 1, 'a', now())", lease.OfSync(sync))
	require.NoError(t, err)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "UPDATE leases SET until = now() + interval '1 minute' WHERE name = $1", lease.OfSync(sync))
	require.NoError(t, err)
	require.NoError(t, s.Change(sync, 1, []ledger.Change{makes(sync, "log")}))
	require.NoError(t, s.Change(sync, 1, []ledger.Change{writes(sync, 0, "a")}))
	require.NoError(t, tx.Rollback(t.Context()))
}

// TestRefusals are those that no waiting mends.
func TestRefusals(t *testing.T) {
	s, pool, sync := room(t)
	require.NoError(t, s.Change(sync, 0, []ledger.Change{makes(sync, "log")}))
	require.ErrorContains(t, s.Change(sync, 0, []ledger.Change{writes(sync, 5, "a")}), "does not fit the file")
	require.ErrorContains(t, s.Change(sync, 0, []ledger.Change{{File: sync}}), "there is no kind 0")
	require.Error(t, s.Change(sync+1, 0, []ledger.Change{writes(sync, 0, "a")}), "the file of another sync")
	_, err := pool.Exec(t.Context(), "ALTER TABLE ledger_parts ADD CONSTRAINT full_disk CHECK (data <> 'full')")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), "ALTER TABLE ledger_parts DROP CONSTRAINT full_disk")
		require.NoError(t, err)
	})
	require.ErrorContains(t, s.Change(sync, 0, []ledger.Change{writes(sync, 0, "full")}), "full_disk")
	closed, err := pgxpool.New(t.Context(), shelftest.Take(t).URL)
	require.NoError(t, err)
	closed.Close()
	_, err = shelf.New(closed, nil).List(1)
	require.ErrorContains(t, err, "closed pool")
	require.False(t, errors.Is(err, context.DeadlineExceeded))
}
