package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/destkit/destkit/internal/handles"
)

// Limits bound what one reading of a source may hold. Zero values are the defaults.
type Limits struct {
	// Row bounds the bytes of one row.
	Row int
	// Query bounds how long a source may take from one row to the next.
	Query time.Duration
}

// The defaults of Limits.
const (
	DefaultRow   = 16 << 20
	DefaultQuery = 5 * time.Minute
)

func (l Limits) withDefaults() Limits {
	if l.Row <= 0 {
		l.Row = DefaultRow
	}
	if l.Query <= 0 {
		l.Query = DefaultQuery
	}
	return l
}

// longestQuery is the text of the longest query in bytes.
const longestQuery = 256 << 10

// cacheSize of a reading, in KiB: also what a sort of SQLite takes before it goes to
// a file.
const cacheSize = 1 << 10

// confine keeps a reading within its limits: the length of values, of queries and of
// their programs, and the data in a file instead of memory.
func (l Limits) confine(conn *sqlite.Conn) error {
	l = l.withDefaults()
	if err := handles.LimitMemory(); err != nil {
		return err
	}
	for limit, value := range map[sqlite.Limit]int32{
		sqlite.LimitLength: int32(l.Row), sqlite.LimitSQLLength: longestQuery, sqlite.LimitExprDepth: 200, sqlite.LimitCompoundSelect: 500,
		sqlite.LimitVDBEOp: 100_000, sqlite.LimitLikePatternLength: 1000, sqlite.LimitAttached: 0, sqlite.LimitTriggerDepth: 10,
		sqlite.LimitWorkerThreads: 0,
	} {
		conn.Limit(limit, value)
	}
	// No script: its savepoint panics where the database is damaged.
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA temp_store=FILE", nil); err != nil {
		return err
	}
	return sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA cache_size=-%d", cacheSize), nil)
}

// errRow is the error of a row that is too long.
func (l Limits) errRow() error {
	return fmt.Errorf("a row has more than %d bytes: leave out its long columns, or cut them in a query; --max-row sets the limit", l.withDefaults().Row)
}

// errMemory: one query used up the memory of others.
var errMemory = errors.New("the memory for queries of all syncs together is used up: run it again when fewer are at work, or make its values shorter")

// errQuery is the error of a source that gives no row for too long.
func (l Limits) errQuery() error {
	return fmt.Errorf("the source has given no row for %s: make the query simpler; --query-timeout sets the limit", l.withDefaults().Query)
}

// watch ends a reading that waits too long for one row.
type watch struct {
	limits Limits
	cancel context.CancelCauseFunc
	rows   atomic.Int64 // odd while a row is waited for
	timer  *time.Timer
	mu     sync.Mutex
	seen   int64
	since  time.Duration
}

// watched gives the context of a reading; the caller stops the watch.
func (l Limits) watched(ctx context.Context) (context.Context, *watch) {
	l = l.withDefaults()
	own, cancel := context.WithCancelCause(ctx)
	w := &watch{limits: l, cancel: cancel}
	w.rows.Store(1) // it opens
	w.mu.Lock()     // the first look may come before its timer is known here
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.period(), w.look)
	return own, w
}

// period is how often the watch looks: the limit is kept within a tenth.
func (w *watch) period() time.Duration { return max(w.limits.Query/10, time.Millisecond) }

func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.rows.Load()
	if now != w.seen || now%2 == 0 {
		w.seen, w.since = now, 0
	} else if w.since += w.period(); w.since >= w.limits.Query {
		w.cancel(w.limits.errQuery())
		return
	}
	if w.timer != nil {
		w.timer.Reset(w.period())
	}
}

// enter and leave enclose each wait for a row.
func (w *watch) enter() { w.rows.Add(1) }
func (w *watch) leave() { w.rows.Add(1) }

// opened: later waits are row by row.
func (w *watch) opened() { w.leave() }

// stop ends the watch.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.cancel(nil)
}
