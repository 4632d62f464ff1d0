package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Filter chooses records; the zero value takes all.
type Filter struct {
	Key       []byte             // canonical JSON text of the identifier
	OrKey     []byte             // another form of Key that is taken too, such as "42" for 42
	Verdict   Verdict            // 0: any
	Operation string             // of the batch: upsert, delete, …
	Also      func(*Record) bool // nil: any; it must not keep the record
}

// Logged is a record of a run's log, with the batch that it was in (its
// Records and Skipped are empty).
type Logged struct {
	Record
	Batch Batch
}

func (f *Filter) takes(r *logged, operation string) bool {
	return (f.Key == nil || string(f.Key) == string(r.Key) || f.OrKey != nil && string(f.OrKey) == string(r.Key)) &&
		(f.Verdict == 0 || f.Verdict == r.Verdict) &&
		(f.Operation == "" || f.Operation == operation) && (f.Also == nil || f.Also(&r.Record))
}

// bitmap has a bit for each record of a log: 10 M of them take 1.25 MB.
type bitmap []uint64

func (b *bitmap) set(n uint64) {
	for uint64(len(*b)) <= n/64 {
		*b = append(*b, 0)
	}
	(*b)[n/64] |= 1 << (n % 64)
}

func (b bitmap) has(n uint64) bool {
	return n/64 < uint64(len(b)) && b[n/64]>>(n%64)&1 == 1
}

// Records lists the records of a run in the order of the log, each key once
// with its last verdict, as GET /sync_runs/{id}/records does: at most
// limit of those that the filter takes, after so many of them, and how many it
// takes in all. ErrNoRun when the log is not there (any more).
func (s *Sync) Records(run int64, filter Filter, after, limit int64) ([]Logged, int64, error) {
	found, total, err := s.records(run, filter, after, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("read records of run %d of sync %d: %w", run, s.id, err)
	}
	return found, total, nil
}

func (s *Sync) records(run int64, filter Filter, after, limit int64) (found []Logged, total int64, err error) {
	err = s.withLog(run, func(log runLog) error {
		// Which records count is known at the end of the log only: it is read twice.
		replaced, err := readReplaced(log.f, log.end, run)
		if err != nil {
			return err
		}
		l, err := readLog(log.f, log.end, run)
		if err != nil {
			return err
		}
		var batch Batch
		return l.each(func(b *Batch) { batch = *b; batch.Skipped = 0 }, func(r *logged) error {
			if replaced.has(r.number) || !filter.takes(r, batch.Operation) {
				return nil
			}
			total++
			if total > after && int64(len(found)) < limit {
				found = append(found, Logged{Record: r.clone(), Batch: batch})
			}
			return nil
		}, nil)
	})
	return found, total, err
}

// untorn: the end of a log that was not resumed may be torn.
func untorn(err error) error {
	if errors.Is(err, errTorn) {
		return nil
	}
	return err
}

// readReplaced finds the records that a later one replaces, and the invalid
// ones of before a resumption.
func readReplaced(f *file, end, run int64) (bitmap, error) {
	l, err := readLog(f, end, run)
	if err != nil {
		return nil, untorn(err)
	}
	var replaced, invalid bitmap
	err = l.each(nil, func(r *logged) error {
		if r.replaces > 0 {
			replaced.set(r.replaces)
		}
		if r.Verdict == Invalid {
			invalid.set(r.number)
		}
		return nil
	}, func() {
		for i, word := range invalid {
			for len(replaced) <= i {
				replaced = append(replaced, 0)
			}
			replaced[i] |= word
		}
		invalid = invalid[:0]
	})
	return replaced, untorn(err)
}

// runLog is an open log of a run, and up to where it may be read.
type runLog struct {
	f   *file
	end int64
}

// withLog hands out the log of a run. A torn end is no error.
func (s *Sync) withLog(run int64, fn func(runLog) error) error {
	log, err := s.logFile(run)
	if err != nil {
		return err
	}
	return errors.Join(untorn(fn(log)), log.f.Close())
}

// logFile opens the log of a run.
func (s *Sync) logFile(run int64) (log runLog, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log.f, err = s.files.open(logName(run, openSuffix), logName(run, doneSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return log, ErrNoRun
	}
	if err != nil {
		return log, err
	}
	if s.open != nil && s.open.id == run {
		s.open.mu.Lock()
		defer s.open.mu.Unlock()
		log.end = s.open.end
		return log, nil
	}
	if log.end, err = log.f.size(); err != nil {
		err = errors.Join(err, log.f.Close())
	}
	return log, err
}

// Runs lists the runs whose log is kept, in ascending order.
func (s *Sync) Runs() ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs, err := s.logs(openSuffix, doneSuffix)
	if err != nil {
		return nil, fmt.Errorf("list runs of sync %d: %w", s.id, err)
	}
	return slices.Compact(runs), nil
}

// Drop deletes the log of a finished run: the caller knows when its time is
// over. The log of a run that is not in the state yet is kept, with ErrBusy;
// that there is none is no error.
func (s *Sync) Drop(run int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.files.open(logName(run, openSuffix))
	if err == nil {
		err = errors.Join(ErrBusy, f.Close())
	} else if errors.Is(err, fs.ErrNotExist) {
		err = s.files.remove(logName(run, doneSuffix))
	}
	if err != nil {
		return fmt.Errorf("drop run %d of sync %d: %w", run, s.id, err)
	}
	return nil
}

// clone makes a record independent of the buffer that it was read from.
func (r *logged) clone() Record {
	c := r.Record
	c.Key, c.Payload = bytes.Clone(c.Key), bytes.Clone(c.Payload)
	if len(c.Key) == 0 {
		c.Key = nil // as it was given
	}
	return c
}
