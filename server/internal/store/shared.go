package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/store/postgres"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// This file is what a store in PostgreSQL offers beyond its rows: any number of
// processes work on one schema.

// Shared reports whether other processes may work on the same store: it is in
// PostgreSQL.
func (s *Store) Shared() bool { return s.schema != nil }

// Pool gives connections to the schema (it is their search_path) to those who keep
// something there by statements of their own; nil unless the store is shared. They
// are not counted by Generation, and run beside the changes of Update. A statement,
// or a batch of them, fails after a minute at the latest, whatever its context says.
// Whoever uses it ends before Close, which waits for that. It refuses with ErrNewer
// what an Update refuses.
func (s *Store) Pool() *pgxpool.Pool {
	if s.schema == nil {
		return nil
	}
	return s.schema.Pool()
}

// Schema is the name of the schema, "" unless the store is shared.
func (s *Store) Schema() string {
	if s.schema == nil {
		return ""
	}
	return s.schema.Name()
}

// Hears reports whether this process hears what others do; true where no other process is.
func (s *Store) Hears() bool { return s.schema == nil || s.schema.Hears() }

// Outages counts how often the connection was lost on which this process hears the
// others, which is what it notices first of a database that is restarted or cannot be
// reached; while it is lost each answer is another one. 0 where no other process is.
func (s *Store) Outages() int64 {
	if s.schema == nil {
		return 0
	}
	return s.schema.Outages()
}

// PostgreSQL is the transaction of this Update, for statements that the store does
// not have; nil in a View and unless the store is shared. The store ends it: Commit and Rollback
// are refused. Begin makes a savepoint. Contexts are looked at between statements
// only. It must not be used after the function of the Update has returned.
func (tx *Tx) PostgreSQL() pgx.Tx {
	c, ok := tx.conn.(*postgres.Conn)
	if !ok || !tx.write {
		return nil
	}
	if tx.guest == nil {
		tx.guest = c.Lend(tx.ctx, func() error { return tx.ready(true) })
	}
	tx.changed = true
	return tx.guest
}

// Notify tells something to all processes that listen, this one too, when the
// change is committed; it does nothing unless the store is shared. A topic is one
// word.
func (tx *Tx) Notify(topic, text string) error {
	if err := tx.ready(true); err != nil || !tx.store.Shared() {
		return err
	}
	n, err := postgres.NewNotice(topic, text)
	if err != nil {
		return err
	}
	tx.notices = append(tx.notices, n)
	return nil
}

// Tell is Notify without a change: it is told at once.
func (s *Store) Tell(ctx context.Context, topic, text string) error {
	if !s.Shared() {
		return nil
	}
	n, err := postgres.NewNotice(topic, text)
	if err == nil {
		err = s.schema.Tell(ctx, n)
	}
	if err != nil {
		return fmt.Errorf("tell %s: %w", topic, err)
	}
	return nil
}

// Listen calls hear for every notice, one after the other, until ctx is done or the
// store is closed (ErrClosed). At the beginning, after a lost connection, after a
// Restore of another process and when hear was too slow it calls hear("", ""): anything may have been missed. Unless
// the store is shared it hears nothing.
func (s *Store) Listen(ctx context.Context, hear func(topic, text string)) error {
	if s.schema != nil {
		return s.schema.Listen(ctx, s.closed, hear)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closed:
		return ErrClosed
	}
}

// Explained marks an error of Pool or of PostgreSQL() with ErrUnavailable, ErrFull
// and the like, as the store's own errors are. Others, and nil, stay as they are.
func Explained(err error) error { return postgres.Explained(err) }

// Holds reports whether the schema of Options.URL has been used before. Its errors are
// those of Open.
func Holds(ctx context.Context, o Options) (bool, error) { return postgres.Holds(ctx, o.postgres()) }

// BackupPostgres copies the schema of Options.URL into a file as Backup does with a
// directory, also while a process works on it.
func BackupPostgres(ctx context.Context, o Options, to string) error {
	return postgres.Backup(ctx, o.postgres(), to)
}

func (o Options) postgres() postgres.Options {
	return postgres.Options{URL: o.URL, Password: o.Password, Folder: o.Dir, Skewed: o.Skewed}
}

// openPostgres opens a schema, and makes it when it is missing.
func (s *Store) openPostgres(ctx context.Context, o Options) error {
	s.place, s.measure = "store", postgres.Size
	schema, err := postgres.New(o.postgres())
	if err != nil {
		return err
	}
	s.place = schema.String()
	c, err := schema.Open(ctx, s.keys, o.Visit)
	if err != nil {
		return err
	}
	if s.engine, s.schema, s.writing = schema, schema, c; o.From == nil {
		return nil
	}
	staged, remove, err := sqlite.Stage(ctx, s.dir, o.From, s.keys.Check)
	if err != nil {
		return err
	}
	defer remove()
	defer staged.Close()
	return schema.Fill(ctx, c, staged)
}
