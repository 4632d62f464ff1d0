package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// This file is what a store in PostgreSQL offers beyond its rows: any number of
// processes work on one schema.

// Shared reports whether other processes may work on the same store: it is in
// PostgreSQL.
func (s *Store) Shared() bool { return s.news != nil }

// Pool gives connections to the schema (it is their search_path) to those who keep
// something there by statements of their own; nil unless the store is shared. They
// are not counted by Generation, and run beside the changes of Update. A statement,
// or a batch of them, fails after a minute at the latest, whatever its context says.
// Whoever uses it ends before Close, which waits for that. It refuses with ErrNewer
// what an Update refuses.
func (s *Store) Pool() *pgxpool.Pool {
	if p, ok := s.engine.(*postgres); ok {
		return p.pool
	}
	return nil
}

// Schema is the name of the schema, "" unless the store is shared.
func (s *Store) Schema() string {
	if p, ok := s.engine.(*postgres); ok {
		return p.at.Schema
	}
	return ""
}

// Hears reports whether this process hears what others do; true where nobody else is.
func (s *Store) Hears() bool { return s.news == nil || s.news.hears() }

// Outages counts how often the connection was lost on which this process hears the
// others, which is what it notices first of a database that is restarted or cannot be
// reached; while it is lost each answer is another one. 0 where nobody else is.
func (s *Store) Outages() int64 {
	if s.news == nil {
		return 0
	}
	if !s.news.hears() {
		return s.news.outages.Add(1)
	}
	return s.news.outages.Load()
}

// PostgreSQL is the transaction of this Update, for statements that the store does
// not have; nil in a View and unless the store is shared. The store ends it: Commit and Rollback
// are refused. Begin makes a savepoint. Contexts are looked at between statements
// only. It must not be used after the function of the Update has returned.
func (tx *Tx) PostgreSQL() pgx.Tx {
	c, ok := tx.conn.(*link)
	if !ok || !tx.write {
		return nil
	}
	if tx.guest == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tx.ctx), c.patience)
		tx.guest = &guest{tx: tx, db: c.whole, ctx: ctx, leave: cancel}
	}
	tx.changed = true
	return tx.guest
}

// noticeRoom is the longest text of a notice in bytes; PostgreSQL takes 8000 of all.
const noticeRoom = 7900

// Notify tells something to all processes that listen, this one too, when the
// change is committed; it does nothing unless the store is shared. A topic is one
// word.
func (tx *Tx) Notify(topic, text string) error {
	if err := tx.ready(true); err != nil || !tx.store.Shared() {
		return err
	}
	if err := tellable(topic, text); err != nil {
		return err
	}
	tx.notices = append(tx.notices, notice{topic, text})
	return nil
}

// Tell is Notify without a change: it is told at once.
func (s *Store) Tell(ctx context.Context, topic, text string) error {
	if !s.Shared() {
		return nil
	}
	err := tellable(topic, text)
	if err == nil {
		_, err = s.Pool().Exec(ctx, "SELECT pg_notify($1, $2)", s.engine.(*postgres).notify, topic+" "+text)
		err = Explained(err)
	}
	if err != nil {
		return fmt.Errorf("tell %s: %w", topic, err)
	}
	return nil
}

func tellable(topic, text string) error {
	switch {
	case topic == "" || topic == "=" || strings.ContainsAny(topic, " \x00"):
		return fmt.Errorf("notify: the topic %q is not one word", topic)
	case len(topic)+len(text) > noticeRoom || strings.Contains(text, "\x00"):
		return fmt.Errorf("notify %s: a text has up to %d bytes, and no U+0000", topic, noticeRoom)
	}
	return nil
}

// Listen calls hear for every notice, one after the other, until ctx is done or the
// store is closed (ErrClosed). At the beginning, after a lost connection, after a
// Restore of another process and when hear was too slow it calls hear("", ""): anything may have been missed. Unless
// the store is shared it hears nothing.
func (s *Store) Listen(ctx context.Context, hear func(topic, text string)) error {
	if s.news != nil {
		return s.news.listen(ctx, hear)
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
func Explained(err error) error {
	if err == nil || !fromServer(err) {
		return err
	}
	return explained(err)
}
