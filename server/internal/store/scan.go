package store

import (
	"bytes"
	"encoding/json"
	"fmt"
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

func (s *scan) flag() bool { return s.number() != 0 }

func (s *scan) optionalFlag() *bool {
	if n := s.optional(); n != nil {
		yes := *n != 0
		return &yes
	}
	return nil
}

func (s *scan) text() string { return s.cells.Text(s.next()) }

func (s *scan) blob() []byte { return s.cells.Blob(s.next()) }

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
