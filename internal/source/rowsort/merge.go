package rowsort

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// wideRecord is the length from which on a record waits on disk but for its key: each
// run has one that waits, and a long row is a separate run.
const wideRecord = 64 << 10

// head is the next record of a run.
type head struct {
	from   *bufio.Reader
	record []byte
	rest   int // bytes of the record that are still to be read
	run    int // of equal keys the earlier run comes first
}

// merge hands out the rows of all runs: a heap of their heads.
type merge struct {
	s     *sorter
	heads []*head
	row   [][]byte
	wide  []byte       // the record that was handed out, if it had to be read for that
	wait  func() error // called before a wide row is read
	moved bool         // the first head was handed out and must go on
}

// newMerge opens the runs, each with its share of the memory. It calls wait before it
// hands out a wide row.
func newMerge(s *sorter, wait func() error) (*merge, error) {
	m := &merge{s: s, wait: wait, row: make([][]byte, len(s.cells))}
	size := max(4<<10, min(256<<10, sortMemory/len(s.runs)))
	for i, r := range s.runs {
		h := &head{from: bufio.NewReaderSize(io.NewSectionReader(s.file, r.start, r.size), size), run: i}
		if err := h.next(s.keys); err != nil {
			return nil, err
		}
		m.heads = append(m.heads, h)
	}
	for i := len(m.heads) / 2; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

// next reads a record, or so many cells of a long one; io.EOF at the end of the run.
func (h *head) next(keys int) error {
	n, err := binary.ReadUvarint(h.from)
	if err != nil {
		return err
	}
	h.record, h.rest = h.record[:0], int(n)
	if n < wideRecord {
		h.record, err = h.read(h.record, h.rest)
		return err
	}
	for range keys {
		size, err := binary.ReadUvarint(h.from)
		if err != nil {
			return fmt.Errorf("read sorted rows: %w", err)
		}
		at := len(h.record)
		h.record = binary.AppendUvarint(h.record, size)
		h.rest -= len(h.record) - at
		if h.record, err = h.read(h.record, int(size)); err != nil {
			return err
		}
	}
	return nil
}

// read appends the next n bytes of the record.
func (h *head) read(to []byte, n int) ([]byte, error) {
	at := len(to)
	to = slices.Grow(to, n)[:at+n]
	h.rest -= n
	if _, err := io.ReadFull(h.from, to[at:]); err != nil {
		return to, fmt.Errorf("read sorted rows: %w", err)
	}
	return to, nil
}

// first is the whole of the record that comes next.
func (m *merge) first() (_ []byte, err error) {
	h := m.heads[0]
	if h.rest == 0 {
		return h.record, nil
	}
	if len(h.record)+h.rest > WideRow {
		if err := m.wait(); err != nil {
			return nil, err
		}
	}
	m.wide = append(slices.Grow(m.wide[:0], len(h.record)+h.rest), h.record...)
	m.wide, err = h.read(m.wide, h.rest)
	return m.wide, err
}

// less keeps equal rows in the order in which they came: runs were spilled in
// that order.
func (m *merge) less(i, j int) bool {
	a, b := m.heads[i], m.heads[j]
	if c := compareKeys(a.record, b.record, m.s.keys); c != 0 {
		return c < 0
	}
	return a.run < b.run
}

// sink moves a head down to its place.
func (m *merge) sink(i int) {
	for {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < len(m.heads) && m.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}

// Next implements Rows. The head moves at the next call, since the returned row
// is in its buffer.
func (m *merge) Next() ([][]byte, error) {
	if m.moved {
		m.moved = false
		switch err := m.heads[0].next(m.s.keys); {
		case errors.Is(err, io.EOF):
			last := len(m.heads) - 1
			m.heads[0] = m.heads[last]
			m.heads = m.heads[:last]
		case err != nil:
			return nil, err
		}
		m.sink(0)
	}
	if len(m.heads) == 0 {
		return nil, io.EOF
	}
	m.moved = true
	record, err := m.first()
	if err != nil {
		return nil, err
	}
	m.s.unpack(record, m.row)
	return m.row, nil
}

// Close lets go of the file of runs.
func (m *merge) Close() error { return m.s.file.Close() }

// WideRow is the length from which on a row is wide: it is in memory several times
// while it is read, so that readings with such rows take turns.
const WideRow = 1 << 20

type wideKey struct{}

// WithWide makes readings call wait before they take a wide row into memory that they
// hand out. Where they learn of it only afterwards, they do not call it.
func WithWide(ctx context.Context, wait func() error) context.Context {
	return context.WithValue(ctx, wideKey{}, wait)
}

// Wait is what WithWide gave, or nothing.
func Wait(ctx context.Context) func() error {
	if wait, ok := ctx.Value(wideKey{}).(func() error); ok {
		return wait
	}
	return func() error { return nil }
}

// waiting is a reading with a callback before it takes a wide row.
type waiting interface{ BeforeWide(wait func() error) }

// sortTurn is held by the sort that takes a wide row to disk, one at a time in the
// process. Nothing is waited for while it is held, but for the row and the disk.
var sortTurn = make(chan struct{}, 1)

// turn is the place of one sort in sortTurn.
type turn struct {
	ctx  context.Context
	held bool
}

func (t *turn) take() error {
	if t.held {
		return nil
	}
	select {
	case sortTurn <- struct{}{}:
		t.held = true
		return nil
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
}

func (t *turn) give() {
	if t.held {
		t.held = false
		<-sortTurn
	}
}
