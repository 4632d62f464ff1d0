package chronicle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// A setting is a text that every process keeps in its memory. Who changes one tells
// the others to read it again, each says that it has, and who changed it waits for
// that: a client that calls another process next meets the setting there.

// Setting reads one with its version; nil and 0 when it was never set.
func (c *Chronicle) Setting(ctx context.Context, name string) (state []byte, version int64, err error) {
	err = c.pool.QueryRow(ctx, "SELECT state, version FROM control WHERE name = $1", name).Scan(&state, &version)
	if err != nil && !none(err) {
		return nil, 0, fmt.Errorf("read setting %s: %w", name, err)
	}
	return state, version, nil
}

// Set changes a setting, one process after the other, and gives its new version. An
// error of change is given back as it is, and nothing has changed then.
func (c *Chronicle) Set(ctx context.Context, name string, change func(state []byte) ([]byte, error)) (version int64, err error) {
	return set(ctx, func(ctx context.Context, fn func(pgx.Tx) error) error { return pgx.BeginFunc(ctx, c.pool, fn) }, name, 1, change)
}

// Count is Set for what the others need not know at once: the version stays.
func (c *Chronicle) Count(ctx context.Context, name string, change func(state []byte) ([]byte, error)) error {
	_, err := set(ctx, c.loosely, name, 0, change)
	return err
}

func set(
	ctx context.Context, begin func(context.Context, func(pgx.Tx) error) error,
	name string, step int64, change func([]byte) ([]byte, error),
) (version int64, err error) {
	var refused error
	err = begin(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO control (name, version, state) VALUES ($1, 0, '') ON CONFLICT DO NOTHING", name)
		if err != nil {
			return err
		}
		var state []byte
		if err := tx.QueryRow(ctx, "SELECT state, version FROM control WHERE name = $1 FOR UPDATE", name).Scan(&state, &version); err != nil {
			return err
		}
		if state, refused = change(state); refused != nil {
			return refused
		}
		version += step
		_, err = tx.Exec(ctx, "UPDATE control SET state = $2, version = $3 WHERE name = $1", name, state, version)
		return err
	})
	if refused != nil {
		return 0, refused
	}
	if err != nil {
		return 0, fmt.Errorf("change setting %s: %w", name, err)
	}
	return version, nil
}

// Heard says that this process follows a version of a setting.
func (c *Chronicle) Heard(ctx context.Context, name string, version int64) error {
	_, err := c.pool.Exec(ctx, `INSERT INTO control_heard (process, name, version, at) VALUES ($1, $2, $3, clock_timestamp())
		ON CONFLICT (process, name) DO UPDATE SET version = greatest(control_heard.version, excluded.version), at = excluded.at`, c.process, name, version)
	if err != nil {
		return fmt.Errorf("confirm setting %s: %w", name, err)
	}
	return nil
}

// Timeout is how long Await waits: a process that does not answer by then is
// frozen, or cut off.
const Timeout = 2 * time.Second

// errLate ends a wait.
var errLate = errors.New("another process has not answered")

// Await waits until every other process that is alive follows a version of a
// setting, for Timeout at most; late tells that one does not.
func (c *Chronicle) Await(ctx context.Context, name string, version int64) (late bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errLate)
	defer cancel()
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		var waiting bool
		err := c.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM processes WHERE `+alive+` AND NOT EXISTS (
			SELECT FROM control_heard h WHERE h.process = id AND h.name = $2 AND h.version >= $3))`, c.process, name, version).Scan(&waiting)
		if err == nil && !waiting {
			return false, nil
		}
		if err == nil {
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
			}
		}
		switch {
		case context.Cause(ctx) == errLate:
			return true, nil
		case err == nil:
			err = ctx.Err()
		}
		return false, fmt.Errorf("wait for setting %s: %w", name, err)
	}
}
