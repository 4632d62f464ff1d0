package source

import (
	"context"
	"io"
)

var _ Reader = (*generator)(nil)

// Rows makes rows up. In the order of a column of type id nothing is sorted:
// the numbers themselves are made in the order of their digits.
func (g *generator) Rows(ctx context.Context, object Object, columns, order []string) (Rows, error) {
	if err := g.find(object); err != nil {
		return nil, err
	}
	chosen, err := choose(object, g.describe(), columns, order)
	if err != nil {
		return nil, err
	}
	r := &generatedRows{g: g, ctx: ctx, wanted: chosen.wanted, row: newRow(len(chosen.wanted))}
	if len(chosen.order) > 0 {
		first := g.columns[chosen.wanted[chosen.order[0]]]
		r.byDigits = first.Type == "id"
	}
	return arranged(ctx, r, chosen, r.byDigits, g.scratch)
}

// generatedRows counts through the rows.
type generatedRows struct {
	g        *generator
	ctx      context.Context
	wanted   []int
	row      row
	made     int64
	last     int64 // the number of the last row, from 1
	byDigits bool
}

func (r *generatedRows) Close() error { return nil }

func (r *generatedRows) Next() ([][]byte, error) {
	if r.made == r.g.rows {
		return nil, io.EOF
	}
	// Not for each row: asking costs more than making one.
	if r.made&1023 == 0 && r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	if r.made++; r.byDigits {
		r.last = nextByDigits(r.last, r.g.rows)
	} else {
		r.last++
	}
	r.row.reset()
	for _, column := range r.wanted {
		r.row.buf = r.g.appendCell(r.row.buf, r.last-1, column)
		r.row.end()
	}
	return r.row.values(), nil
}

// nextByDigits is the number after n among 1 to limit when they are sorted as
// texts: 1, 10, 100, 101, 11, 2. Before the first is 0.
func nextByDigits(n, limit int64) int64 {
	if n == 0 {
		return 1
	}
	if n*10 <= limit {
		return n * 10
	}
	if n == limit {
		n /= 10
	}
	for n++; n%10 == 0; {
		n /= 10
	}
	return n
}
