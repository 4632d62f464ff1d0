package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/destkit/destkit/server/internal/store/sqlite"
)

// scan reads the columns of a row from left to right and keeps the first error.
type scan struct {
	cells sqlite.Row
	col   int
	err   error
}

func (s *scan) next() int {
	s.col++
	return s.col - 1
}

func (s *scan) number() int64 {
	n, _ := s.cells.Number(s.next())
	return n
}

func (s *scan) optional() *int64 {
	if n, ok := s.cells.Number(s.next()); ok {
		return &n
	}
	return nil
}

func (s *scan) text() string { return s.cells.Text(s.next()) }

// time gives the zero time for NULL.
func (s *scan) time() time.Time {
	if n := s.optional(); n != nil {
		return time.UnixMilli(*n).UTC()
	}
	return time.Time{}
}

// doc decodes JSON text. Numbers in free maps come back as json.Number, so that
// long ones keep all their digits.
func (s *scan) doc(dst any) {
	dec := json.NewDecoder(bytes.NewReader([]byte(s.text())))
	dec.UseNumber()
	if err := dec.Decode(dst); err != nil && s.err == nil {
		s.err = fmt.Errorf("read stored %T: %w", dst, err)
	}
}

// own is a cell that is kept in its own way.
type own interface {
	argument() any
	read(*scan)
}

// into reads the next column into a cell: a pointer's target, or a value that
// scans itself. Anything but numbers, flags, texts and moments is kept as JSON.
func (s *scan) into(cell any) {
	switch p := cell.(type) {
	case *int64:
		*p = s.number()
	case **int64:
		*p = s.optional()
	case *bool:
		*p = s.number() != 0
	case **bool:
		if n := s.optional(); n != nil {
			yes := *n != 0
			*p = &yes
		}
	case *string:
		*p = s.text()
	case *[]byte:
		*p = s.cells.Blob(s.next())
	case *json.RawMessage:
		if text := s.text(); text != "" {
			*p = json.RawMessage(text)
		}
	case *time.Time:
		*p = s.time()
	case own:
		p.read(s)
	default:
		s.doc(cell)
	}
}

// arguments are cells as a statement takes them, in their place.
func arguments(cells []any) []any {
	for i, cell := range cells {
		switch p := cell.(type) {
		case *int64, *bool:
			// A statement takes these as they are.
		case **int64, **bool, *string, *[]byte, *time.Time:
			cells[i] = reflect.ValueOf(p).Elem().Interface()
		case *json.RawMessage:
			cells[i] = string(*p)
		case own:
			cells[i] = p.argument()
		default:
			cells[i] = doc{cell}
		}
	}
	return cells
}

// initial keeps the first state of a row that is still there after a reset; nil of
// another one.
type initial[T any] struct {
	first **T
	is    *bool
}

func (c initial[T]) argument() any { return doc{*c.first} }

func (c initial[T]) read(s *scan) {
	s.doc(c.first)
	*c.is = *c.first != nil
}

// doc is an argument that is stored as JSON text.
type doc struct{ value any }

var _ sqlite.Document = doc{}

// JSON is the text that is stored.
func (d doc) JSON() (string, error) {
	text, err := json.Marshal(d.value)
	if err != nil {
		return "", fmt.Errorf("store %T as JSON: %w", d.value, err)
	}
	return string(text), nil
}
