// Package postgres owns the schema of PostgreSQL below a store: its address, connections and
// errors, what PostgreSQL wants otherwise than SQLite, and what the processes that work on
// one schema tell each other. It leaves rows and transactions to the store, the tables to
// migrations, and the files of copies to package sqlite.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/destkit/destkit/server/internal/store/database"
)

// This file is what PostgreSQL wants otherwise than SQLite: numbered arguments,
// and a savepoint around a statement that may break a constraint, since the whole
// transaction would be lost with it. The words are the same.

// Conn is one connection to PostgreSQL.
type Conn struct {
	whole   *pgx.Conn
	db      *pgconn.PgConn // of whole: nothing of it costs anything there
	lock    string         // takes the right to write
	channel string         // of the notices
	known   map[string]*prepared
	timeout time.Duration // with one statement
	bare    bool          // no savepoints: one failure ends it all
	writing bool          // in a transaction that writes
	at      standing      // when that began
}

var _ database.Conn = (*Conn)(nil)

// prepared is a statement that the server keeps for this connection.
type prepared struct {
	*pgconn.StatementDescription
	formats []int16 // of the columns
	changes bool
}

// statementTime bounds one statement. Callers do not cut one short, which would
// cost the connection. They look at their context between two statements, as with
// SQLite.
const statementTime = time.Minute

// command runs statements without arguments and results.
func (c *Conn) command(text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	_, err := c.db.Exec(ctx, text).ReadAll()
	return c.translate(err)
}

// Run implements database.Conn.
func (c *Conn) Run(query string, each func(database.Cells) error, args ...any) (int64, error) {
	if query == database.Commit || query == database.Rollback {
		return 0, c.finish(query)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	s := &statement{query: query, args: args, taker: taker{each: each}}
	if err := s.ready(ctx, c); err != nil {
		return 0, err
	}
	if s.changes && c.writing && !c.bare {
		return c.guarded(ctx, s)
	}
	tag, err := s.from(c.db.ExecStatement(ctx, s.StatementDescription, s.values, s.given, s.formats))
	return tag.RowsAffected(), cmp.Or(c.translate(err), s.err)
}

// finish ends a transaction. A commit after a failure that was not told of is
// answered with ROLLBACK and no error.
func (c *Conn) finish(how string) error {
	c.writing = false
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	results, err := c.db.Exec(ctx, how).ReadAll()
	if err == nil && how == database.Commit && results[0].CommandTag.String() != database.Commit {
		return errFailedBefore
	}
	return c.translate(err)
}

// prepare keeps the statement under a name of its own.
func (c *Conn) prepare(ctx context.Context, query string) (*prepared, error) {
	if p := c.known[query]; p != nil {
		return p, nil
	}
	described, err := c.db.Prepare(ctx, "destkit_"+strconv.Itoa(len(c.known)), numbered(query), nil)
	if err != nil {
		return nil, err
	}
	verb, _, _ := strings.Cut(query, " ")
	p := &prepared{StatementDescription: described, changes: verb == "INSERT" || verb == "UPDATE" || verb == "DELETE"}
	for _, field := range described.Fields {
		p.formats = append(p.formats, formatOf(field.DataTypeOID))
	}
	c.known[query] = p
	return p, nil
}

// numbered turns each ? into $1, $2 and so on; our statements have none in a
// text.
func numbered(query string) string {
	parts := strings.Split(query, "?")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString("$" + strconv.Itoa(i))
		}
		b.WriteString(part)
	}
	return b.String()
}

// taker hands the rows of a result on, and keeps what its function says: that is
// no failure of the database.
type taker struct {
	each func(database.Cells) error
	err  error
}

func (t *taker) from(r *pgconn.ResultReader) (pgconn.CommandTag, error) {
	for r.NextRow() {
		if t.each != nil && t.err == nil {
			t.err = t.each(columns(r.Values()))
		}
	}
	return r.Close()
}

const (
	savepoint   = "SAVEPOINT statement"
	release     = "RELEASE SAVEPOINT statement"
	backToPoint = "ROLLBACK TO SAVEPOINT statement; RELEASE SAVEPOINT statement"
)

// guarded runs a statement between a savepoint and its release, in one round trip
// to the server.
func (c *Conn) guarded(ctx context.Context, s *statement) (int64, error) {
	err := c.together(ctx, &statement{query: savepoint}, s, &statement{query: release})
	if err != nil && Harmless(err) {
		err = errors.Join(err, c.command(backToPoint))
	}
	return s.tag.RowsAffected(), cmp.Or(err, s.err)
}

// Close takes leave of the server, which must not take long.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.db.Close(ctx) // a lost connection has no one to be told
	return nil
}
