package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strconv"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Destination reads the stored records: either Lookup or List is set.
type Destination struct {
	// Lookup gives the records with these identifiers, at most LookupSize of them,
	// in canonical JSON; absent ones are left out.
	Lookup func(ctx context.Context, identifiers [][]byte) ([]Stored, error)
	// List hands all records to fn, in any order: foreign ones are seen too.
	List func(ctx context.Context, fn func(fields map[string]json.RawMessage) error) error
}

// LookupSize is the most identifiers that are looked up at once.
const LookupSize = 1000

// Stored is one identifier that is stored.
type Stored struct {
	Identifier []byte
	Count      int64 // copies, 1 or more
	Fields     map[string]json.RawMessage
}

// listed are all records of a destination in the order of their identifiers.
type listed struct {
	rows  source.Rows
	ahead *Stored
	ended bool
}

// list sorts what the destination has, on disk.
func (a *audit) list(ctx context.Context) (*listed, error) {
	if a.job.Destination.List == nil {
		return &listed{ended: true}, nil
	}
	sorted, err := a.sorted(ctx, []int{0}, func(push func([][]byte) error) error {
		return a.job.Destination.List(ctx, func(fields map[string]json.RawMessage) error {
			raw := fields[a.job.Plan.Identifier()]
			if rawjson.IsNull(raw) {
				return nil // it is unknown whose it is
			}
			text, err := json.Marshal(fields)
			if err != nil {
				return err
			}
			return push([][]byte{mapping.AppendCanonical(nil, raw), text})
		})
	})
	if err != nil {
		return nil, err
	}
	return &listed{rows: sorted}, nil
}

// sorted sorts the pushed rows on disk.
func (a *audit) sorted(ctx context.Context, by []int, each func(push func([][]byte) error) error) (source.Rows, error) {
	var rows pushed
	rows.next, rows.stop = iter.Pull2(func(yield func([][]byte, error) bool) {
		ended := false
		err := each(func(row [][]byte) error {
			if ended = ended || !yield(row, nil); ended {
				return errors.New("the audit has ended")
			}
			return nil
		})
		if err != nil && !ended {
			yield(nil, err)
		}
	})
	return rowsort.Sort(ctx, rows, by, a.job.Scratch)
}

// pushed are those rows before they are sorted.
type pushed struct {
	next func() ([][]byte, error, bool)
	stop func()
}

// Next implements source.Rows.
func (p pushed) Next() ([][]byte, error) {
	row, err, more := p.next()
	if !more {
		return nil, io.EOF
	}
	return row, err
}

// Close ends the one who hands over.
func (p pushed) Close() error {
	p.stop()
	return nil
}

// next gives the next identifier with its copies; nil at the end.
func (l *listed) next() (*Stored, error) {
	for !l.ended {
		row, err := l.rows.Next()
		if errors.Is(err, io.EOF) {
			l.ended = true
			break
		}
		if err != nil {
			return nil, err
		}
		if l.ahead != nil && string(l.ahead.Identifier) == string(row[0]) {
			l.ahead.Count++
			continue
		}
		one := &Stored{Identifier: append([]byte(nil), row[0]...), Count: 1}
		if err := json.Unmarshal(row[1], &one.Fields); err != nil {
			return nil, err
		}
		if before := l.ahead; before != nil {
			l.ahead = one
			return before, nil
		}
		l.ahead = one
	}
	before := l.ahead
	l.ahead = nil
	return before, nil
}

// Close frees the disk.
func (l *listed) Close() error {
	if l.rows == nil {
		return nil
	}
	return l.rows.Close()
}

// number is an integer as JSON.
func number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }
