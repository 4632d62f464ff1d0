package destsim

import (
	"bytes"

	"github.com/destkit/destkit/destsim/internal/store"
)

// cell is one value of a record on its way into the store.
type cell struct {
	column *column
	// raw is the canonical JSON text of the value. It may be a slice of the
	// request, so it is replaced, never edited.
	raw []byte
}

// encodeCells makes the data of a new row.
func encodeCells(cells []cell) []byte {
	size := 2
	for i := range cells {
		size += len(cells[i].column.quoted) + len(cells[i].raw) + 2
	}
	data := append(make([]byte, 0, size), '{')
	for i := range cells {
		data = store.AppendMember(data, cells[i].column.quoted, cells[i].raw)
	}
	return append(data, '}')
}

// mergeCells makes the data of a changed row: what cells do not name stays.
func mergeCells(old []byte, cells []cell) []byte {
	if sameNames(old, cells) {
		return encodeCells(cells)
	}
	size := len(old)
	for i := range cells {
		size += len(cells[i].column.quoted) + len(cells[i].raw) + 2
	}
	data := append(make([]byte, 0, size), '{')
	store.EachMember(old, func(name, value []byte) bool {
		for i := range cells {
			if bytes.Equal(cells[i].column.quoted, name) {
				return true
			}
		}
		data = store.AppendMember(data, name, value)
		return true
	})
	for i := range cells {
		data = store.AppendMember(data, cells[i].column.quoted, cells[i].raw)
	}
	return append(data, '}')
}

// sameNames reports whether a row has the names of cells, in their order: the
// usual case of a batch that is sent again with other values.
func sameNames(data []byte, cells []cell) bool {
	n := 0
	store.EachMember(data, func(name, _ []byte) bool {
		if n < len(cells) && bytes.Equal(cells[n].column.quoted, name) {
			n++
			return true
		}
		n = -1
		return false
	})
	return n == len(cells)
}
