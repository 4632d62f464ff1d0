package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Each reads the whole log of a run in its order (spec 7.2.4): records under
// way, refused and acknowledged, replaced ones too. Its values are good until
// fn returns. ErrNoRun when the log is not there (any more).
func (s *Sync) Each(run int64, fn func(*Logged) error) error {
	err := s.withLog(run, func(log runLog) error {
		l, err := readLog(log.f, log.end, run)
		if err != nil {
			return err
		}
		var one Logged
		return l.each(func(b *Batch) { one.Batch = *b; one.Batch.Skipped = 0 }, func(r *logged) error {
			one.Record = r.Record
			return fn(&one)
		}, nil)
	})
	if err != nil {
		return fmt.Errorf("read log of run %d of sync %d: %w", run, s.id, err)
	}
	return nil
}

// Clone makes a record independent of the memory that it was read from.
func (r *Record) Clone() Record {
	l := logged{Record: *r}
	return l.clone()
}

// Sums are the counters of a run, recomputed from its log. ErrNoRun as for Each.
func (s *Sync) Sums(run int64) (Counters, error) {
	var sums Counters
	err := s.withLog(run, func(log runLog) error {
		l, err := readLog(log.f, log.end, run)
		if err == nil {
			err = l.each(func(b *Batch) { sums.Invalid += b.Skipped }, func(r *logged) error {
				sums.count(r)
				return nil
			}, func() { sums.Invalid = 0 })
		}
		return err
	})
	if err != nil {
		return Counters{}, fmt.Errorf("add up run %d of sync %d: %w", run, s.id, err)
	}
	return sums, nil
}

// callMark precedes each call of a batch, after the operation: a log of
// before calls were kept has none.
const callMark = "\x00"

func appendOperation(dst []byte, b *Batch) []byte {
	if len(b.Calls) == 0 {
		return appendBytes(dst, b.Operation)
	}
	return appendBytes(dst, b.Operation+callMark+strings.Join(b.Calls, callMark))
}

func cutOperation(text string) (operation string, calls []string) {
	operation, rest, found := strings.Cut(text, callMark)
	if found {
		calls = strings.Split(rest, callMark)
	}
	return operation, calls
}

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
