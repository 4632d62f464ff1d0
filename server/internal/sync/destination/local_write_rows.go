package destination

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/codec"
	"github.com/destkit/destkit/internal/rawjson"
)

// keyHash represents the identifier of a record.
type keyHash [16]byte

type keySet map[keyHash]bool

// rows are the records of one batch, taken apart.
type rows struct {
	plan  *Plan
	batch codec.Batch
}

// readRows validates the records: the values in a file are JSON text as a whole
// or nothing.
func readRows(plan *Plan, records [][]byte) (*rows, error) {
	r := &rows{plan: plan}
	// The codec of the protocol is the one scanner that validates without
	// building maps.
	if err := codec.DecodeBatch(plan.appendParams(nil, records), &r.batch); err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	if r.batch.Len() != len(records) {
		return nil, fmt.Errorf("read records: they hold %d, not %d", r.batch.Len(), len(records))
	}
	return r, nil
}

func (r *rows) len() int { return r.batch.Len() }

func (r *rows) at(i int) codec.RawRecord { return r.batch.Record(i) }

// identifier is the raw value; nil without one.
func (r *rows) identifier(i int) []byte {
	if r.plan.identifier == "" {
		return nil
	}
	raw, _ := r.at(i).Field(r.plan.identifier)
	return raw
}

// key represents the record's identifier; false without one.
func (r *rows) key(i int) (hash keyHash, has bool) {
	raw := r.identifier(i)
	if raw == nil {
		return hash, false
	}
	sum := sha256.Sum256(raw)
	copy(hash[:], sum[:])
	return hash, true
}

// reply accepts every record.
func (r *rows) reply() Reply {
	reply := Reply{Results: make([]rpc.RecordResult, r.len())}
	for i := range reply.Results {
		reply.Results[i] = rpc.RecordResult{Identifier: r.identifier(i), Success: true}
	}
	return reply
}

// layout is the format of rows in one file.
type layout struct {
	plan     *Plan
	csv      bool
	columns  []string // of a CSV file, from its header
	replaced bool     // the file was rewritten
}

// layout reads the header of the file, or gives the one of a new file as text;
// columns that the file does not have are added to it (allow_custom_fields).
func (s *filesSender) layout(root *os.Root, f *os.File, end int64, plan *Plan, rows *rows) (*layout, []byte, error) {
	l := &layout{plan: plan, csv: s.format == FormatCSV}
	var lead []byte
	if end > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, end-1); err != nil {
			return nil, nil, fmt.Errorf("read the end of the file: %w", err)
		}
		if last[0] != '\n' { // written by another program
			lead = []byte("\n")
		}
	}
	if !l.csv {
		return l, lead, nil
	}
	wanted := l.wanted(rows)
	if end == 0 {
		l.columns = wanted
		return l, appendHeader(nil, wanted), nil
	}
	head, err := headLine(io.NewSectionReader(f, 0, end))
	if err != nil {
		return nil, nil, err
	}
	found, err := csvColumns(head)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range found {
		l.columns = append(l.columns, c.name)
	}
	// The order of the file wins over that of the mappings: its rows stay.
	before := len(l.columns)
	for _, name := range wanted {
		if !slices.Contains(l.columns, name) {
			l.columns = append(l.columns, name)
		}
	}
	if len(l.columns) > before {
		l.replaced = true
		return l, nil, s.widen(root, f, end, head, l.columns, len(l.columns)-before)
	}
	return l, lead, nil
}

// wanted are the columns of the plan, and the other members of records.
func (l *layout) wanted(rows *rows) []string {
	names := fileColumns(l.plan)
	for i := range rows.len() {
		record := rows.at(i)
		for j := range record.Len() {
			name, _ := record.At(j)
			if j < len(names) && names[j] == string(name) {
				continue
			}
			if !slices.Contains(names, string(name)) && !hiddenIn(l.plan, string(name)) {
				names = append(names, string(name))
			}
		}
	}
	return names
}

// headLine reads the header record, which may span lines.
func headLine(r io.Reader) ([]byte, error) {
	in := bufio.NewReader(io.LimitReader(r, maxHead))
	var head []byte
	for {
		line, err := in.ReadBytes('\n')
		head = append(head, line...)
		// An odd number of quotes means that a name goes on in the next line.
		if errors.Is(err, io.EOF) || err == nil && bytes.Count(head, []byte{'"'})%2 == 0 {
			return head, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read header line: %w", err)
		}
	}
}

func appendHeader(dst []byte, columns []string) []byte {
	for i, name := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCell(dst, name)
	}
	return append(dst, '\n')
}

// appendCell writes a text; quoted where CSV needs it, and when it is empty:
// an empty cell without quotes is null.
func appendCell(dst []byte, text string) []byte {
	if text != "" && !strings.ContainsAny(text, "\",\r\n") && text[0] != ' ' && text != `\.` {
		return append(dst, text...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(text, `"`, `""`)...)
	return append(dst, '"')
}

// appendRow writes one record as a line.
func (l *layout) appendRow(dst []byte, record codec.RawRecord) []byte {
	if l.csv {
		return l.appendLine(dst, record)
	}
	dst = append(dst, '{')
	first := true
	for j := range record.Len() {
		name, raw := record.At(j)
		if hiddenIn(l.plan, string(name)) {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(rawjson.AppendString(dst, string(name)), ':')
		if bytes.ContainsAny(raw, "\n\r") { // between tokens, since JSON has none within text
			var line bytes.Buffer
			if json.Compact(&line, raw) == nil {
				raw = line.Bytes()
			}
		}
		dst = append(dst, raw...)
	}
	return append(dst, '}', '\n')
}

func (l *layout) appendLine(dst []byte, record codec.RawRecord) []byte {
	for i, name := range l.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		var raw []byte
		if i < record.Len() { // as a rule columns have the order of the members
			if member, value := record.At(i); string(member) == name {
				raw = value
			}
		}
		if raw == nil {
			raw, _ = record.Field(name)
		}
		switch {
		case len(raw) == 0 || raw[0] == 'n':
		case raw[0] == '"':
			text, err := rawjson.StringText(raw)
			if err != nil {
				text = rawjson.MessageText(raw) // half a surrogate pair
			}
			dst = appendCell(dst, text)
		case raw[0] == '[' || raw[0] == '{':
			dst = appendCell(dst, string(raw))
		default:
			dst = append(dst, raw...)
		}
	}
	if len(l.columns) == 1 && len(dst) > 0 && dst[len(dst)-1] == '\n' {
		dst = append(dst, `""`...) // an empty line would be no row
	}
	return append(dst, '\n')
}

// widen rewrites a CSV file with more columns; its rows have nothing in them.
// The old file stays until the new one is whole.
func (s *filesSender) widen(root *os.Root, f *os.File, end int64, head []byte, columns []string, more int) error {
	name := f.Name()
	if at := strings.LastIndexByte(name, os.PathSeparator); at >= 0 {
		name = name[at+1:]
	}
	return replaceFile(root, name, "columns", func(w *bufio.Writer) error {
		if _, err := w.Write(appendHeader(nil, columns)); err != nil {
			return err
		}
		in := csv.NewReader(io.NewSectionReader(f, int64(len(head)), end-int64(len(head))))
		in.FieldsPerRecord, in.ReuseRecord = -1, true
		for {
			cells, err := in.Read()
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("read rows: %w", err)
			}
			var line []byte
			for i := range columns {
				if i > 0 {
					line = append(line, ',')
				}
				if i < len(cells) && cells[i] != "" {
					line = appendCell(line, cells[i])
				}
			}
			if _, err := w.Write(append(line, '\n')); err != nil {
				return err
			}
		}
	})
}
