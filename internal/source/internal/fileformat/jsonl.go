package fileformat

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source/internal/cell"
	"github.com/destkit/destkit/server/api"
)

// JSONLines reads one JSON object per line; blank lines are skipped. The
// columns are the keys of the first 1,000 lines, in the order in which they
// appear; a key that comes later is no column. A line without a key has null
// there.
type JSONLines struct{}

// Extensions: two names for the same format.
func (JSONLines) Extensions() []string { return []string{".jsonl", ".ndjson"} }

// jsonLines reads objects line by line.
type jsonLines struct {
	from *bufio.Reader
	ctx  context.Context
	line int
	long []byte // a line that is longer than the buffer
}

// openJSONL begins behind a byte order mark.
func openJSONL(ctx context.Context, f *os.File) *jsonLines {
	from := bufio.NewReaderSize(f, 256<<10)
	if start, _ := from.Peek(len(byteOrderMark)); bytes.Equal(start, byteOrderMark) {
		_, _ = from.Discard(len(byteOrderMark))
	}
	return &jsonLines{from: from, ctx: ctx}
}

// next returns the next object, valid until the next call.
func (l *jsonLines) next() ([]byte, error) {
	for {
		if err := l.ctx.Err(); err != nil {
			return nil, context.Cause(l.ctx)
		}
		l.line++
		text, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		ended := err != nil
		if text = bytes.TrimSpace(text); len(text) == 0 {
			if ended {
				return nil, io.EOF
			}
			continue
		}
		switch {
		case text[0] == '{' && rawjson.Valid(text) == nil: // most lines, and fast
		case !utf8.Valid(text):
			return nil, l.wrong(errors.New("not UTF-8"))
		case text[0] != '{':
			return nil, l.wrong(errors.New("not a JSON object"))
		case !json.Valid(text):
			return nil, l.wrong(syntaxError(text))
		}
		return text, nil
	}
}

// wrong names the line, by which a person finds the mistake.
func (l *jsonLines) wrong(err error) error { return fmt.Errorf("line %d: %w", l.line, err) }

// read returns a line of any length up to the limit.
func (l *jsonLines) read() ([]byte, error) {
	text, err := l.from.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return text, err
	}
	l.long = append(l.long[:0], text...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(l.long) > longestRecord {
			return nil, l.wrong(fmt.Errorf("longer than %d MiB", longestRecord>>20))
		}
		text, err = l.from.ReadSlice('\n')
		l.long = append(l.long, text...)
	}
	return l.long, err
}

// syntaxError reports where a text stops being JSON.
func syntaxError(text []byte) error {
	var v json.RawMessage
	err := json.Unmarshal(text, &v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// columns gathers the keys of a sample, in the order in which they first come.
// Objects need not have all of them.
func (JSONLines) columns(ctx context.Context, f *os.File) ([]api.Column, error) {
	lines := openJSONL(ctx, f)
	var names []string
	kinds := map[string]*jsonKinds{}
	for range sampled {
		object, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		err = cell.Members(object, func(key, value []byte) error {
			k := kinds[string(key)]
			if k == nil {
				k = &jsonKinds{}
				kinds[string(key)] = k
				names = append(names, string(key))
			}
			if k.line == lines.line {
				return fmt.Errorf("key %q twice", key)
			}
			k.line = lines.line
			k.add(value)
			return nil
		})
		if err != nil {
			return nil, lines.wrong(err)
		}
	}
	if len(names) == 0 {
		return nil, errors.New("no columns: the first line must be a JSON object with a key")
	}
	columns := make([]api.Column, len(names))
	for i, name := range names {
		kind := kinds[name].kind()
		columns[i] = api.Column{Name: name, Type: string(kind), Kind: kind}
	}
	return columns, nil
}

// jsonKinds collects the kinds of the values of one key.
type jsonKinds struct {
	line    int // of the last value
	strings cell.Inference
	numbers cell.Inference
	others  map[api.Kind]bool
}

// add notes the kind of a value by its first character; null is of any kind.
func (k *jsonKinds) add(value []byte) {
	if k.others == nil {
		k.others = map[api.Kind]bool{}
	}
	switch value[0] {
	case 'n':
	case 't', 'f':
		k.others[api.KindBoolean] = true
	case '{':
		k.others[api.KindObject] = true
	case '[':
		k.others[api.KindArray] = true
	case '"':
		k.others[api.KindString] = true
		k.strings.Add(string(value[1 : len(value)-1]))
	default:
		k.others[api.KindDecimal] = true
		k.numbers.Add(string(value))
	}
}

// kind is any when the values differ, or when there was none. Strings are dates
// or times when all of them are: nothing else in JSON is.
func (k *jsonKinds) kind() api.Kind {
	if len(k.others) != 1 {
		return api.KindAny
	}
	for kind := range k.others {
		switch kind {
		case api.KindString:
			return k.strings.Kind(api.KindDate, api.KindDateTime)
		case api.KindDecimal:
			return k.numbers.Kind(api.KindInteger, api.KindDecimal, api.KindFloat)
		}
		return kind
	}
	return api.KindAny
}

// Rows reads the file again. Keys that the sample did not show are not read.
func (JSONLines) Rows(ctx context.Context, f *os.File, columns []api.Column, wanted []int) (Rows, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	r := &jsonRows{lines: openJSONL(ctx, f), at: map[string]int{}, cells: make([][]byte, len(wanted)), seen: make([]int, len(wanted)), row: cell.NewRow(len(wanted))}
	for i, column := range wanted {
		r.at[columns[column].Name] = i
	}
	return r, nil
}

// jsonRows turns lines into rows.
type jsonRows struct {
	lines *jsonLines
	at    map[string]int // place of a wanted column
	cells [][]byte       // of the line
	seen  []int          // the line in which a cell was set last
	row   cell.Row
}

// Close has nothing to do: the file is closed by whoever has opened it.
func (r *jsonRows) Close() error { return nil }

// Next implements Rows. A key that is left out is null, as one that is null.
func (r *jsonRows) Next() ([][]byte, error) {
	object, err := r.lines.next()
	if err != nil {
		return nil, err
	}
	for i := range r.cells {
		r.cells[i] = cell.Null
	}
	err = cell.Members(object, func(key, value []byte) error {
		i, wanted := r.at[string(key)]
		if !wanted {
			return nil
		}
		if r.seen[i] == r.lines.line {
			return fmt.Errorf("key %q twice", key)
		}
		r.cells[i], r.seen[i] = value, r.lines.line
		return nil
	})
	if err != nil {
		return nil, r.lines.wrong(err)
	}
	r.row.Reset()
	for _, value := range r.cells {
		r.row.Buf = cell.AppendCanonical(r.row.Buf, value)
		r.row.End()
	}
	return r.row.Values(), nil
}
