package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// doc is an argument that is stored as JSON text.
type doc struct{ value any }

var _ database.Document = doc{}

// JSON is the text that is stored.
func (d doc) JSON() (string, error) {
	text, err := json.Marshal(d.value)
	if err != nil {
		return "", fmt.Errorf("store %T as JSON: %w", d.value, err)
	}
	return string(text), nil
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
