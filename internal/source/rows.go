package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/api"
)

// Reader is a Source that hands out rows.
type Reader interface {
	// Rows reads some columns of an object, all where columns is nil, in one
	// consistent snapshot. With order the rows come in ascending order of these
	// columns, one after another, each compared by the bytes of its JSON text;
	// without, in any order. Memory does not grow with the number of rows.
	Rows(ctx context.Context, object Object, columns, order []string) (Rows, error)
}

// Rows is a stream of rows, for one goroutine.
type Rows interface {
	// Next returns the next row as one JSON text per column, valid until the
	// next call, and io.EOF after the last one. After an error the stream is
	// over.
	Next() ([][]byte, error)
	Close() error
}

// selection is the part of an object that is read: places of the requested
// columns and, after them, of columns for sorting only.
type selection struct {
	wanted []int // the columns read
	width  int   // so many of them are handed out
	order  []int // places in wanted
}

// choose finds the columns by their names.
func choose(object Object, all []api.Column, columns, order []string) (selection, error) {
	var s selection
	place := func(name string) (int, error) {
		i := slices.IndexFunc(all, func(c api.Column) bool { return c.Name == name })
		if i < 0 {
			return 0, fmt.Errorf("read column %q of %s: %w", name, object, ErrNoColumn)
		}
		return i, nil
	}
	if columns == nil {
		for i := range all {
			s.wanted = append(s.wanted, i)
		}
	}
	for _, name := range columns {
		i, err := place(name)
		if err != nil {
			return s, err
		}
		s.wanted = append(s.wanted, i)
	}
	s.width = len(s.wanted)
	for _, name := range order {
		i, err := place(name)
		if err != nil {
			return s, err
		}
		at := slices.Index(s.wanted, i)
		if at < 0 {
			at = len(s.wanted)
			s.wanted = append(s.wanted, i)
		}
		s.order = append(s.order, at)
	}
	return s, nil
}

// arranged puts rows into the order of a selection, on disk where they come in
// another, and drops the columns that were not requested. It owns rows.
func arranged(ctx context.Context, rows Rows, s selection, inOrder bool, scratch string) (Rows, error) {
	if len(s.order) > 0 && !inOrder {
		sorted, err := rowsort.Sort(ctx, rows, s.order, scratch)
		if err != nil {
			return nil, err
		}
		rows = sorted
	}
	if s.width == len(s.wanted) {
		return rows, nil
	}
	return &narrow{rows, s.width}, nil
}

// narrow drops the last columns.
type narrow struct {
	Rows
	width int
}

// Next implements Rows; the cells beyond the width were only read to sort by.
func (n *narrow) Next() ([][]byte, error) {
	values, err := n.Rows.Next()
	if err != nil {
		return nil, err
	}
	return values[:n.width], nil
}
