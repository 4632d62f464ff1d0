// Package generated makes the rows of a table up from a seed: the types of columns, their
// values, and what becomes of the rows on a schedule. A cell is a function of seed, row,
// column and moment, so that any number of rows needs no memory.
//
// It leaves to the generator of sources which moment it is, and to the emulated warehouses
// where rows are stored.
package generated

import (
	"context"
	"io"
	"time"

	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// Table makes rows up: the value of a cell is a function of seed, row and
// column, and of the moment where the rows change, so that any number of rows
// needs no memory.
type Table struct {
	Rows, Seed int64
	Columns    []Column
	Changes    Changes
}

// Describe returns the columns as configured.
func (t *Table) Describe() []api.Column {
	columns := make([]api.Column, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = api.Column{Name: c.Name, Type: c.Type, Kind: c.made.kind}
	}
	return columns
}

// InDigits reports whether the rows can be made in the order of a column: that of a
// column of type id is the order of the digits of their numbers.
func (t *Table) InDigits(column int) bool { return t.Columns[column].Type == "id" }

// Read makes the wanted columns of the rows as they are at a moment, in the order of
// their numbers or, byDigits, of the digits of these.
func (t *Table) Read(ctx context.Context, now time.Time, wanted []int, byDigits bool) *Rows {
	r := &Rows{t: t, history: t.Changes.after(t.Rows, now), ctx: ctx, wanted: wanted, row: cell.NewRow(len(wanted)), byDigits: byDigits}
	switch {
	case !r.byDigits: // the oldest are gone
		r.seen, r.last = r.history.gone, r.history.gone
	case r.history.total > 0:
		r.next = 1
	}
	return r
}

// Rows are the rows of a table at a moment: it counts through their numbers.
type Rows struct {
	t        *Table
	history  *history
	ctx      context.Context
	wanted   []int
	row      cell.Row
	seen     int64 // rows that ever were, those that are gone too
	last     int64 // the number of the last row, from 1
	byDigits bool
	next     int64 // in the order of digits; 0: there is none
}

// Close has nothing to do.
func (r *Rows) Close() error { return nil }

// Next returns the cells of the next row, valid until the next call, and io.EOF after
// the last one.
func (r *Rows) Next() ([][]byte, error) {
	var l life
	for !l.there {
		// Not for each row: asking costs more than making one.
		if r.seen&1023 == 0 && r.ctx.Err() != nil {
			return nil, context.Cause(r.ctx)
		}
		if !r.advance() {
			return nil, io.EOF
		}
		l = r.history.of(r.last)
	}
	r.row.Reset()
	for _, column := range r.wanted {
		if r.t.Columns[column].Type == changedType {
			r.row.Buf = append(appendTime(append(r.row.Buf, '"'), r.history.moment(l.changed)), '"')
		} else {
			r.row.Buf = r.t.appendVersion(r.row.Buf, r.last-1, column, l.updated)
		}
		r.row.End()
	}
	return r.row.Values(), nil
}

// advance goes to the next number; false: there is none.
func (r *Rows) advance() bool {
	if !r.byDigits {
		if r.seen == r.history.total {
			return false
		}
		r.seen++
		r.last++
		return true
	}
	if r.next == 0 {
		return false
	}
	r.seen++
	if r.last, r.next = r.next, nextByDigits(r.next, r.history.total); r.next == 1 {
		r.next = 0 // all were there
	}
	return true
}

// behindByDigits is the number after n and all that begin with it.
func behindByDigits(n, limit int64) int64 {
	if n == limit {
		n /= 10
	}
	for n++; n%10 == 0; {
		n /= 10
	}
	return n
}

// changedType is the type of a column that holds when a row was added or changed.
const changedType = "changed_at"

// appendTime writes a moment in UTC, to the second.
func appendTime(dst []byte, t time.Time) []byte { return t.UTC().AppendFormat(dst, time.RFC3339) }

// nextByDigits is the number after n among 1 to limit when they are sorted as
// texts: 1, 10, 100, 101, 11, 2. Before the first is 0.
func nextByDigits(n, limit int64) int64 {
	if n == 0 {
		return 1
	}
	if n*10 <= limit {
		return n * 10
	}
	return behindByDigits(n, limit)
}
