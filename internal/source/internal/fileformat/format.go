// Package fileformat reads files as tables: CSV, JSON lines and Parquet. A format finds the
// columns of an open file and hands out its rows as JSON text, from its start to its end.
//
// It leaves to the source of files which files there are, which of them may be opened, and
// whether a file is changed meanwhile.
package fileformat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/destkit/destkit/server/api"
)

// Format is one format of files.
type Format interface {
	// Extensions of its files in a folder, in lower case and with the point.
	Extensions() []string
	columns(ctx context.Context, f *os.File) ([]api.Column, error)
	// Rows reads the columns wanted, by their place among all columns.
	Rows(ctx context.Context, f *os.File, columns []api.Column, wanted []int) (Rows, error)
}

// Rows are the rows of a file: Next returns the cells of the next one, valid until
// the next call, and io.EOF after the last one.
type Rows interface {
	Next() ([][]byte, error)
	Close() error
}

// sampled is how many rows of a file are looked at for the kinds of its columns.
const sampled = 1000

// ErrChanged: a file has changed since its columns were read.
var ErrChanged = errors.New("the file was changed while it was read")

// distinctNames refuses columns that a mapping could not name or distinguish.
func distinctNames(columns []api.Column) error {
	at := map[string]int{}
	for i, c := range columns {
		if !utf8.ValidString(c.Name) {
			return fmt.Errorf("the name of column %d is not UTF-8", i+1)
		}
		if first, ok := at[c.Name]; ok {
			return fmt.Errorf("columns %d and %d are both named %q", first+1, i+1, c.Name)
		}
		at[c.Name] = i
	}
	return nil
}

// Columns reads the columns of a file. Two of the same name are refused: a mapping
// could not distinguish them.
func Columns(ctx context.Context, format Format, f *os.File) ([]api.Column, error) {
	columns, err := format.columns(ctx, f)
	if err == nil {
		err = distinctNames(columns)
	}
	return columns, err
}
