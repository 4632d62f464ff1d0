package audit

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/internal/sync/executor"
)

// row is one identifier of the source as the next run would map it.
type row struct {
	key, record []byte
	invalid     string
	copies      int64
	waits       bool // for a later run, by the high-water mark
}

// mappedRows maps rows for the sort: key, record, reason, and whether it waits.
type mappedRows struct {
	a        *audit
	rows     source.Rows
	messages source.LogRows // of a topic: rows again
	width    int            // cells of the plan
	at       int            // the cell of the high-water mark
	cells    [4][]byte
	dst      []byte
}

// Next implements source.Rows. A row without a key counts and is left out.
func (m *mappedRows) Next() ([][]byte, error) {
	for {
		cells, err := m.rows.Next()
		if err != nil {
			return nil, err
		}
		m.a.report.Checked.Source++
		record, key, invalid := m.a.job.Plan.AppendRecord(m.dst[:0], cells[:m.width])
		m.dst = record
		waits := ""
		if m.a.mark != nil {
			t, known := executor.Moment(cells[m.at])
			if !known {
				invalid = "the column of the high-water mark is no timestamp"
			} else if !t.Before(*m.a.mark) {
				waits = "w"
			}
		}
		if key != nil && invalid == "" && m.a.job.Plan.Generated() {
			m.tell(key, cells)
		}
		if m.messages != nil && m.messages.Position() > m.a.position {
			waits = "w"
		}
		if key == nil {
			m.a.invalids++
			continue
		}
		m.cells = [4][]byte{key, record, []byte(invalid), []byte(waits)}
		return m.cells[:], nil
	}
}

// tell gives a row whose key is a hash of its content the key that a run gives
// it: equal rows of different moments, and equal messages, are several records.
func (m *mappedRows) tell(key []byte, cells [][]byte) {
	switch {
	case m.messages != nil && m.a.job.Events:
		digits := strconv.AppendInt(nil, m.messages.Position(), 10)
		copy(key[max(1, len(key)-1-len(digits)):len(key)-1], digits)
	case m.a.mark != nil:
		executor.MarkKey(key, cells[m.at])
	}
}

// Close implements source.Rows.
func (m *mappedRows) Close() error { return m.rows.Close() }

// rows are the identifiers of the source in their order.
type rows struct {
	sorted source.Rows
	ahead  *row
	first  []byte // distinguishes equal rows with equal keys
	count  int64
	latest bool // of equal keys the last one counts: messages supersede one another
	unique bool // the plan makes keys from the content: equal rows are several records
	ended  bool
}

// openRows maps and sorts the source.
func (a *audit) openRows(ctx context.Context) (*rows, error) {
	if a.job.LedgerOnly || a.job.Source == nil {
		return &rows{ended: true}, nil
	}
	columns := slices.Clone(a.job.Plan.Columns())
	m := &mappedRows{a: a, width: len(columns)}
	if mark := executor.HighWaterColumn(&a.job.Config); mark != "" {
		if m.at = slices.Index(columns, mark); m.at < 0 {
			columns, m.at = append(columns, mark), len(columns)
		}
	}
	var err error
	if a.log != nil {
		m.messages, err = a.log.After(ctx, a.job.Object, columns, 0)
		m.rows = m.messages
	} else {
		m.rows, err = a.job.Source.Rows(ctx, a.job.Object, columns, nil)
	}
	if err != nil {
		return nil, &ReadError{"source", err}
	}
	sorted, err := rowsort.Sort(ctx, m, []int{0}, a.job.Scratch)
	if err != nil {
		return nil, &ReadError{"source", err}
	}
	return &rows{sorted: sorted, unique: a.job.Plan.Generated(), latest: a.log != nil}, nil
}

// next gives the next identifier; nil at the end.
func (r *rows) next() (*row, error) {
	for !r.ended {
		cells, err := r.sorted.Next()
		if errors.Is(err, io.EOF) {
			r.ended = true
			break
		}
		if err != nil {
			return nil, &ReadError{"source", err}
		}
		one := &row{
			key: append([]byte(nil), cells[0]...), record: append([]byte(nil), cells[1]...),
			invalid: string(cells[2]), copies: 1, waits: len(cells[3]) > 0,
		}
		if r.unique {
			r.tell(one)
		}
		if before := r.ahead; before != nil && string(before.key) == string(one.key) {
			if r.latest && one.invalid == "" {
				before.record, before.invalid = one.record, ""
			} else if !r.latest {
				before.copies++
			}
			before.waits = before.waits || one.waits
			continue
		}
		before := r.ahead
		if r.ahead = one; before != nil {
			return before, nil
		}
	}
	before := r.ahead
	r.ahead = nil
	return before, nil
}

// tell gives the second of equal rows its own key, and so on, as a run
// does.
func (r *rows) tell(one *row) {
	if string(one.key) != string(r.first) {
		r.first, r.count = append(r.first[:0], one.key...), 0
		return
	}
	r.count++
	digits := strconv.AppendInt(nil, r.count, 10)
	copy(one.key[len(one.key)-1-len(digits):], digits) // before the closing quote
}

// Close frees the disk.
func (r *rows) Close() error {
	if r.sorted == nil {
		return nil
	}
	return r.sorted.Close()
}
