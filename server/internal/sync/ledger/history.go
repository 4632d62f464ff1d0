package ledger

import (
	"fmt"
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
