package store

import (
	"context"
	"errors"
	"io"
)

// This file is the seam to the database: statements with ? for arguments, and
// rows read by position. Everything above it is SQL in the subset that SQLite
// and PostgreSQL share.

// engine is the database below a store: files and memory of SQLite, or a schema
// of PostgreSQL.
type engine interface {
	// connect opens one more connection: the one that writes, or one of those
	// that only read.
	connect(ctx context.Context, write bool) (conn, error)
	// copy writes what there is now as a SQLite database, by a connection that
	// reads and has nothing else to do.
	copy(ctx context.Context, reader conn, w io.Writer) error
	// overwrite replaces every row by those of an adopted copy, all or none.
	overwrite(ctx context.Context, writer conn, staged *lite) error
}

// conn is one connection; one goroutine at a time uses it.
type conn interface {
	// begin starts a transaction. One that reads sees one moment; one that writes
	// sees all that was committed before, and nobody else writes meanwhile.
	begin(write bool) error
	// run runs a statement, which the connection keeps prepared, and says how many
	// rows it changed. each gets the rows and runs nothing itself. A statement that
	// breaks a constraint is undone alone (harmless).
	run(query string, each func(cells) error, args ...any) (changed int64, err error)
	close() error
}

// The ends of a transaction. rollback outside of one does nothing.
const (
	commit   = "COMMIT"
	rollback = "ROLLBACK"
)

// cells are the columns of one row; they are valid until the next row.
type cells interface {
	number(col int) (value int64, ok bool) // ok: not NULL
	text(col int) string
	blob(col int) []byte // a copy
}

// doc is an argument that is stored as JSON text.
type doc struct{ value any }

// begun gives a connection that has begun a transaction. One that was lost while
// it was idle is opened anew, since nothing has been done on it yet; nil is one
// that is not open.
func (s *Store) begun(ctx context.Context, c conn, write bool) (conn, error) {
	if c != nil {
		err := c.begin(write)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, ErrUnavailable) || busy(err) {
			return c, err
		}
		_ = c.close()
	}
	c, err := s.engine.connect(ctx, write)
	if err != nil {
		return nil, err
	}
	if err := c.begin(write); err != nil {
		_ = c.close()
		return nil, err
	}
	return c, nil
}

// ended leaves a transaction and gives the connection if it can be used again.
func ended(c conn) conn {
	if _, err := c.run(rollback, nil); errors.Is(err, ErrUnavailable) {
		_ = c.close()
		return nil
	}
	return c
}
