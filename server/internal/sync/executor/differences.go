package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// comparesInSQL tells that a warehouse may compare. It cannot where a record is
// made of more than its row, where keys are not values of a column, and where
// only a part of the rows belongs to the run: there its state is merged with
// the rows here, as the ledger's is.
func (t *terms) comparesInSQL() bool {
	return t.job.Warehouse != nil && t.plan.KeyColumn() != "" && t.highWater == nil && !t.plan.Timed() &&
		(t.dry == nil || !t.dry.void && !t.dry.behind)
}

// scan opens the state in key order.
func (bk *booking) scan(ctx context.Context) (State, error) {
	switch {
	case bk.dry != nil:
		return bk.scanDry(ctx)
	case bk.job.Warehouse == nil:
		return bk.ledger.Scan()
	}
	rows, err := bk.job.Warehouse.Read(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &wholeState{rows}, nil
}

// openDifferences has the warehouse compare.
func (r *reading) openDifferences(ctx context.Context, key string) (find func(context.Context) error, done func(), err error) {
	rows, err := r.job.Warehouse.Read(ctx, &source.Comparison{
		Object: r.job.Object, Columns: r.plan.Columns(), Key: key, KeyText: r.plan.KeyText(),
		Every: r.booking.full || r.operation.all, Once: !r.operation.changed, Gone: r.operation.deletes, Sent: r.rows,
	})
	if err != nil {
		if errors.Is(err, source.ErrNotInSQL) {
			return nil, nil, err
		}
		return nil, nil, &sourceError{err}
	}
	return func(ctx context.Context) error { return r.comparison.differ(ctx, rows) }, func() { _ = rows.Close() }, nil
}

// differ deals with the differences that a warehouse has found. It finds a
// superset: what is sent is decided here, by the same rules as ever.
func (c *comparison) differ(ctx context.Context, rows source.StateReader) error {
	var scratch []byte
	for n := 0; ; n++ {
		if n%often == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.publish()
		}
		got, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &sourceError{err}
		}
		switch got.Kind {
		case source.StateTotals:
			c.total(got.Totals)
		case source.StateDuplicate:
			c.sample(Sample{string(got.Entry.Key), invalidDuplicate, got.Copies})
		case source.StateWrite:
			scratch, err = c.differs(scratch, &got)
		case source.StateGone:
			old := entryOf(&got.Entry)
			err = c.gone(&old)
		}
		if err != nil {
			return err
		}
	}
}

// differs deals with one row that may have to be sent.
func (c *comparison) differs(scratch []byte, got *source.StateRow) ([]byte, error) {
	record, key, invalid := c.plan.AppendRecord(scratch[:0], got.Cells)
	row := entry{mapped{key: got.Entry.Key, record: record, invalid: invalid, print: got.Print}, 1}
	if invalid == "" && !bytes.Equal(key, row.key) {
		return record, fmt.Errorf("compare by the key %.100s, which is %.100s in records: %w", row.key, key, source.ErrNotInSQL)
	}
	var old *ledger.Entry
	if got.Has {
		e := entryOf(&got.Entry)
		old = &e
	}
	return record, c.meet(&row, old)
}

// total counts the rows that the warehouse keeps to itself; those that follow
// are counted as they come.
func (c *comparison) total(t source.StateCounts) {
	c.tally.rows += t.Rows - t.Writes
	c.tally.invalids += t.Nulls + t.Duplicates
	c.tally.valid += t.Rows - t.Nulls - t.Duplicates - t.Writes
	if !c.operation.deletes {
		c.tally.missing += t.Gone
	}
	if c.dry != nil {
		c.dry.refuse(mapping.InvalidNull, t.Nulls)
		c.dry.refuse(invalidDuplicate, t.Duplicates)
	}
	for range min(t.Nulls, samples) {
		c.sample(Sample{Reason: mapping.InvalidNull, Rows: 1})
	}
}
