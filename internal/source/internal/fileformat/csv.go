package fileformat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// CSV reads RFC 4180 with a header line; files that end in .tsv have tabs. An
// empty field is null, with or without quotes. The kind of a column is that of
// all of its first 1,000 values, else string.
type CSV struct{}

// Extensions: both separators are read, whatever the file is called.
func (CSV) Extensions() []string { return []string{".csv", ".tsv"} }

// longestRecord bounds a line of a file: a quote that is never closed would
// otherwise read the whole file into memory.
const longestRecord = 16 << 20

// csvReader reads records with a limit on each.
type csvReader struct {
	*csv.Reader
	limit *recordLimit
	ctx   context.Context
	width int
	line  int // at which the last record starts
}

// Spreadsheets put it before the first name, which would become another name.
var byteOrderMark = []byte("\ufeff")

// openCSV reads the header. Names are kept unchanged, without the blanks around
// them.
func openCSV(ctx context.Context, f *os.File) (*csvReader, []string, error) {
	buffered := bufio.NewReaderSize(f, 64<<10)
	if start, _ := buffered.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		_, _ = buffered.Discard(len(byteOrderMark))
	}
	limit := &recordLimit{from: buffered, left: longestRecord}
	r := &csvReader{Reader: csv.NewReader(limit), limit: limit, ctx: ctx}
	// The extension decides and not the content: guessing a separator from a header
	// goes wrong on the first name that holds one.
	if strings.EqualFold(filepath.Ext(f.Name()), ".tsv") {
		r.Comma = '\t'
	}
	r.FieldsPerRecord = -1 // counted here, for a message with both numbers
	header, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, nil, errors.New("the file is empty: its first line must name the columns")
	}
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, len(header))
	for i, name := range header {
		switch {
		case !utf8.ValidString(name):
			return nil, nil, fmt.Errorf("line 1: the name of column %d is not UTF-8: save the file as UTF-8", i+1)
		case strings.TrimSpace(name) == "":
			return nil, nil, fmt.Errorf("line 1: column %d has no name", i+1)
		}
		names[i] = strings.TrimSpace(name)
	}
	r.ReuseRecord, r.width = true, len(names)
	return r, names, nil
}

// next reads a record. Its fields live until the next call.
func (r *csvReader) next() ([]string, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, context.Cause(r.ctx)
	}
	r.limit.left = longestRecord
	record, err := r.Read()
	var parse *csv.ParseError
	switch {
	case err != nil && r.limit.left <= 0: // the parser reports it as an open quote
		return nil, fmt.Errorf("after line %d: %w", r.line, errLongRecord)
	case errors.As(err, &parse):
		return nil, fmt.Errorf("line %d, column %d: %w", parse.Line, parse.Column, parse.Err)
	case err != nil:
		return nil, err
	}
	r.line, _ = r.FieldPos(0)
	if r.width > 0 && len(record) != r.width {
		return nil, fmt.Errorf("line %d: %d fields, and the header has %d", r.line, len(record), r.width)
	}
	return record, nil
}

// recordLimit ends a reader on a request for too much at once.
type recordLimit struct {
	from io.Reader
	left int
}

// A quote that is never closed makes one record of the rest of the file.
var errLongRecord = fmt.Errorf("the record is longer than %d MiB: is a quote never closed?", longestRecord>>20)

// Read implements io.Reader.
func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errLongRecord
	}
	n, err := l.from.Read(p[:min(len(p), max(l.left, 1))])
	l.left -= n
	return n, err
}

// columns takes the names from the first record, and the kinds from a sample of
// the others.
func (CSV) columns(ctx context.Context, f *os.File) ([]api.Column, error) {
	r, names, err := openCSV(ctx, f)
	if err != nil {
		return nil, err
	}
	kinds := make([]cell.Inference, len(names))
	for range sampled {
		record, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for i, value := range record {
			kinds[i].Add(value)
		}
	}
	columns := make([]api.Column, len(names))
	for i, name := range names {
		kind := kinds[i].Kind(cell.Every...)
		columns[i] = api.Column{Name: name, Type: string(kind), Kind: kind}
	}
	return columns, nil
}

// Rows reads the file again, and gives up where the names are not those that
// the columns were made of.
func (CSV) Rows(ctx context.Context, f *os.File, columns []api.Column, wanted []int) (Rows, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	r, names, err := openCSV(ctx, f)
	if err != nil {
		return nil, err
	}
	if !slices.EqualFunc(names, columns, func(name string, c api.Column) bool { return name == c.Name }) {
		return nil, ErrChanged
	}
	return &csvRows{r: r, columns: columns, wanted: wanted, row: cell.NewRow(len(wanted))}, nil
}

// csvRows turns records into rows.
type csvRows struct {
	r       *csvReader
	columns []api.Column
	wanted  []int
	row     cell.Row
}

// Close has nothing to do: the file is closed by whoever has opened it.
func (c *csvRows) Close() error { return nil }

// Next implements Rows.
func (c *csvRows) Next() ([][]byte, error) {
	record, err := c.r.next()
	if err != nil {
		return nil, err
	}
	c.row.Reset()
	for _, i := range c.wanted {
		c.row.Buf = appendText(c.row.Buf, record[i], c.columns[i].Kind)
		c.row.End()
	}
	return c.row.Values(), nil
}

// appendText writes a text as a value of a kind. Where it is none, it stays a
// string, for the mapping to judge.
func appendText(dst []byte, value string, kind api.Kind) []byte {
	if value == "" {
		return append(dst, cell.Null...)
	}
	bare := false
	switch kind {
	case api.KindBoolean:
		bare = cell.IsBoolean(value)
	case api.KindInteger:
		bare = cell.IsInteger(value)
	case api.KindDecimal:
		bare = cell.IsDecimal(value)
	case api.KindFloat:
		bare = cell.IsFloat(value)
	}
	if bare {
		return append(dst, value...)
	}
	return cell.AppendString(dst, value)
}
