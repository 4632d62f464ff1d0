package executor

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strconv"

	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// mapped is one row as the comparison sees it, valid until the next one.
type mapped struct {
	key     []byte // nil: the row has none, and is invalid
	record  []byte
	invalid string
	stamp   stamp
}

// errUnordered: rows did not come in the order of their keys after all.
var errUnordered = errors.New("the rows do not come in the order of their keys")

// errors that say where a run was when the source failed.
type sourceError struct{ cause error }

func (e *sourceError) Error() string { return e.cause.Error() }
func (e *sourceError) Unwrap() error { return e.cause }

// feed is a stream of mapped rows in ascending order of their keys, with io.EOF
// at its end. Rows without a key may be anywhere.
type feed interface {
	next() (mapped, error)
	Close() error
}

// direct maps rows, for the comparison where they come in the order of their keys.
type direct struct {
	rows    source.Rows
	mapper  *mapping.Plan
	timed   *timed       // nil without a high-water mark
	at      func() stamp // of the row; nil: none
	scratch []byte
	// generated: keys are hashes of the content.
	generated bool
}

// moment makes the moment of a row part of a key that is a hash, in its place:
// equal rows of two moments are two events, and which of them is the first must
// not depend on which ones a run reads.
func moment(key []byte, at stamp) {
	print := printOf(append(bytes.Clone(key), at[:]...))
	hex.Encode(key[1:], print[:])
}

// MarkKey gives a row whose key is a hash of its content the key of its moment, in place.
// key is part of the record.
func MarkKey(key, mark []byte) {
	if t, ok := Moment(mark); ok {
		moment(key, stampOf(t))
	}
}

func (d *direct) next() (mapped, error) {
	row, err := d.rows.Next()
	if err != nil {
		return mapped{}, err
	}
	if cap(d.scratch) > rowsort.WideRow {
		d.scratch = nil
	}
	record, key, invalid := d.mapper.AppendRecord(d.scratch[:0], row)
	d.scratch = record
	got := mapped{key: key, record: record, invalid: invalid}
	if d.at != nil {
		got.stamp = d.at()
	}
	if d.timed != nil {
		if d.timed.fault != "" {
			got.invalid = d.timed.fault
		}
		if d.generated && got.invalid == "" {
			moment(got.key, got.stamp)
		}
	}
	return got, nil
}

// Close ends the reading.
func (d *direct) Close() error { return d.rows.Close() }

// mappedRows hands mapped rows to the sort on disk: key, record, reason and stamp.
type mappedRows struct {
	direct
	cells [4][]byte
	stamp stamp
}

// Next implements source.Rows. A row without a key sorts first.
func (m *mappedRows) Next() ([][]byte, error) {
	got, err := m.next()
	if err != nil {
		return nil, err
	}
	m.stamp = got.stamp
	m.cells = [4][]byte{got.key, got.record, []byte(got.invalid), m.stamp[:]}
	return m.cells[:], nil
}

// sorted gives back what mappedRows went into the sort with.
type sorted struct{ rows source.Rows }

func (s *sorted) next() (mapped, error) {
	cells, err := s.rows.Next()
	if err != nil {
		return mapped{}, err
	}
	got := mapped{key: cells[0], record: cells[1], invalid: string(cells[2]), stamp: stamp(cells[3])}
	if len(got.key) == 0 {
		got.key = nil
	}
	return got, nil
}

// Close ends the reading.
func (s *sorted) Close() error { return s.rows.Close() }

// repeats distinguishes equal rows where the key is a hash of the content:
// the second of them gets another key, and so on, in the order of the keys.
type repeats struct {
	feed
	first []byte // the key of the first of equal rows
	count int64
}

func (r *repeats) next() (mapped, error) {
	got, err := r.feed.next()
	if err != nil || got.invalid != "" || got.key == nil {
		return got, err
	}
	if !bytes.Equal(got.key, r.first) {
		r.first, r.count = append(r.first[:0], got.key...), 0
		return got, nil
	}
	r.count++
	return numbered(got, r.count), nil
}

// numbered gives a record whose key is a hash of its content its own key: the number is
// before the closing quote.
func numbered(got mapped, n int64) mapped {
	digits := strconv.AppendInt(nil, n, 10)
	key := bytes.Clone(got.key)
	copy(key[max(1, len(key)-1-len(digits)):len(key)-1], digits)
	record := bytes.Clone(got.record)
	if at := bytes.Index(record, got.key); at >= 0 {
		copy(record[at:], key)
	}
	got.key, got.record = key, record
	return got
}

// group reads ahead by one row, so that a key that occurs twice is noticed
// before anything of it is sent.
type group struct {
	feed    feed
	ahead   mapped
	kept    [2]mapped // memory of the present row and of the one ahead
	turn    int
	last    []byte // the last key that was given
	started bool
	ended   error
}

// entry is a row with the number of its key's occurrences in the source.
type entry struct {
	mapped
	copies int64
}

// next gives the next key. Rows without a key come one by one.
func (g *group) next() (entry, error) {
	if !g.started {
		g.started = true
		if err := g.read(); err != nil {
			return entry{}, err
		}
	}
	if g.ended != nil {
		return entry{}, g.ended
	}
	e := entry{g.ahead, 1}
	if e.key != nil {
		// Also when a row without a key stood between.
		if g.last != nil && bytes.Compare(g.last, e.key) >= 0 {
			return entry{}, errUnordered
		}
		g.last = append(g.last[:0], e.key...)
	}
	for {
		if err := g.read(); err != nil && !errors.Is(err, io.EOF) {
			return entry{}, err
		}
		if g.ended != nil || e.key == nil || g.ahead.key == nil {
			return e, nil
		}
		switch c := bytes.Compare(e.key, g.ahead.key); {
		case c > 0:
			return entry{}, errUnordered
		case c < 0:
			return e, nil
		}
		// The present row is in the other half of the memory, and must stay.
		e.copies++
		g.turn = 1 - g.turn
	}
}

// read keeps a copy of the next row.
func (g *group) read() error {
	got, err := g.feed.next()
	if err != nil {
		g.ended = err
		return err
	}
	g.turn = 1 - g.turn
	slot := &g.kept[g.turn]
	slot.record = append(slot.record[:0], got.record...)
	slot.invalid = got.invalid
	g.ahead = mapped{record: slot.record, invalid: got.invalid, stamp: got.stamp}
	if got.key != nil {
		slot.key = append(slot.key[:0], got.key...)
		g.ahead.key = slot.key
	}
	return nil
}
