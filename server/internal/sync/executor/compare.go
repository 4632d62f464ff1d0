package executor

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/destkit/destkit/server/api"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Duplicate is the reason of a record whose identifier occurs more than once in the
// source.
const Duplicate = "the primary identifier stands more than once in the source"

// often is how many rows go by between two looks at the context.
const often = 256

// State is the state of a sync in ascending order of keys: a *ledger.Cursor.
// An entry is good until the next one; io.EOF follows the last.
type State interface {
	Next() (ledger.Entry, error)
	Close() error
}

// tally counts what the comparison finds.
type tally struct {
	rows, valid, invalids int64
	updates, deletes      int64
	missing               int64 // keys of the state without a row
}

// comparison decides about every row and every key of the state. One goroutine has it:
// the one that reads.
type comparison struct {
	*terms
	progress *progress
	booking  *booking

	tally    tally
	samples  []Sample
	record   []byte
	removals spool            // keys that are to be deleted
	sink     func(item) error // gets the rows to send
	anew     bool             // a table that is replaced has nothing yet
}

// publish passes the counts to the reports.
func (c *comparison) publish() { c.progress.show(c.tally) }

// compare merges rows and state in the order of their keys and passes the rows
// to send to the sink. Both streams are read once, so memory does not grow.
func (c *comparison) compare(ctx context.Context, rows *group, before State) error {
	row, rowErr := rows.next()
	old, oldErr := before.Next()
	for n := 0; ; n++ {
		if n%often == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			c.publish()
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
			if err := c.unplaced(&row); err != nil {
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
			err = c.meet(&row, nil)
		case order == 0:
			err = c.meet(&row, &old)
		default:
			err = c.gone(&old)
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
func (c *comparison) unplaced(row *entry) error {
	if done, err := c.options.Deviations.row(c, row, nil); done {
		return err
	}
	c.invalid(*row)
	return nil
}

// meet deals with a key that the source has.
func (c *comparison) meet(row *entry, old *ledger.Entry) error {
	if done, err := c.options.Deviations.row(c, row, old); done {
		return err
	}
	if row.copies > 1 {
		row.invalid = Duplicate
	}
	if row.invalid != "" {
		c.invalid(*row)
		return nil
	}
	c.tally.rows++
	c.tally.valid++
	print := fingerprint(c.plan, row.record, c.highWater != nil, row.stamp)
	if c.operation.decide(row, print, old, c.booking.full) != write && !c.lacksRow(old) || c.delivered(row.key, print) {
		return nil
	}
	if !c.booking.skipping {
		c.tally.updates++
	}
	return c.put(item{key: row.key, record: row.record, print: print, stamp: row.stamp}, old)
}

// fingerprint is what a run keeps of a record. With a high-water mark an event is its key
// and its moment: it is not another one when a mapping changes.
func fingerprint(p *mapping.Plan, record []byte, marked bool, at stamp) ledger.Fingerprint {
	if marked {
		return printOf(at[:])
	}
	return printOf(p.Compared(record))
}

// Fingerprint is that of a record; mark is the value of the high-water mark column of its
// row, nil without one.
func Fingerprint(p *mapping.Plan, record, mark []byte) ledger.Fingerprint {
	t, _ := Moment(mark)
	return fingerprint(p, record, mark != nil, stampOf(t))
}

// put passes on a row to send; old is its entry in the state.
func (c *comparison) put(it item, old *ledger.Entry) error {
	if c.dry != nil {
		c.writes(it, old)
		return nil
	}
	return c.sink(it)
}

// delivered reports whether this run has sent exactly this already, before it
// was interrupted: where every row is sent, the state alone does not show it. A
// replaced table starts again.
func (c *comparison) delivered(key []byte, print ledger.Fingerprint) bool {
	if !c.booking.resumed || c.anew || !c.booking.full && !c.operation.all {
		return false
	}
	verdict, was, spoken := c.booking.log.Last(key)
	return spoken && verdict == ledger.Acknowledged && was == print
}

// gone deals with a key that the source no longer has.
func (c *comparison) gone(old *ledger.Entry) error {
	c.tally.missing++
	if c.operation.decide(nil, ledger.Fingerprint{}, old, c.booking.full) != remove {
		return nil
	}
	if c.options.Deviations.ForgetsDeletes && old.Verdict == ledger.Rejected {
		return nil
	}
	c.tally.deletes++
	if c.rows && old.Row != nil {
		c.record = c.plan.AppendWholeDelete(c.record[:0], old.Key, old.Row)
	} else {
		c.record = c.plan.AppendDelete(c.record[:0], old.Key)
	}
	it := item{key: old.Key, record: c.record}
	if c.dry != nil {
		c.deletes(it)
		return nil
	}
	return c.removals.add(it)
}

// lacksRow reports a key whose row is needed for a later delete record and was
// never kept. It is sent again: the state must hold what was acknowledged.
func (c *comparison) lacksRow(old *ledger.Entry) bool {
	return c.rows && old != nil && old.Row == nil
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
func (c *comparison) invalid(row entry) {
	c.tally.rows += row.copies
	c.tally.invalids += row.copies
	if c.dry != nil {
		c.dry.refuse(row.invalid, row.copies)
	}
	if len(c.samples) < samples {
		c.samples = append(c.samples, Sample{string(row.key), row.invalid, row.copies})
	}
}

// emptied refuses what would delete everything.
func (c *comparison) emptied() error {
	if c.job.Config.Operation == api.OperationMirror && c.tally.valid == 0 && c.tally.missing > 0 && !c.allowsEmpty() {
		return failed(CodeEmptySource, nil, "the source has no valid record, and this mirror would remove everything that it has sent: set advanced_configuration.%s to true if that is meant", mapping.AllowEmptySource)
	}
	return nil
}
