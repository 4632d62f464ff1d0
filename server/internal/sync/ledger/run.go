package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

// Run is the open log of a run. It is safe for parallel use.
type Run struct {
	s  *Sync
	id int64

	queue   sync.Mutex
	next    *group // batches that wait for the one being written
	summed  Counters
	began   Meta
	resumed bool

	mu     sync.Mutex // the fields below, held while a batch is written
	f      *file
	end    int64 // up to here the log is durable
	place  uint32
	number uint64
	index  *index
	buffer []byte
	failed error // the error that stopped the run
}

// Begin starts the log of a run, or resumes it: after a kill everything is
// there for which Append had returned. Runs of a sync begin in ascending order;
// those before this one that were never finished are put into the state first,
// with its Meta as it was. The meta given here is kept with the log (Began).
// ErrBusy while a run of the sync is open.
//
// A resumed run reads its source from the start again, so its invalid rows of
// before no longer count.
func (s *Sync) Begin(run int64, meta Meta) (*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.begin(run, meta)
	if err != nil {
		return nil, fmt.Errorf("begin run %d of sync %d: %w", run, s.id, err)
	}
	s.open = r
	return r, nil
}

func (s *Sync) begin(run int64, meta Meta) (*Run, error) {
	if run <= 0 {
		return nil, errors.New("the number of a run is 1 or more")
	}
	if s.open != nil {
		return nil, ErrBusy
	}
	if err := s.clean(); err != nil {
		return nil, err
	}
	if err := s.rebind(); err != nil {
		return nil, err
	}
	if err := s.checkState(run); err != nil {
		return nil, err
	}
	if err := s.settle(run); err != nil {
		return nil, err
	}
	now, _, err := s.meta()
	if err != nil {
		return nil, err
	}
	// The log of an older run over a newer state would undo later changes.
	if now.Run > run {
		return nil, fmt.Errorf("run %d came later", now.Run)
	}
	// A run that was finished, and whose outcome was not noted, goes on.
	err = s.files.rename(logName(run, doneSuffix), logName(run, openSuffix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r, err := s.openLog(run)
	if err != nil {
		return nil, err
	}
	meta.Run, meta.Rows = now.Run, now.Rows
	if err := r.goOn(meta); err != nil {
		return nil, errors.Join(err, r.release())
	}
	return r, nil
}

// clean removes what a killed process was writing.
func (s *Sync) clean() error {
	names, err := s.files.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, newSuffix) {
			if err := s.files.remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle puts the logs of other runs that never ended into the state.
func (s *Sync) settle(but int64) error {
	runs, err := s.logs(openSuffix)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if run == but {
			continue
		}
		if run > but {
			return fmt.Errorf("run %d came later", run)
		}
		if err := s.settleRun(run); err != nil {
			return fmt.Errorf("settle run %d: %w", run, err)
		}
	}
	return nil
}

func (s *Sync) settleRun(run int64) error {
	r, err := s.openLog(run)
	if err != nil {
		return err
	}
	// spec 7.2: the run was incomplete, so its mapping and its high-water mark
	// count for nothing, and damage that it was to repair is still there.
	meta, _, err := s.meta()
	if err == nil && meta.Run <= run {
		meta.Run = run
		err = s.merge(r.index, meta.Meta)
	}
	err = errors.Join(err, r.release())
	if err != nil {
		return err
	}
	// Killed before this, the next Begin merges it again: that changes nothing.
	return s.files.rename(logName(run, openSuffix), logName(run, doneSuffix))
}

// Began is the meta at the first start of the run.
func (r *Run) Began() Meta { return r.began }

// Resumed reports whether an earlier process, or an earlier Begin, has appended
// to this run: only then Last can know of a key before the run sends it.
func (r *Run) Resumed() bool { return r.resumed }

// Counters are the sums over the durable part of the log; they can be read at
// any time, also when the run is closed.
func (r *Run) Counters() Counters {
	r.queue.Lock()
	defer r.queue.Unlock()
	return r.summed
}

// Last is the last verdict on a key in this run, with the fingerprint that was
// last acknowledged in it; false: none. It waits while a batch is written.
// Invalid records are not looked for.
func (r *Run) Last(key []byte) (Verdict, Fingerprint, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return 0, Fingerprint{}, false // the failed batch may be in the index
	}
	it, err := r.index.get(key)
	if err != nil {
		r.failed = fmt.Errorf("look for a key: %w", err)
	}
	if err != nil || it.number == 0 {
		return 0, Fingerprint{}, false
	}
	return it.verdict(), it.print, true
}

// Finish merges the log into a new state with this meta and puts it in place of
// the old one, in one step; the log is kept for Records. The caller chooses the
// meta: a run that did not reach its end hands in what Meta said before it,
// also its Damaged. After a crash anywhere in it, Begin and Finish again. When
// it fails the old state stays and the run stays open.
func (r *Run) Finish(meta Meta) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.failed
	if err == nil {
		meta.Run = r.id
		err = r.s.merge(r.index, meta)
	}
	if err == nil {
		err = r.s.files.rename(logName(r.id, openSuffix), logName(r.id, doneSuffix))
	}
	if err != nil {
		return fmt.Errorf("finish run %d of sync %d: %w", r.id, r.s.id, err)
	}
	return r.release()
}

// Close leaves the run as it is: Begin with its number resumes it, Begin with
// a later one puts it into the state. Closing twice is no error.
func (r *Run) Close() error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.release()
}

// release closes the files of the run.
func (r *Run) release() error {
	if r.s.open == r {
		r.s.open = nil
	}
	if errors.Is(r.failed, ErrClosed) {
		return nil
	}
	r.failed = ErrClosed
	return errors.Join(r.f.Close(), r.index.close())
}
