package audit

import (
	"bytes"
	"errors"
	"io"

	"github.com/destkit/destkit/server/internal/sync/ledger"
)

// states are the entries of the state in the order of their keys.
type states struct {
	from *ledger.Cursor // nil: there are none
	now  *ledger.Entry  // nil at the end
}

// openStates begins to read. A state that no run has made yet has no entries.
func (a *audit) openStates() (*states, error) {
	s := &states{}
	if a.job.Events { // the keys of its state are positions
		return s, nil
	}
	from, err := a.job.Ledger.Scan()
	if err != nil {
		return s, err
	}
	s.from = from
	return s, s.next()
}

func (s *states) next() error {
	s.now = nil
	e, err := s.from.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
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

// take returns the next entry and advances.
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
