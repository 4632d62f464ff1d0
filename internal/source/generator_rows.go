package source

import (
	"context"
	"io"
	"time"

	"github.com/destkit/destkit/internal/source/internal/cell"
)

// Rows makes rows up, as they are at the moment of the call. In the order of a column of type id nothing is sorted:
// the numbers themselves are made in the order of their digits.
func (g *generator) Rows(ctx context.Context, object Object, columns, order []string) (Rows, error) {
	if err := g.find(object); err != nil {
		return nil, err
	}
	chosen, err := choose(object, g.describe(), columns, order)
	if err != nil {
		return nil, err
	}
	r := &generatedRows{g: g, history: g.changes.after(g.rows, g.now()), ctx: ctx, wanted: chosen.wanted, row: cell.NewRow(len(chosen.wanted))}
	if len(chosen.order) > 0 {
		first := g.columns[chosen.wanted[chosen.order[0]]]
		r.byDigits = first.Type == "id"
	}
	switch {
	case !r.byDigits: // the oldest are gone
		r.seen, r.last = r.history.gone, r.history.gone
	case r.history.total > 0:
		r.next = 1
	}
	return arranged(ctx, r, chosen, r.byDigits, g.scratch)
}

// generatedRows counts through the rows.
type generatedRows struct {
	g        *generator
	history  *history
	ctx      context.Context
	wanted   []int
	row      cell.Row
	seen     int64 // rows that ever were, those that are gone too
	last     int64 // the number of the last row, from 1
	byDigits bool
	next     int64 // in the order of digits; 0: there is none
}

func (r *generatedRows) Close() error { return nil }

func (r *generatedRows) Next() ([][]byte, error) {
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
		if r.g.columns[column].Type == changedType {
			r.row.Buf = append(appendTime(append(r.row.Buf, '"'), r.history.moment(l.changed)), '"')
		} else {
			r.row.Buf = r.g.appendVersion(r.row.Buf, r.last-1, column, l.updated)
		}
		r.row.End()
	}
	return r.row.Values(), nil
}

// advance goes to the next number; false: there is none.
func (r *generatedRows) advance() bool {
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

// changedType is the type of a column that says when a row came or was changed.
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
