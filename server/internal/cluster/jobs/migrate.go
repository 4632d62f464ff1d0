package jobs

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// ErrNewer refuses a schema whose River tables are of a newer program.
var ErrNewer = errors.New("the queue is of a newer version of destkit; use that one")

// migrate brings River's tables up to date. Of several processes that start at once
// one does it, and the others wait.
func migrate(ctx context.Context, o Options, log *slog.Logger) error {
	// Without the lock another process may be at work on these very tables, and any error is
	// asked for again below.
	if done, err := upToDate(ctx, o, o.Pool, log); done || errors.Is(err, ErrNewer) {
		return err
	}
	// One connection keeps the lock while another one works. They are no part of the
	// pool, in which others might have taken both.
	settings := o.Pool.Config()
	settings.MinConns, settings.MinIdleConns, settings.MaxConns = 0, 0, 2
	settings.ConnConfig.Tracer = nil // which would bound each statement
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	if err != nil {
		return fmt.Errorf("connect for the tables of the queue: %w", err)
	}
	defer pool.Close() // which unlocks
	lock, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("connect for the tables of the queue: %w", err)
	}
	defer lock.Release()
	name := fnv.New64a()
	_, _ = name.Write([]byte("destkit queue in schema " + o.Schema))
	_, err = lock.Exec(ctx, "SET lock_timeout = 0") // large tables take as long as they take
	if err == nil {
		_, err = lock.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(name.Sum64()))
	}
	if err != nil {
		return fmt.Errorf("lock the tables of the queue: %w", err)
	}
	if done, err := upToDate(ctx, o, pool, log); done || err != nil {
		return err // another process has done it meanwhile
	}
	m, err := migrator(o, pool, log)
	if err == nil {
		_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		return fmt.Errorf("bring the tables of the queue in schema %s up to date: %w", o.Schema, err)
	}
	return nil
}

func migrator(o Options, pool *pgxpool.Pool, log *slog.Logger) (*rivermigrate.Migrator[pgx.Tx], error) {
	return rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: o.Schema, Logger: log})
}

// upToDate looks whether nothing is left to do, or nothing can be done.
func upToDate(ctx context.Context, o Options, pool *pgxpool.Pool, log *slog.Logger) (bool, error) {
	m, err := migrator(o, pool, log)
	if err != nil {
		return false, err
	}
	all := m.AllVersions()
	newest := all[len(all)-1].Version
	there, err := versionOf(ctx, o, pool)
	if err == nil && there > newest {
		err = fmt.Errorf("%w: schema %s has its tables in version %d, this program knows %d", ErrNewer, o.Schema, there, newest)
	}
	return there == newest, err
}

// versionOf is 0 where there are no tables. Their first versions had no lines, and may
// be what a process has left that was killed while it made them.
func versionOf(ctx context.Context, o Options, pool *pgxpool.Pool) (version int, err error) {
	table := pgx.Identifier{o.Schema, "river_migration"}.Sanitize()
	var there bool
	err = pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&there)
	if err == nil && there {
		err = pool.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+table+" AS m WHERE coalesce(to_jsonb(m) ->> 'line', 'main') = 'main'").Scan(&version)
	}
	if err != nil {
		return 0, fmt.Errorf("read version of the queue in schema %s: %w", o.Schema, err)
	}
	return version, nil
}
