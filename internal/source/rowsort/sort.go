// Package rowsort sorts rows by the bytes of some of their cells: in memory, and in
// sorted runs on disk where they do not fit. It defines which rows are wide, and makes
// their readers take turns.
//
// It leaves the meaning and use of rows to its callers.
package rowsort

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
)

// sortMemory is how much of the rows is sorted at once; more goes to disk in
// sorted runs. It is the bulk of a sorted read's memory.
const sortMemory = 12 << 20

// Sorts that run at once in a process share allSorts; each has leastSort.
const (
	allSorts  = 5 * sortMemory
	leastSort = 1 << 20
)

var sorting atomic.Int64

// sortShare is how much of its limit a sort may use now.
func sortShare(limit int) int {
	return min(limit, max(leastSort, allSorts/max(1, int(sorting.Load()))))
}

// Rows is a stream of rows: Next returns the cells of the next one, valid until the
// next call, and io.EOF after the last one.
type Rows interface {
	Next() ([][]byte, error)
	Close() error
}

// sorter puts rows into key order. A record is the cells of a row, each with
// its length before it, those of the order first.
type sorter struct {
	keys    int   // so many cells are the key
	cells   []int // the cell of the row for each of the record
	limit   int
	arena   []byte
	entries []entry
	scratch string
	file    *os.File // nil: all fits into memory
	runs    []run
	written int64
}

// entry is a record in the arena. The first bytes of the key decide most
// comparisons.
type entry struct {
	prefix     uint64
	start, end uint32
}

// run is a sorted stretch of the file.
type run struct{ start, size int64 }

// Sort reads all rows and hands them out in ascending order of some of their
// cells, given by their places, each compared by its bytes; of equal ones the
// earlier row stays first. Rows beyond a few megabytes go to a nameless file
// in scratch; "" is the system's folder for temporary files. It closes rows,
// also when it fails.
func Sort(ctx context.Context, rows Rows, order []int, scratch string) (Rows, error) {
	defer rows.Close()
	sorting.Add(1)
	defer sorting.Add(-1)
	return sortLimited(ctx, rows, order, scratch, sortMemory)
}

// sortLimited sorts within limit bytes of memory; the rest goes to a file in
// runs, which are merged.
func sortLimited(ctx context.Context, rows Rows, order []int, scratch string, limit int) (_ Rows, err error) {
	s := &sorter{limit: limit, scratch: scratch}
	defer func() {
		if err != nil && s.file != nil {
			err = errors.Join(err, s.file.Close())
		}
	}()
	t := turn{ctx: ctx}
	defer t.give()
	if w, ok := rows.(waiting); ok {
		w.BeforeWide(t.take)
	}
	for {
		values, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		if s.cells == nil {
			s.arrange(order, len(values))
		}
		if length(values) > WideRow {
			if err := t.take(); err != nil {
				return nil, err
			}
			if err := s.addWide(values); err != nil {
				return nil, err
			}
		} else if err := s.add(values); err != nil {
			return nil, err
		}
		t.give()
	}
	if s.file == nil {
		s.sortArena()
		return &sortedArena{s: s, row: make([][]byte, len(s.cells))}, nil
	}
	if len(s.entries) > 0 {
		if err := s.spill(); err != nil {
			return nil, err
		}
	}
	s.arena, s.entries = nil, nil
	return newMerge(s, Wait(ctx))
}

// length is that of a row.
func length(values [][]byte) int {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	return n
}

// arrange puts the cells of the order first, each once.
func (s *sorter) arrange(order []int, width int) {
	for _, cell := range order {
		if !slices.Contains(s.cells, cell) {
			s.cells = append(s.cells, cell)
		}
	}
	s.keys = len(s.cells)
	for cell := range width {
		if !slices.Contains(s.cells, cell) {
			s.cells = append(s.cells, cell)
		}
	}
}

// add keeps a row, and spills the others when it does not fit.
func (s *sorter) add(values [][]byte) error {
	size := 0
	for _, v := range values {
		size += len(v) + binary.MaxVarintLen64
	}
	const entrySize = 16
	if len(s.entries) > 0 && len(s.arena)+size+(len(s.entries)+1)*entrySize > sortShare(s.limit) {
		if err := s.spill(); err != nil {
			return err
		}
	}
	start := len(s.arena)
	if uint64(start+size) > 1<<32-1 {
		return errors.New("sort rows: a row is longer than 4 GiB")
	}
	for _, cell := range s.cells {
		s.arena = binary.AppendUvarint(s.arena, uint64(len(values[cell])))
		s.arena = append(s.arena, values[cell]...)
	}
	var prefix [8]byte
	copy(prefix[:], values[s.cells[0]])
	s.entries = append(s.entries, entry{binary.BigEndian.Uint64(prefix[:]), uint32(start), uint32(len(s.arena))})
	return nil
}

// addWide writes a wide row as a separate run, after one of the rows before it.
func (s *sorter) addWide(values [][]byte) error {
	if len(s.entries) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if err := s.open(); err != nil {
		return err
	}
	var head []byte
	size := 0
	for _, cell := range s.cells {
		head = binary.AppendUvarint(head[:0], uint64(len(values[cell])))
		size += len(head) + len(values[cell])
	}
	w := bufio.NewWriter(s.file)
	start := s.written
	head = binary.AppendUvarint(head[:0], uint64(size))
	_, _ = w.Write(head) // a failure shows in Flush
	s.written += int64(len(head) + size)
	for _, cell := range s.cells {
		head = binary.AppendUvarint(head[:0], uint64(len(values[cell])))
		_, _ = w.Write(head)
		_, _ = w.Write(values[cell])
	}
	return s.close(w, start)
}

// sortArena sorts the rows in memory; of equal keys the earlier row stays
// first, so that the same rows always come the same way.
func (s *sorter) sortArena() {
	slices.SortFunc(s.entries, func(a, b entry) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return cmp.Or(compareKeys(s.arena[a.start:a.end], s.arena[b.start:b.end], s.keys), cmp.Compare(a.start, b.start))
	})
}

// compareKeys compares the first cells of two records.
func compareKeys(a, b []byte, keys int) int {
	for range keys {
		var x, y []byte
		x, a = cutCell(a)
		y, b = cutCell(b)
		if c := bytes.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}

// cutCell takes the first cell off a packed row.
func cutCell(record []byte) (cell, rest []byte) {
	n, width := binary.Uvarint(record)
	end := width + int(n)
	return record[width:end:end], record[end:]
}

// open makes the file. It has no name any more: it is gone with the process, whatever
// ends it.
func (s *sorter) open() error {
	if s.file != nil {
		return nil
	}
	f, err := os.CreateTemp(s.scratch, "destkit-sort-*")
	if err != nil {
		return fmt.Errorf("sort rows on disk: %w", err)
	}
	s.file = f
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("sort rows on disk: %w", err)
	}
	return nil
}

// close ends the run that was written from start on.
func (s *sorter) close(w *bufio.Writer, start int64) error {
	if err := w.Flush(); err != nil {
		var p *fs.PathError // the file has no name
		if errors.As(err, &p) {
			err = p.Err
		}
		return fmt.Errorf("sort rows on disk: %w", err)
	}
	s.runs = append(s.runs, run{start, s.written - start})
	return nil
}

// spill writes the arena as one sorted run.
func (s *sorter) spill() error {
	if err := s.open(); err != nil {
		return err
	}
	s.sortArena()
	w := bufio.NewWriterSize(s.file, 256<<10)
	start := s.written
	var length []byte
	for _, e := range s.entries {
		length = binary.AppendUvarint(length[:0], uint64(e.end-e.start))
		_, _ = w.Write(length)
		_, _ = w.Write(s.arena[e.start:e.end]) // a failure shows in Flush
		s.written += int64(len(length)) + int64(e.end-e.start)
	}
	s.arena, s.entries = s.arena[:0], s.entries[:0]
	return s.close(w, start)
}

// unpack puts the cells of a record back into the order of the row.
func (s *sorter) unpack(record []byte, row [][]byte) {
	for _, cell := range s.cells {
		row[cell], record = cutCell(record)
	}
}

// sortedArena hands out rows that all fitted into memory.
type sortedArena struct {
	s   *sorter
	at  int
	row [][]byte
}

// Close has nothing to do: all is in memory.
func (a *sortedArena) Close() error { return nil }

// Next implements Rows.
func (a *sortedArena) Next() ([][]byte, error) {
	if a.at == len(a.s.entries) {
		return nil, io.EOF
	}
	e := a.s.entries[a.at]
	a.at++
	a.s.unpack(a.s.arena[e.start:e.end], a.row)
	return a.row, nil
}
