package fileformat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// Parquet reads the fields at the top of a schema as columns; nested
// values become JSON.
type Parquet struct{}

// Extensions: there is but one.
func (Parquet) Extensions() []string { return []string{".parquet"} }

// shielded turns a panic of the decoder into an error: it takes a file at its
// word, and a damaged one may say anything.
func shielded(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the file is damaged: %v", p)
	}
}

// openParquet reads the footer only. Indexes and filters are for look-ups, which
// no file here has.
func openParquet(f *os.File) (_ *parquet.File, err error) {
	defer shielded(&err)
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, errors.New("the file is empty and not a Parquet file")
	}
	file, err := parquet.OpenFile(f, info.Size(), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil && begins(f, parquetMark) && !ends(f, info.Size(), parquetMark) {
		return nil, errors.New("not a Parquet file that is whole: it begins as one, and its end is missing, which lists what it holds")
	}
	if err != nil {
		return nil, fmt.Errorf("not a Parquet file: %w", err)
	}
	return file, nil
}

// parquetMark is at both ends of a Parquet file.
const parquetMark = "PAR1"

func begins(f io.ReaderAt, mark string) bool { return ends(f, int64(len(mark)), mark) }

// ends reports whether the text that ends at a place of a file is the mark.
func ends(f io.ReaderAt, at int64, mark string) bool {
	text := make([]byte, len(mark))
	n, _ := f.ReadAt(text, max(0, at-int64(len(mark))))
	return string(text[:n]) == mark
}

// columns are those of the schema, which the file holds itself.
func (Parquet) columns(_ context.Context, f *os.File) (_ []api.Column, err error) {
	defer shielded(&err)
	file, err := openParquet(f)
	if err != nil {
		return nil, err
	}
	columns := []api.Column{}
	for _, c := range file.Root().Columns() {
		name, kind := parquetKind(c)
		columns = append(columns, api.Column{Name: c.Name(), Type: name, Kind: kind})
	}
	return columns, nil
}

// parquetKind names the type of a column and the kind of its values.
func parquetKind(c *parquet.Column) (string, api.Kind) {
	switch {
	case c.Repeated():
		return "LIST", api.KindArray
	case c.Leaf():
		return c.Type().String(), leafKind(c.Type())
	case listElement(c) != nil:
		return "LIST", api.KindArray
	case mapEntry(c) != nil:
		return "MAP", api.KindObject
	}
	return "GROUP", api.KindObject
}

// leafKind goes by what the writer said of a type, then by how it is stored.
func leafKind(t parquet.Type) api.Kind {
	if logical := t.LogicalType(); logical != nil {
		switch logical.Value.(type) {
		case *format.StringType, *format.EnumType, *format.UUIDType, *format.TimeType:
			return api.KindString
		case *format.DecimalType:
			return api.KindDecimal
		case *format.DateType:
			return api.KindDate
		case *format.TimestampType:
			return api.KindDateTime
		case *format.IntType:
			return api.KindInteger
		case *format.JsonType:
			return api.KindObject
		case *format.Float16Type:
			return api.KindFloat
		case *format.NullType:
			return api.KindAny
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return api.KindBoolean
	case parquet.Int32, parquet.Int64:
		return api.KindInteger
	case parquet.Int96: // the old form of a timestamp
		return api.KindDateTime
	case parquet.Float, parquet.Double:
		return api.KindFloat
	}
	return api.KindBinary
}

// listElement is the repeated node of a column that is annotated as a list: a
// group of one repeated field.
func listElement(c *parquet.Column) *parquet.Column {
	return annotated(c, func(v any) bool { _, ok := v.(*format.ListType); return ok })
}

// mapEntry is the repeated group of key and value of a map.
func mapEntry(c *parquet.Column) *parquet.Column {
	entry := annotated(c, func(v any) bool { _, ok := v.(*format.MapType); return ok })
	if entry == nil || len(entry.Columns()) != 2 || !entry.Columns()[0].Leaf() {
		return nil
	}
	return entry
}

// annotated gives the repeated group within a list or a map, nil for a column
// that is none.
func annotated(c *parquet.Column, is func(any) bool) *parquet.Column {
	if c.Leaf() || len(c.Columns()) != 1 || !c.Columns()[0].Repeated() {
		return nil
	}
	if logical := c.Type().LogicalType(); logical == nil || !is(logical.Value) {
		return nil
	}
	return c.Columns()[0]
}

// Rows prepares a writer for each wanted column. A file with another number of
// columns was replaced meanwhile.
func (Parquet) Rows(ctx context.Context, f *os.File, columns []api.Column, wanted []int) (_ Rows, err error) {
	defer shielded(&err)
	file, err := openParquet(f)
	if err != nil {
		return nil, err
	}
	top := file.Root().Columns()
	if len(top) != len(columns) {
		return nil, ErrChanged
	}
	r := &parquetRows{ctx: ctx, groups: file.RowGroups(), row: cell.NewRow(len(wanted)), batch: make([]parquet.Row, 64)}
	for _, i := range wanted {
		r.columns = append(r.columns, newParquetNode(top[i]))
	}
	r.cells.values = make([][]parquet.Value, leaves(file.Root()))
	return r, nil
}

// leaves counts the columns that hold values.
func leaves(c *parquet.Column) int {
	if c.Leaf() {
		return 1
	}
	n := 0
	for _, child := range c.Columns() {
		n += leaves(child)
	}
	return n
}

// parquetRows reads row group by row group, a batch of rows at a time.
type parquetRows struct {
	ctx     context.Context
	groups  []parquet.RowGroup
	open    parquet.Rows
	batch   []parquet.Row
	filled  int // rows in the batch
	at      int // of them handed out
	columns []*parquetNode
	cells   cellReader
	row     cell.Row
}

// Close ends the group of rows that is being read.
func (r *parquetRows) Close() error {
	if r.open == nil {
		return nil
	}
	return r.open.Close()
}

// Next implements Rows. The library panics on files that are broken; shielded
// makes errors of that.
func (r *parquetRows) Next() (values [][]byte, err error) {
	defer shielded(&err)
	for r.at == r.filled {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	r.cells.load(r.batch[r.at])
	r.at++
	r.row.Reset()
	for _, c := range r.columns {
		r.row.Buf = c.append(r.row.Buf, &r.cells)
		r.row.End()
	}
	return r.row.Values(), nil
}

// fill reads the next batch.
func (r *parquetRows) fill() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	if r.open == nil {
		if len(r.groups) == 0 {
			return io.EOF
		}
		r.open, r.groups = r.groups[0].Rows(), r.groups[1:]
	}
	n, err := r.open.ReadRows(r.batch)
	r.at, r.filled = 0, n
	switch {
	case n > 0:
		return nil
	case err == nil:
		return errors.New("the file is damaged: a row group ends early")
	case !errors.Is(err, io.EOF):
		return err
	}
	err = r.open.Close()
	r.open = nil
	return err
}
