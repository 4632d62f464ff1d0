package quota

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

const (
	// exchangeTimeout bounds one exchange: what it would bring lapses sooner.
	exchangeTimeout = time.Second
	// attempts is how often an exchange is tried whose row another process has
	// changed between the reading and the writing.
	attempts = 50
	// settled is how long after its tables were lost in a crash the database
	// grants nothing: longer than a second, and than the life of a grant.
	settled = 2 * time.Second
)

// errContended: more processes ask for one limit than ever should.
var errContended = errors.New("other processes change it all the time")

const (
	readsWindow = "SELECT version, state, clock_timestamp() FROM limits WHERE name = $1"
	// No one waits for a process that is frozen between the two statements: its
	// change comes too late and finds another version.
	writesWindow = "UPDATE limits SET version = version + 1, state = $3, used = clock_timestamp() WHERE name = $1 AND version = $2"
	// The table is not logged: a crash empties it. What was sent just before is
	// not known then, so the limits rest for a moment. The row without a name is
	// there from the beginning, and missing after a crash.
	entersCrash  = "INSERT INTO limits (name, version, state) VALUES ('', 0, '') ON CONFLICT DO NOTHING"
	readsCrash   = "SELECT used FROM limits WHERE name = ''"
	entersWindow = "INSERT INTO limits (name, version, state) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
)

// exchange lets the window of a limit take a report.
func (l *Limits) exchange(ctx context.Context, name string, r pace.Report) (g pace.Grant, err error) {
	if l.unfit != nil {
		return g, l.unfit
	}
	c, err := l.pool.Acquire(ctx)
	if err != nil {
		return g, err
	}
	defer c.Release()
	for range attempts {
		done, err := l.try(ctx, c, name, r, &g)
		if done || err != nil {
			return g, err
		}
		time.Sleep(rand.N(time.Millisecond))
	}
	return g, errContended
}

// try is done unless the row was changed or missing.
func (l *Limits) try(ctx context.Context, c *pgxpool.Conn, name string, r pace.Report, g *pace.Grant) (done bool, err error) {
	var version int64
	var state []byte
	var now time.Time
	asked := l.skew.local(time.Now())
	err = c.QueryRow(ctx, readsWindow, name).Scan(&version, &state, &now)
	answered := l.skew.local(time.Now())
	if errors.Is(err, pgx.ErrNoRows) {
		return false, enter(ctx, c, name, r)
	}
	if err != nil {
		return false, err
	}
	var w pace.Window
	if err := w.UnmarshalBinary(state); err != nil {
		return false, err
	}
	between := l.skew.learn(asked, answered, now)
	*g = between.here(w.Exchange(now, between.there(r)))
	if state, err = w.MarshalBinary(); err != nil {
		return false, err
	}
	tag, err := c.Exec(ctx, writesWindow, name, version, state)
	return tag.RowsAffected() == 1, err
}

// enter makes the window of a limit.
func enter(ctx context.Context, c *pgxpool.Conn, name string, r pace.Report) error {
	if _, err := c.Exec(ctx, entersCrash); err != nil {
		return err
	}
	var crashed time.Time
	if err := c.QueryRow(ctx, readsCrash).Scan(&crashed); err != nil {
		return err
	}
	limit := r.Known
	if limit <= 0 {
		limit = pace.DefaultLimit
	}
	state, err := pace.NewWindow(limit, crashed.Add(settled)).MarshalBinary()
	if err != nil {
		return err
	}
	// No version comes twice: a process may still hold one of the row before.
	_, err = c.Exec(ctx, entersWindow, name, rand.Int64N(1<<62), state)
	return err
}
