package records

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
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// File is a file of records in memory.
type File struct {
	path    string
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

// ReadFile reads a file whose extension names its format, most records at most. A line
// that cannot be read is a mistake of the caller, with its number: half a file is not
// the requested work.
func ReadFile(ctx context.Context, path string, most int) (*File, error) {
	typ, ok := formats[strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")]
	if !ok {
		return nil, wire.Usagef("data file %s: its name must end in .csv, .jsonl or .parquet", path)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, wire.Usagef("data file %s: %v", path, err)
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return nil, wire.Usagef("data file %s: %v", path, err)
	}
	src, err := source.Open(ctx, typ, map[string]json.RawMessage{"path": text}, source.Options{})
	if err != nil {
		return nil, wire.Usagef("data file: %v", err)
	}
	defer src.Close()
	d := &File{path: path}
	if err := d.read(ctx, src, most); err != nil {
		return nil, wire.Usagef("data file: %v", err)
	}
	if len(d.cells) == 0 {
		return nil, wire.Usagef("data file %s: there is no record in it", path)
	}
	return d, nil
}

// read takes the rows into memory.
func (d *File) read(ctx context.Context, src source.Source, most int) error {
	reader, ok := src.(source.Reader)
	if !ok {
		return errors.New("this format cannot be read")
	}
	tables, err := src.Tables(ctx)
	if err != nil {
		return err
	}
	if len(tables) != 1 {
		return fmt.Errorf("read %s: %s where one file was meant", d.path, quantity.Count(len(tables), "table"))
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
	bytes := 0
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

// FromFile makes records of the rows of a file, with the keys of the run unless
// the file's own are wanted.
func (m *Maker) FromFile(d *File, ownKeys bool) ([]Row, error) {
	at := map[string]int{}
	for i, name := range d.columns {
		at[name] = i
	}
	var missing []string
	for _, f := range m.Object.Mapped {
		_, there := at[f.APIName]
		if !there && (f.Required && f.APIName != m.Object.Identifier.APIName || ownKeys && f.APIName == m.Object.Identifier.APIName) {
			missing = append(missing, f.APIName)
		}
	}
	if len(missing) > 0 {
		return nil, wire.Usagef("data file %s: no column for %s; it has %s", d.path, strings.Join(missing, ", "), strings.Join(d.columns, ", "))
	}
	m.Object.Mapped = slices.DeleteFunc(slices.Clone(m.Object.Mapped), func(f rpc.Field) bool {
		_, there := at[f.APIName]
		return !there && f.APIName != m.Object.Identifier.APIName
	})
	rows := make([]Row, len(d.cells))
	for i, cells := range d.cells {
		if err := m.dataRow(&rows[i], ownKeys, at, cells); err != nil {
			return nil, wire.Usagef("data file %s: record %d: %v", d.path, i+1, err)
		}
	}
	return rows, nil
}

func (m *Maker) dataRow(r *Row, ownKeys bool, at map[string]int, cells [][]byte) error {
	for i, f := range m.Object.Mapped {
		r.Member(f.APIName)
		if i == 0 && !ownKeys {
			r.Key(m.Keys, f.Type == rpc.TypeInteger)
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
			r.From, r.To = len(r.Text), len(r.Text)+len(value)
		}
		r.Text = append(r.Text, value...)
	}
	r.Text = append(r.Text, '}')
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
			return rawjson.AppendString(nil, string(value))
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
