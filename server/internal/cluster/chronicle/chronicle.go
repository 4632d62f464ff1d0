// Package chronicle owns what the control API of several processes on one
// PostgreSQL has in common: the journals that all of them write, and the settings
// that all of them follow. It refuses to know what an entry or a setting says: both
// are bytes of the caller's.
package chronicle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/cluster/lease"
)

// Chronicle is what one process has of it. It is safe for parallel use.
type Chronicle struct {
	pool    *pgxpool.Pool
	process string
	timeout time.Duration
}

// New uses the tables journal, journals, control and control_heard of the schema in
// the search path of a pool. process is the id of this process among those in the
// table processes.
func New(pool *pgxpool.Pool, process string) *Chronicle {
	return &Chronicle{pool: pool, process: process, timeout: Timeout}
}

// Enter takes away what processes that are long gone have left.
func (c *Chronicle) Enter(ctx context.Context) error {
	if _, err := c.pool.Exec(ctx, "DELETE FROM control_heard WHERE at < clock_timestamp() - interval '1 day' AND process <> $1", c.process); err != nil {
		return fmt.Errorf("enter chronicle: %w", err)
	}
	return nil
}

// Leave takes away what this process has left: no one has to wait for it.
func (c *Chronicle) Leave(ctx context.Context) error {
	if _, err := c.pool.Exec(ctx, "DELETE FROM control_heard WHERE process = $1", c.process); err != nil {
		return fmt.Errorf("leave chronicle: %w", err)
	}
	return nil
}

// alive are the other processes that are.
const alive = "id <> $1 AND " + lease.Alive

// Alone reports whether no other process is alive.
func (c *Chronicle) Alone(ctx context.Context) (alone bool, err error) {
	err = c.pool.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM processes WHERE "+alive+")", c.process).Scan(&alone)
	if err != nil {
		return false, fmt.Errorf("look for other processes: %w", err)
	}
	return alone, nil
}

// Lives reports whether a process is alive; this one is.
func (c *Chronicle) Lives(ctx context.Context, process string) (lives bool, err error) {
	if process == c.process {
		return true, nil
	}
	err = c.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM processes WHERE "+alive+" AND id = $2)", c.process, process).Scan(&lives)
	if err != nil {
		return false, fmt.Errorf("look for a process: %w", err)
	}
	return lives, nil
}

// loosely runs a transaction whose loss, in the last moments before the server
// falls, is not worth a wait for its disk.
func (c *Chronicle) loosely(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit TO off"); err != nil {
			return err
		}
		return fn(tx)
	})
}

// none tells that a query has found no row.
func none(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
