package ledger

import (
	"errors"
	"fmt"
)

// ErrNoDelta: only a state that is applied elsewhere is emptied.
var ErrNoDelta = errors.New("the state is no delta")

// Drain empties the state when it is a delta (Meta.Delta) that the caller has
// made durable where the whole state is kept, and gives it another Meta, of
// which Run and Rows are filled in. A run may be open: what is in its log and
// not merged yet stays. Killed before Drain, the same delta is applied again,
// which changes nothing.
func (s *Sync) Drain(meta Meta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.guard()
	}
	now, _, err := s.meta()
	switch {
	case err != nil:
	case !now.Delta:
		err = ErrNoDelta
	default:
		meta.Run, meta.Delta = now.Run, true
		err = s.mergeState(nil, storedMeta{meta, now.Generation + 1})
	}
	if err == nil {
		err = errors.Join(s.files.remove(damagedFile), s.files.remove(metaFile))
	}
	if err != nil {
		return fmt.Errorf("drain sync %d: %w", s.id, err)
	}
	return nil
}
