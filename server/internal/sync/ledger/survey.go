package ledger

import (
	"errors"
	"fmt"
	"io/fs"
)

// Survey is what the next Begin would find.
type Survey struct {
	Meta Meta
	// Empty: there is no state, or a damaged one, which Begin puts away.
	Empty bool
	// Unsettled are the runs whose logs the next Begin puts into the state first; a
	// Scan before it does not show their entries.
	Unsettled []int64
}

// Survey looks at the books as Begin does, and changes nothing. ErrBusy while a run
// of the sync is open.
func (s *Sync) Survey() (Survey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.survey()
	if err != nil {
		return Survey{}, fmt.Errorf("survey sync %d: %w", s.id, err)
	}
	return found, nil
}

func (s *Sync) survey() (found Survey, err error) {
	if s.open != nil {
		return found, ErrBusy
	}
	if found.Unsettled, err = s.logs(openSuffix); err != nil {
		return found, err
	}
	now, _, err := s.meta()
	if err != nil {
		return found, err
	}
	found.Meta = now.Meta
	reason, there, err := s.doubt()
	switch {
	case err != nil:
		return found, err
	case reason == stateOlder:
		found.Meta.Damaged, found.Meta.Reason = true, reason
	case reason != "":
		there, found.Meta = false, Meta{Damaged: true, Reason: reason}
	}
	found.Empty = !there
	return found, nil
}

// verifyState reads every byte of the state, and reports whether there is one.
func (s *Sync) verifyState() (there bool, err error) {
	f, err := s.files.open(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, _, err := readState(f)
	if err == nil {
		err = r.verify()
	}
	return true, errors.Join(err, f.Close())
}
