package executor

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// Reasons of invalid records that the mapping cannot see.
const invalidDuplicate = "the primary identifier stands more than once in the source"

// often is how many rows go by between two looks at the context.
const often = 256

// State is the state of a sync in ascending order of keys: a *ledger.Cursor, or
// what a warehouse has. An entry is good until the next one; io.EOF follows the
// last.
type State interface {
	Next() (ledger.Entry, error)
	Close() error
}

// compare merges rows and state in the order of their keys and hands what has
// to be sent to the sink. Both streams are read once, so memory does not grow.
func (r *run) compare(ctx context.Context, rows *group, before State) error {
	row, rowErr := rows.next()
	old, oldErr := before.Next()
	for n := 0; ; n++ {
		if n%often == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			r.publish()
		}
		switch {
		case rowErr != nil && !errors.Is(rowErr, io.EOF):
			if errors.Is(rowErr, errUnordered) {
				return rowErr
			}
			return &sourceError{rowErr}
		case oldErr != nil && !errors.Is(oldErr, io.EOF):
			return failed(CodeState, oldErr, "read the state of the sync: %v", oldErr)
		case rowErr != nil && oldErr != nil:
			return nil
		case rowErr == nil && row.key == nil:
			if err := r.unplaced(&row); err != nil {
				return err
			}
			row, rowErr = rows.next()
			continue
		}
		order := -1 // the row comes first
		if rowErr != nil {
			order = 1
		} else if oldErr == nil {
			order = bytes.Compare(row.key, old.Key)
		}
		var err error
		switch {
		case order < 0:
			err = r.meet(&row, nil)
		case order == 0:
			err = r.meet(&row, &old)
		default:
			err = r.gone(&old)
		}
		if err != nil {
			return err
		}
		if order <= 0 {
			row, rowErr = rows.next()
		}
		if order >= 0 {
			old, oldErr = before.Next()
		}
	}
}

// unplaced deals with a row that has no key.
func (r *run) unplaced(row *entry) error {
	if done, err := r.e.options.Deviations.row(r, row, nil); done {
		return err
	}
	r.invalid(*row)
	return nil
}

// meet deals with a key that the source has.
func (r *run) meet(row *entry, old *ledger.Entry) error {
	if done, err := r.e.options.Deviations.row(r, row, old); done {
		return err
	}
	if row.copies > 1 {
		row.invalid = invalidDuplicate
	}
	if row.invalid != "" {
		r.invalid(*row)
		return nil
	}
	r.tally.rows++
	r.tally.valid++
	print := printOf(r.plan.Compared(row.record))
	if r.water != nil { // an event is its key and its moment: it is not another one when a mapping changes
		print = printOf(row.stamp[:])
	}
	if r.job.Warehouse != nil {
		print = r.withRow(print, row, old)
	}
	if r.operation.decide(row, print, old, r.full) != write && !r.lacksRow(old) || r.delivered(row.key, print) {
		return nil
	}
	if !r.skipping {
		r.tally.updates++
	}
	return r.put(item{key: row.key, record: row.record, print: print, stamp: row.stamp}, old)
}

// put hands on what has to be sent; old is what the state has of it.
func (r *run) put(it item, old *ledger.Entry) error {
	if r.dry != nil {
		r.writes(it, old)
		return nil
	}
	return r.sink(it)
}

// delivered tells that this run has sent exactly this already, before it was
// interrupted: where every row is sent, the state alone does not say so. A table
// that is replaced begins anew.
func (r *run) delivered(key []byte, print ledger.Fingerprint) bool {
	if !r.resumed || r.swap != nil || !r.full && !r.operation.all {
		return false
	}
	verdict, was, spoken := r.log.Last(key)
	return spoken && verdict == ledger.Acknowledged && was == print
}

// gone deals with a key that the source no longer has.
func (r *run) gone(old *ledger.Entry) error {
	r.tally.missing++
	if r.operation.decide(nil, ledger.Fingerprint{}, old, r.full) != remove {
		return nil
	}
	if r.e.options.Deviations.ForgetsDeletes && old.Verdict == ledger.Rejected {
		return nil
	}
	r.tally.deletes++
	if r.rows && old.Row != nil {
		r.record = r.plan.AppendWholeDelete(r.record[:0], old.Key, old.Row)
	} else {
		r.record = r.plan.AppendDelete(r.record[:0], old.Key)
	}
	it := item{key: old.Key, record: r.record}
	if r.dry != nil {
		r.deletes(it)
		return nil
	}
	return r.removals.add(it)
}

// lacksRow tells of a key whose row is wanted for a later delete record and was
// never kept. It is sent again: what the state holds must be what was
// acknowledged.
func (r *run) lacksRow(old *ledger.Entry) bool {
	return r.rows && old != nil && old.Row == nil
}

// samples bounds how many invalid records are shown with their reasons.
const samples = 100

// Sample is one record that was not sent, with the reason.
type Sample struct {
	Key    string // JSON text of the identifier; "" where the row has none
	Reason string
	Rows   int64 // of the source, more than one for a duplicate identifier
}

// invalid counts rows that are never sent.
func (r *run) invalid(row entry) {
	r.tally.rows += row.copies
	r.tally.invalids += row.copies
	if r.dry != nil {
		r.dry.refuse(row.invalid, row.copies)
	}
	if len(r.samples) < samples {
		r.sample(Sample{string(row.key), row.invalid, row.copies})
	}
}

func (r *run) sample(s Sample) {
	if len(r.samples) < samples {
		r.samples = append(r.samples, s)
	}
}
