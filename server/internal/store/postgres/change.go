package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/destkit/destkit/server/internal/store/database"
)

// This file is how a change begins and ends where several processes write: each in
// one round trip, whatever has to be asked and told with it.

// standing is the one row of a schema: what each process has to know of the others.
type standing struct {
	version    int64 // of the schema
	generation int64 // counts the changes
	keys       int64 // counts what made kept keys useless: rotations and restores
}

func (s *standing) read(c database.Cells) error {
	s.version, _ = c.Number(0)
	s.generation, _ = c.Number(1)
	s.keys, _ = c.Number(2)
	return nil
}

// Notice is what the processes of a schema tell each other.
type Notice struct{ Topic, Text string }

const (
	beginRead = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
	// Each statement sees what was committed before it, and no one commits while
	// the lock is held: serial, without a conflict to try again after.
	beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
	// After the lock, so that it is what the change before has left.
	readStanding = "SELECT version, generation, keys FROM installation"
	// The number and the notice of it are part of the change.
	countChange = "UPDATE installation SET generation = generation + 1 RETURNING version, generation, keys, pg_notify(?, concat_ws(' ', '=', version, generation, keys))"
	tellNotice  = "SELECT pg_notify(?, ?)"
)

// Begin implements database.Conn.
func (c *Conn) Begin(write bool) error {
	c.writing = write
	if !write {
		return c.command(beginRead)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	err := c.together(ctx, &statement{query: beginWrite}, &statement{query: c.lock}, &statement{query: readStanding, taker: taker{each: c.at.read}})
	if err != nil && !c.db.IsClosed() {
		_, _ = c.Run(database.Rollback, nil)
	}
	return err
}

// settle ends a change: it is counted, unless there is nothing to count, notices
// are told, and all of it is committed or none.
func (c *Conn) settle(count bool, notices []Notice) (at standing, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	var steps []*statement
	if count {
		steps = append(steps, &statement{query: countChange, args: []any{c.channel}, taker: taker{each: at.read}})
	}
	for _, n := range notices {
		steps = append(steps, &statement{query: tellNotice, args: []any{c.channel, n.Topic + " " + n.Text}})
	}
	end := &statement{query: database.Commit}
	err = c.together(ctx, append(steps, end)...)
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if ok && refusal.Code == failedTransaction || err == nil && end.tag.String() != database.Commit {
		return at, errFailedBefore
	}
	if err == nil {
		c.writing = false
	}
	return at, err
}

// errFailedBefore is the answer to a commit after a failure that was not told of.
var errFailedBefore = errors.New("the transaction had failed before")

// look reads the standing outside of a transaction.
func (c *Conn) look() (at standing, err error) {
	_, err = c.Run(readStanding, at.read)
	return at, err
}

// statement is one on its way to the server, alone or with others.
type statement struct {
	query string
	args  []any
	taker
	*prepared
	values [][]byte
	given  []int16 // formats of the values
	tag    pgconn.CommandTag
}

func (s *statement) ready(ctx context.Context, c *Conn) (err error) {
	if s.prepared, err = c.prepare(ctx, s.query); err != nil {
		return c.translate(err)
	}
	s.values, s.given, err = arguments(s.args)
	return err
}

// together runs statements in one round trip. After one that fails, those that
// follow are left out.
func (c *Conn) together(ctx context.Context, steps ...*statement) error {
	for _, s := range steps {
		if err := s.ready(ctx, c); err != nil {
			return err
		}
	}
	line := c.db.StartPipeline(ctx)
	for _, s := range steps {
		line.SendQueryStatement(s.StatementDescription, s.values, s.given, s.formats)
	}
	err := line.Sync()
	for _, s := range steps {
		if err != nil {
			break
		}
		var answer any
		if answer, err = line.GetResults(); err == nil {
			s.tag, err = s.from(answer.(*pgconn.ResultReader))
		}
	}
	if closed := line.Close(); err == nil {
		err = closed
	}
	return c.translate(err)
}
