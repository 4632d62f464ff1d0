package audit

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/destkit/destkit/server/ledger"
	"github.com/destkit/destkit/server/source"
)

// states are the entries of the state in the order of their keys: those of the
// ledger, over those that a warehouse has (facts C: the advanced engine).
type states struct {
	books     *ledger.Cursor
	warehouse source.StateReader // nil: there is none

	own, other *ledger.Entry // the next one of each; nil at its end
}

// openStates begins to read. A state that no run has made yet has no entries.
func (a *audit) openStates(ctx context.Context) (*states, error) {
	s := &states{}
	if a.job.Events { // the keys of its state are positions
		return s, nil
	}
	var err error
	if s.books, err = a.job.Books.Scan(); err != nil {
		return s, err
	}
	meta, err := a.job.Books.Meta()
	if err == nil && a.job.Warehouse != nil && meta.Delta {
		if s.warehouse, err = a.job.Warehouse.Read(ctx, nil); err != nil {
			return s, &ReadError{"source", err}
		}
	}
	return s, errors.Join(err, s.nextOwn(), s.nextOther())
}

func (s *states) nextOwn() error {
	e, err := s.books.Next()
	if s.own = nil; errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	e.Key, e.Row = bytes.Clone(e.Key), bytes.Clone(e.Row)
	s.own = &e
	return nil
}

func (s *states) nextOther() error {
	if s.other = nil; s.warehouse == nil {
		return nil
	}
	row, err := s.warehouse.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return &ReadError{"source", err}
	}
	e := ledger.Entry{Key: bytes.Clone(row.Entry.Key), Known: row.Entry.Known, Deleted: row.Entry.Deleted, Verdict: ledger.Acknowledged, Row: bytes.Clone(row.Entry.Sent)}
	if row.Entry.Rejected {
		e.Verdict = ledger.Rejected
	}
	s.other = &e
	return nil
}

// key is the next one; nil at the end.
func (s *states) key() []byte {
	switch {
	case s.own == nil && s.other == nil:
		return nil
	case s.own == nil, s.other != nil && bytes.Compare(s.other.Key, s.own.Key) < 0:
		return s.other.Key
	}
	return s.own.Key
}

// take gives the entry of a key, and goes on behind it. What the ledger knows of
// a key came after what the warehouse has.
func (s *states) take(key []byte) (*ledger.Entry, error) {
	var e *ledger.Entry
	if s.other != nil && bytes.Equal(s.other.Key, key) {
		e = s.other
		if err := s.nextOther(); err != nil {
			return nil, err
		}
	}
	if s.own == nil || !bytes.Equal(s.own.Key, key) {
		return e, nil
	}
	if own := s.own; e == nil || own.Known || own.Removed {
		e = own
	} else {
		e.Verdict, e.Deleted = own.Verdict, own.Deleted
	}
	return e, s.nextOwn()
}

// Close ends the reading.
func (s *states) Close() error {
	var errs []error
	if s.books != nil {
		errs = append(errs, s.books.Close())
	}
	if s.warehouse != nil {
		errs = append(errs, s.warehouse.Close())
	}
	return errors.Join(errs...)
}
