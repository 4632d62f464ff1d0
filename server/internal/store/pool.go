package store

import (
	"context"
	"errors"
	"io"

	"github.com/destkit/destkit/server/internal/store/database"
	"github.com/destkit/destkit/server/internal/store/postgres"
	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// engine is the database below a store: files and memory of SQLite, or a schema
// of PostgreSQL.
type engine interface {
	// Connect opens one more connection: the one that writes, or one of those
	// that only read.
	Connect(ctx context.Context, write bool) (database.Conn, error)
	// Copy writes what there is now as a SQLite database, by a connection that
	// reads and has nothing else to do.
	Copy(ctx context.Context, reader database.Conn, w io.Writer) error
	// Overwrite replaces every row by those of an adopted copy, all or none.
	Overwrite(ctx context.Context, writer database.Conn, staged *sqlite.Conn) error
}

// serve lets callers in.
func (s *Store) serve() {
	s.readers = make(chan database.Conn, database.Readers())
	for range cap(s.readers) {
		s.readers <- nil
	}
}

// takeReader waits for a connection to read with, which has begun to.
func (s *Store) takeReader(ctx context.Context) (database.Conn, error) {
	idle, err := take(ctx, s, s.readers)
	if err != nil {
		return nil, err
	}
	c, err := s.begun(ctx, s.opened(idle), false)
	if err == nil && s.schema != nil {
		if err = s.schema.Guard(); err != nil {
			c = ended(c)
		}
	}
	if err != nil {
		s.readers <- c
		return nil, err
	}
	return c, nil
}

// opened gives a connection that is open already for one that is not (nil),
// where one is idle: to open one means to parse the whole schema, or to log in.
func (s *Store) opened(c database.Conn) database.Conn {
	for range cap(s.readers) {
		if c != nil {
			return c
		}
		select {
		case next := <-s.readers:
			s.readers <- nil
			c = next
		default:
			return nil
		}
	}
	return c
}

// takeWriter waits for the turn to write. In memory SQLite keeps readers and the
// writer apart by refusing one of them, so the writer waits for all readers
// here; with a file (WAL) they do not meet.
func (s *Store) takeWriter(ctx context.Context) (release func(), err error) {
	if s.memory {
		return s.takeAll(ctx)
	}
	return s.turn.leave, s.turn.take(ctx, s.closed)
}

// takeAll waits until there are no other readers and writers.
func (s *Store) takeAll(ctx context.Context) (release func(), err error) {
	if err := s.turn.take(ctx, s.closed); err != nil {
		return nil, err
	}
	idle := make([]database.Conn, 0, cap(s.readers))
	release = func() {
		for _, c := range idle {
			s.readers <- c
		}
		s.turn.leave()
	}
	for len(idle) < cap(s.readers) {
		c, err := take(ctx, s, s.readers)
		if err != nil {
			release()
			return nil, err
		}
		idle = append(idle, c)
	}
	return release, nil
}

// take waits for a value, the end of ctx or the end of the store.
func take[T any](ctx context.Context, s *Store, from <-chan T) (value T, err error) {
	select { // a closed store refuses even where a value is ready
	case <-s.closed:
		return value, ErrClosed
	default:
	}
	select {
	case value = <-from:
		return value, nil
	case <-s.closed:
		return value, ErrClosed
	case <-ctx.Done():
		return value, ctx.Err()
	}
}

// begun gives a connection that has begun a transaction. One that was lost while
// it was idle is opened anew, since nothing has been done on it yet; nil is one
// that is not open.
func (s *Store) begun(ctx context.Context, c database.Conn, write bool) (database.Conn, error) {
	if c != nil {
		err := c.Begin(write)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, ErrUnavailable) || postgres.Busy(err) {
			return c, err
		}
		_ = c.Close()
	}
	c, err := s.engine.Connect(ctx, write)
	if err != nil {
		return nil, err
	}
	if err := c.Begin(write); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// ended leaves a transaction and gives the connection if it can be used again.
func ended(c database.Conn) database.Conn {
	if _, err := c.Run(database.Rollback, nil); errors.Is(err, ErrUnavailable) {
		_ = c.Close()
		return nil
	}
	return c
}
