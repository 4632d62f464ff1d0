// Package cell has the forms in which the readers of sources write values: each cell is
// JSON text in the one form that keys compare in, and a row is the memory of its cells.
//
// It leaves to the readers where values come from and which form is meant.
package cell

// Row is the memory of one row: all values in one buffer, to which they are
// appended.
type Row struct {
	Buf   []byte
	ends  []int
	cells [][]byte
}

// Forget lets go of the values that were handed out last.
func (r *Row) Forget() { clear(r.cells) }

// NewRow makes a row that is used again for each record.
func NewRow(width int) Row {
	return Row{ends: make([]int, 0, width), cells: make([][]byte, width)}
}

// Reset keeps the memory.
func (r *Row) Reset() { r.Buf, r.ends = r.Buf[:0], r.ends[:0] }

// End closes the value that was appended to buf.
func (r *Row) End() { r.ends = append(r.ends, len(r.Buf)) }

// Values cuts the buffer up. They are valid until the next reset.
func (r *Row) Values() [][]byte {
	start := 0
	for i, end := range r.ends {
		r.cells[i] = r.Buf[start:end:end]
		start = end
	}
	return r.cells
}
