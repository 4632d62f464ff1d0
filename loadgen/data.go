package loadgen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/plural"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/loadgen/internal/failure"
)

// Data is a file of records: CSV with a header line, JSON lines or Parquet.
// Columns go to the fields of their name.
type Data struct {
	Path string
	// Format is csv, jsonl or parquet; "" goes by the extension.
	Format string
	// OwnKeys sends the identifiers of the file as they are. They do not carry the
	// run, so nothing of them is ever cleaned up. Otherwise the identifier is
	// that of the run, whatever the file says.
	OwnKeys bool
	// Most bounds how many records are read; 0: 1,000,000. They are sent over and
	// over.
	Most int

	columns []string
	cells   [][][]byte
}

// formats by extension, and the source that reads them.
var formats = map[string]string{
	"csv": "csv", "tsv": "csv", "jsonl": "jsonl", "ndjson": "jsonl", "parquet": "parquet",
}

// most rows and bytes of a file are kept: the generator shares the machine.
const (
	mostRows  = 1_000_000
	mostBytes = 1 << 30
)

// Load reads the file. A line that cannot be read is a *UsageError with its
// number: half a file is not the work that was asked for.
func (d *Data) Load(ctx context.Context) error {
	format := strings.ToLower(d.Format)
	if format == "" {
		format = strings.TrimPrefix(strings.ToLower(filepath.Ext(d.Path)), ".")
	}
	typ, ok := formats[format]
	if !ok {
		return failure.Usagef("data file %s: the format %q is none of csv, jsonl and parquet; --data-format names it", d.Path, format)
	}
	path, err := filepath.Abs(d.Path)
	if err != nil {
		return failure.Usagef("data file %s: %v", d.Path, err)
	}
	text, err := json.Marshal(path)
	if err != nil {
		return failure.Usagef("data file %s: %v", d.Path, err)
	}
	src, err := source.Open(ctx, typ, map[string]json.RawMessage{"path": text}, source.Options{})
	if err != nil {
		return failure.Usagef("data file: %v", err)
	}
	defer src.Close()
	if err := d.read(ctx, src); err != nil {
		return failure.Usagef("data file: %v", err)
	}
	if len(d.cells) == 0 {
		return failure.Usagef("data file %s: there is no record in it", d.Path)
	}
	return nil
}

// read takes the rows into memory.
func (d *Data) read(ctx context.Context, src source.Source) error {
	reader, ok := src.(source.Reader)
	if !ok {
		return errors.New("this format cannot be read")
	}
	tables, err := src.Tables(ctx)
	if err != nil {
		return err
	}
	if len(tables) != 1 {
		return fmt.Errorf("read %s: %s where one file was meant", d.Path, plural.Count(len(tables), "table"))
	}
	table := tables[0]
	for _, c := range table.Columns {
		d.columns = append(d.columns, c.Name)
	}
	rows, err := reader.Rows(ctx, source.Object{Name: table.TableName}, nil, nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	most, bytes := d.Most, 0
	if most <= 0 {
		most = mostRows
	}
	for len(d.cells) < most && bytes < mostBytes {
		cells, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		kept := make([][]byte, len(cells))
		for i, cell := range cells {
			kept[i] = append([]byte(nil), cell...)
			bytes += len(cell) + 24
		}
		d.cells = append(d.cells, kept)
	}
	return nil
}

// fromData makes records of the rows of a file, with the keys of the run unless
// the file's own are wanted.
func (m *maker) fromData(d *Data) ([]row, error) {
	at := map[string]int{}
	for i, name := range d.columns {
		at[name] = i
	}
	var missing []string
	for _, f := range m.object.mapped {
		_, there := at[f.APIName]
		if !there && (f.Required && f.APIName != m.object.identifier.APIName || d.OwnKeys && f.APIName == m.object.identifier.APIName) {
			missing = append(missing, f.APIName)
		}
	}
	if len(missing) > 0 {
		return nil, failure.Usagef("data file %s: no column for %s; it has %s", d.Path, strings.Join(missing, ", "), strings.Join(d.columns, ", "))
	}
	m.object.mapped = slices.DeleteFunc(slices.Clone(m.object.mapped), func(f rpc.Field) bool {
		_, there := at[f.APIName]
		return !there && f.APIName != m.object.identifier.APIName
	})
	rows := make([]row, len(d.cells))
	for i, cells := range d.cells {
		if err := m.dataRow(&rows[i], d, at, cells); err != nil {
			return nil, failure.Usagef("data file %s: record %d: %v", d.Path, i+1, err)
		}
	}
	return rows, nil
}

func (m *maker) dataRow(r *row, d *Data, at map[string]int, cells [][]byte) error {
	for i, f := range m.object.mapped {
		r.member(f.APIName)
		if i == 0 && !d.OwnKeys {
			r.key(m.keys, f.Type == rpc.TypeInteger)
			continue
		}
		value := cells[at[f.APIName]]
		if len(value) == 0 {
			value = []byte("null")
		}
		value = conform(value, f)
		if i == 0 {
			if string(value) == "null" {
				return fmt.Errorf("the identifier %s is null", f.APIName)
			}
			r.from, r.to = len(r.text), len(r.text)+len(value)
		}
		r.text = append(r.text, value...)
	}
	r.text = append(r.text, '}')
	return nil
}

// conform gives a scalar the JSON type of its field where only the type of the
// file differs: a CSV column of digits may be meant for a string, and a decimal
// travels as text.
func conform(value []byte, f rpc.Field) []byte {
	if f.Array || len(value) == 0 || string(value) == "null" {
		return value
	}
	quoted := value[0] == '"'
	switch f.Type {
	case rpc.TypeString, rpc.TypeDecimal, rpc.TypeDate, rpc.TypeDateTime:
		if !quoted && value[0] != '{' && value[0] != '[' {
			return rpc.AppendString(nil, string(value))
		}
	case rpc.TypeInteger, rpc.TypeFloat, rpc.TypeBoolean:
		if quoted {
			if plain := bytes.Trim(value, `"`); json.Valid(plain) && len(plain) > 0 && plain[0] != '{' && plain[0] != '[' {
				return plain
			}
		}
	}
	return value
}
