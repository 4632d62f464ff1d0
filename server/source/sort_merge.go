package source

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// head is the next record of a run.
type head struct {
	from   *bufio.Reader
	record []byte
	run    int // of equal keys the earlier run comes first
}

// merge hands out the rows of all runs: a heap of their heads.
type merge struct {
	s     *sorter
	heads []*head
	row   [][]byte
	moved bool // the first head was handed out and must go on
}

// newMerge opens the runs, each with its share of the memory.
func newMerge(s *sorter) (*merge, error) {
	m := &merge{s: s, row: make([][]byte, len(s.cells))}
	size := max(4<<10, min(256<<10, sortMemory/len(s.runs)))
	for i, r := range s.runs {
		h := &head{from: bufio.NewReaderSize(io.NewSectionReader(s.file, r.start, r.size), size), run: i}
		if err := h.next(); err != nil {
			return nil, err
		}
		m.heads = append(m.heads, h)
	}
	for i := len(m.heads) / 2; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

// next reads a record; io.EOF at the end of the run.
func (h *head) next() error {
	n, err := binary.ReadUvarint(h.from)
	if err != nil {
		return err
	}
	h.record = slices.Grow(h.record[:0], int(n))[:n]
	if _, err := io.ReadFull(h.from, h.record); err != nil {
		return fmt.Errorf("read sorted rows: %w", err)
	}
	return nil
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

// Next implements Rows. The head moves at the next call, since the row that was
// given out lies in its buffer.
func (m *merge) Next() ([][]byte, error) {
	if m.moved {
		m.moved = false
		switch err := m.heads[0].next(); {
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
	m.s.unpack(m.heads[0].record, m.row)
	return m.row, nil
}

// Close lets go of the file of runs.
func (m *merge) Close() error { return m.s.file.Close() }
