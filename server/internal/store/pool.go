package store

import (
	"context"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// serve lets callers in.
func (s *Store) serve() {
	s.readers = make(chan *sqlite.Conn, sqlite.Readers())
	for range cap(s.readers) {
		s.readers <- nil
	}
}

// takeReader waits for a reading connection with an open transaction.
func (s *Store) takeReader(ctx context.Context) (*sqlite.Conn, error) {
	idle, err := take(ctx, s, s.readers)
	if err != nil {
		return nil, err
	}
	c, err := s.begun(s.opened(idle), false)
	if err != nil {
		s.readers <- c
		return nil, err
	}
	return c, nil
}

// opened gives a connection that is open already for one that is not (nil),
// where one is idle: to open one means to parse the whole schema.
func (s *Store) opened(c *sqlite.Conn) *sqlite.Conn {
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
	idle := make([]*sqlite.Conn, 0, cap(s.readers))
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

// begun returns a connection after it starts a transaction; nil is one that is not open.
func (s *Store) begun(c *sqlite.Conn, write bool) (*sqlite.Conn, error) {
	if c == nil {
		opened, err := s.files.Connect(write)
		if err != nil {
			return nil, err
		}
		c = opened
	}
	return c, c.Begin(write)
}

// ended leaves a transaction and gives the connection.
func ended(c *sqlite.Conn) *sqlite.Conn {
	_, _ = c.Run(sqlite.Rollback, nil)
	return c
}
