package audit

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/destkit/destkit/server/internal/sync/executor"
	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// states are the entries of the state in the order of their keys, wherever it
// lives.
type states struct {
	from      executor.State // nil: there are none
	elsewhere bool           // in a warehouse
	now       *ledger.Entry  // nil at the end
}

// openStates begins to read. A state that no run has made yet has no entries.
func (a *audit) openStates(ctx context.Context) (*states, error) {
	s := &states{}
	if a.job.Events { // the keys of its state are positions
		return s, nil
	}
	meta, err := a.job.Ledger.Meta()
	if err != nil {
		return s, err
	}
	var warehouse executor.Warehouse
	if meta.Delta {
		warehouse, s.elsewhere = a.job.Warehouse, a.job.Warehouse != nil
	}
	if s.from, err = executor.ScanState(ctx, a.job.Ledger, warehouse); err != nil {
		return s, s.explain(err)
	}
	return s, s.next()
}

func (s *states) explain(err error) error {
	if s.elsewhere {
		return &ReadError{"source", err}
	}
	return err
}

func (s *states) next() error {
	s.now = nil
	e, err := s.from.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return s.explain(err)
	}
	e.Key, e.Row = bytes.Clone(e.Key), bytes.Clone(e.Row)
	s.now = &e
	return nil
}

// key is the next one; nil at the end.
func (s *states) key() []byte {
	if s.now == nil {
		return nil
	}
	return s.now.Key
}

// take gives the entry that stands next, and goes on behind it.
func (s *states) take() (*ledger.Entry, error) {
	e := s.now
	return e, s.next()
}

// Close ends the reading.
func (s *states) Close() error {
	if s.from == nil {
		return nil
	}
	return s.from.Close()
}
