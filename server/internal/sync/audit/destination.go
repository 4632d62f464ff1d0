package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/destkit/destkit/internal/rawjson"
	"github.com/destkit/destkit/internal/source"
	"github.com/destkit/destkit/internal/source/rowsort"
	"github.com/destkit/destkit/server/internal/sync/mapping"
)

// Destination is what is stored: either Lookup or List is set.
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
	rows := newPushed()
	go func() {
		defer close(rows.wait)
		rows.err = a.job.Destination.List(ctx, func(fields map[string]json.RawMessage) error {
			raw := fields[a.job.Plan.Identifier()]
			if rawjson.IsNull(raw) {
				return nil // it is unknown whose it is
			}
			text, err := json.Marshal(fields)
			if err != nil {
				return err
			}
			select {
			case rows.wait <- [][]byte{mapping.AppendCanonical(nil, raw), text}:
				return nil
			case <-rows.done:
				return errors.New("the audit has ended")
			}
		})
	}()
	sorted, err := rowsort.Sort(ctx, rows, []int{0}, a.job.Scratch)
	if err != nil {
		return nil, err
	}
	return &listed{rows: sorted}, nil
}

// pushed turns records that are handed over one by one into rows.
type pushed struct {
	wait chan [][]byte
	done chan struct{}
	err  error // once wait is closed
}

// ahead is how many rows wait, so that two sides need not take turns.
const ahead = 256

func newPushed() *pushed { return &pushed{wait: make(chan [][]byte, ahead), done: make(chan struct{})} }

// Next implements source.Rows.
func (p *pushed) Next() ([][]byte, error) {
	row, more := <-p.wait
	switch {
	case more:
		return row, nil
	case p.err != nil:
		return nil, p.err
	}
	return nil, io.EOF
}

// Close ends the one who hands over.
func (p *pushed) Close() error {
	close(p.done)
	for range p.wait { // until it has noticed
	}
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
