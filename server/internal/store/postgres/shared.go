package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/destkit/destkit/server/internal/store/database"
)

// This file is what a schema that is open offers to the one process of many that works
// on it.

// String names the schema in errors and logs.
func (p *Schema) String() string { return p.at.String() }

// Name is that of the schema in its database.
func (p *Schema) Name() string { return p.at.Schema }

// Pool gives connections to the schema for statements of others. A statement, or a batch
// of them, fails after a minute at the latest, whatever its context says.
func (p *Schema) Pool() *pgxpool.Pool { return p.pool }

// Close ends what Open has begun; it waits for those who use Pool.
func (p *Schema) Close() {
	p.peers.end()
	p.pool.Close()
}

// Guard refuses a schema that a newer program has made another one.
func (p *Schema) Guard() error { return p.peers.guard() }

// Began is what a change does first: it learns where the schema stands. renewed: the
// keys are others now.
func (p *Schema) Began(c *Conn, query database.Query) (renewed bool, err error) {
	return p.peers.began(c.at, query)
}

// Commit ends a change, and tells the others of it and the notices.
func (p *Schema) Commit(c *Conn, changed bool, notices []Notice) error {
	return p.peers.commit(c, changed, notices)
}

// Generation counts the changes that were committed, by this process and by those that
// it hears; while it hears nothing, no number is given twice.
func (p *Schema) Generation() uint64 { return p.peers.generation() }

// Hears reports whether this process hears what others do.
func (p *Schema) Hears() bool { return p.peers.hears() }

// Outages counts how often the connection was lost on which this process hears the
// others; while it is lost each answer is another one.
func (p *Schema) Outages() int64 {
	if !p.peers.hears() {
		return p.peers.outages.Add(1)
	}
	return p.peers.outages.Load()
}

// Tell tells the others something at once, without a change.
func (p *Schema) Tell(ctx context.Context, n Notice) error {
	_, err := p.pool.Exec(ctx, "SELECT pg_notify($1, $2)", p.notify, n.Topic+" "+n.Text)
	return Explained(err)
}

// Listen calls hear for every notice, one after the other, until ctx is done or closed is
// (database.ErrClosed). Where anything may have been missed it calls hear("", "").
func (p *Schema) Listen(ctx context.Context, closed <-chan struct{}, hear func(topic, text string)) error {
	return p.peers.listen(ctx, closed, hear)
}

// noticeRoom is the longest text of a notice in bytes; PostgreSQL takes 8000 of all.
const noticeRoom = 7900

// NewNotice makes a notice whose topic is one word.
func NewNotice(topic, text string) (Notice, error) {
	switch {
	case topic == "" || topic == "=" || strings.ContainsAny(topic, " \x00"):
		return Notice{}, fmt.Errorf("notify: the topic %q is not one word", topic)
	case len(topic)+len(text) > noticeRoom || strings.Contains(text, "\x00"):
		return Notice{}, fmt.Errorf("notify %s: a text has up to %d bytes, and no U+0000", topic, noticeRoom)
	}
	return Notice{topic, text}, nil
}
