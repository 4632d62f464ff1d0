// Package quota owns what the processes of an installation may send together: one
// window for each limit, in a row of PostgreSQL (spec 8: the limits are those of
// a connection, whoever runs).
//
// It refuses to know what is sent and when: pace does, whose Window is in the row
// and whose Share is in each process. It holds no lock while it thinks: a process
// may be frozen at any point.
package quota

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

// Limits are those of one installation. They are safe for parallel use.
type Limits struct {
	pool  *pgxpool.Pool
	unfit error // why there is none
	log   *slog.Logger
	skew  skew

	mu      sync.Mutex
	failing bool
	damaged map[string]bool // limits whose rows cannot be read
	open    context.Context // until Close
	close   context.CancelFunc
	under   sync.WaitGroup // exchanges
}

// Connections is how many connections Limits have of their own, at most: an
// exchange must not wait behind everything else that a process does.
const Connections = 2

// New makes them for a process, with connections of their own like those of the
// pool, whose search path is the schema of the installation. log hears when the
// database does not answer, and when it does again; it may be nil.
func New(pool *pgxpool.Pool, log *slog.Logger) *Limits {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	config := pool.Config()
	config.MaxConns, config.MinConns, config.MinIdleConns = Connections, 0, 0
	l := &Limits{log: log, skew: skew{base: time.Now()}, damaged: map[string]bool{}}
	l.pool, l.unfit = pgxpool.NewWithConfig(context.Background(), config)
	l.open, l.close = context.WithCancel(context.Background())
	return l
}

// Close ends all exchanges: nothing is sent any more beyond what was granted.
func (l *Limits) Close() {
	l.mu.Lock()
	l.close()
	l.mu.Unlock()
	l.under.Wait()
	if l.pool != nil {
		l.pool.Close()
	}
}

// begin is false after Close.
func (l *Limits) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open.Err() != nil {
		return false
	}
	l.under.Add(1)
	return true
}

var errClosed = errors.New("the limits are closed")

// Connection is the limit of requests per second of a destination.
func (l *Limits) Connection(id int64) pace.Source {
	return source{l, "connection " + strconv.FormatInt(id, 10)}
}

// source is one limit.
type source struct {
	limits *Limits
	name   string
}

// Exchange is that of pace.Source.
func (s source) Exchange(ctx context.Context, r pace.Report) (pace.Grant, error) {
	if !s.limits.begin() {
		return pace.Grant{}, errClosed
	}
	defer s.limits.under.Done()
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	defer context.AfterFunc(s.limits.open, cancel)()
	g, err := s.limits.exchange(ctx, s.name, r)
	if err != nil && s.limits.open.Err() != nil {
		return pace.Grant{}, errClosed
	}
	if err != nil {
		g, err = pace.Grant{}, fmt.Errorf("exchange limit %q: %w", s.name, err)
	}
	s.limits.note(s.name, err)
	return g, err
}

// note logs the beginning and the end of a time without answers. A row that cannot
// be read says nothing of the others.
func (l *Limits) note(name string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, pace.ErrDamaged) {
		if !l.damaged[name] {
			l.damaged[name] = true
			l.log.Error("a limit cannot be read: nothing is sent on it until it can", "error", err)
		}
		return
	}
	if err == nil {
		delete(l.damaged, name)
	}
	switch failing := err != nil; {
	case failing && !l.failing:
		l.log.Warn("the limits of connections cannot be reached in the database: nothing is sent until they can", "error", err)
	case !failing && l.failing:
		l.log.Info("the limits of connections are reached again")
	}
	l.failing = err != nil
}
