package jobs

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// databaseClock is the time of the database, as far as it is known: that of the
// process and how far the database is ahead. River compares moments that a process
// has written with those of the database: by the clock of a process that is an hour
// ahead, what is to be tried again in a second would wait for an hour.
type databaseClock struct {
	own   func() time.Time
	ahead atomic.Int64
}

// Now keeps the monotonic reading.
func (c *databaseClock) Now() time.Time { return c.own().Add(time.Duration(c.ahead.Load())) }

// NowOrNil lets statements use the clock of the database itself.
func (c *databaseClock) NowOrNil() *time.Time { return nil }

func (c *databaseClock) set(ctx context.Context, pool *pgxpool.Pool) error {
	var now time.Time
	asked := c.own()
	if err := pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
		return fmt.Errorf("read clock of the database: %w", err)
	}
	answered := c.own()
	c.ahead.Store(int64(now.Sub(asked.Add(answered.Sub(asked) / 2))))
	return nil
}
