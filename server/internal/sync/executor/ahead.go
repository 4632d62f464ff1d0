package executor

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/rowsort"
)

const (
	// chunkRows and chunkBytes end a chunk; it holds one row at least.
	chunkRows  = 512
	chunkBytes = 128 << 10
	// chunks are being read, waiting and being used.
	chunks = 4
)

// ahead reads rows in its own goroutine, a little before they are wanted: a
// source and the mapping of its rows take about the same time.
type ahead struct {
	rows   source.Rows
	widen  func() error // called before wide rows are passed on; may be nil
	cancel context.CancelFunc
	full   chan *chunk // closed at the end of the reading
	empty  chan *chunk
	now    *chunk // whose rows are handed out
	at     int    // the next row
	cells  [][]byte
}

// chunk is some rows in one buffer.
type chunk struct {
	buf  []byte
	ends []int // of the cells
	rows int
	err  error // the end of the rows
}

// readAhead takes rows over; cancel ends their waits.
func readAhead(rows source.Rows, width int, widen func() error, cancel context.CancelFunc) *ahead {
	a := &ahead{
		rows: rows, widen: widen, cancel: cancel, cells: make([][]byte, width),
		full: make(chan *chunk, chunks), empty: make(chan *chunk, chunks),
	}
	for range chunks {
		a.empty <- &chunk{}
	}
	go a.read()
	return a
}

// read fills chunks until there are no more rows, or no one gives it an empty
// one. After a wide row it waits until that has been used.
func (a *ahead) read() {
	defer close(a.full)
	var spare []*chunk
	for {
		var c *chunk
		if n := len(spare); n > 0 {
			c, spare = spare[n-1], spare[:n-1]
		} else if c = <-a.empty; c == nil {
			return
		}
		c.fill(a.rows, a.widen)
		alone, last := len(c.buf) > rowsort.WideRow, c.err != nil
		a.full <- c
		if last {
			return
		}
		for alone {
			back := <-a.empty
			if back == nil {
				return
			}
			spare = append(spare, back)
			alone = back != c
		}
	}
}

// fill reads the rows of one chunk.
func (c *chunk) fill(rows source.Rows, widen func() error) {
	defer func() {
		if value := recover(); value != nil { // a format's reader must not take the service with it
			c.err = fmt.Errorf("the reader of the source panicked: %v\n%s", value, debug.Stack())
		}
	}()
	if cap(c.buf) > 8*chunkBytes { // a row was very large
		c.buf = nil
	}
	c.buf, c.ends, c.rows = c.buf[:0], c.ends[:0], 0
	for c.rows < chunkRows && len(c.buf) < chunkBytes {
		row, err := rows.Next()
		if err != nil {
			c.err = err
			return
		}
		if widen != nil && wide(row) {
			if c.err = widen(); c.err != nil {
				return
			}
		}
		for _, cell := range row {
			c.buf = append(c.buf, cell...)
			c.ends = append(c.ends, len(c.buf))
		}
		c.rows++
	}
}

// wide reports whether a row is so long that its run waits for others like it.
func wide(row [][]byte) bool {
	size := 0
	for _, cell := range row {
		size += len(cell)
	}
	return size > rowsort.WideRow
}

// errEnded: rows are requested after their end.
var errEnded = errors.New("the rows have ended")

var _ source.Rows = (*ahead)(nil)

// Next implements source.Rows.
func (a *ahead) Next() ([][]byte, error) {
	for a.now == nil || a.at == a.now.rows {
		if a.now != nil {
			if a.now.err != nil {
				return nil, a.now.err
			}
			if len(a.now.buf) > rowsort.WideRow {
				clear(a.cells)
			}
			a.empty <- a.now
		}
		c, more := <-a.full
		if !more {
			return nil, errEnded
		}
		a.now, a.at = c, 0
	}
	width := len(a.cells)
	ends := a.now.ends[a.at*width : (a.at+1)*width]
	start := 0
	if a.at > 0 && width > 0 {
		start = a.now.ends[a.at*width-1]
	}
	for i, end := range ends {
		a.cells[i] = a.now.buf[start:end:end]
		start = end
	}
	a.at++
	return a.cells, nil
}

// Close ends the reading, whatever it waits for, and then the rows.
func (a *ahead) Close() error {
	if a.empty == nil {
		return nil
	}
	a.cancel()
	close(a.empty)
	for c := range a.full { // until the goroutine has left the rows alone
		_ = c
	}
	a.empty = nil
	return a.rows.Close()
}
