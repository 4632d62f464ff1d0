package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
)

// A run may be cut by key range into parts, each with a log of its own beside
// that of the run: so several processes send one run at once, and none waits for
// the disk of another. The log of the run knows the cuts, which hold for its
// life: a key has its verdicts in one log, and counters stay sums over logs.
// Finish merges them all into the state in one step, in the order of the parts,
// which is that of the keys.

const (
	partInfix  = ".part-"
	restSuffix = ".rest" // what a part leaves to those who go on with it
)

// ErrCut: the run is cut already, or has records.
var ErrCut = errors.New("the run cannot be cut any more")

// Part says which part of a run, numbered from 1: its keys are From and above,
// and below To; nil is no bound.
type Part struct {
	Run      int64
	Number   int
	From, To []byte
}

func partName(run int64, number int, suffix string) string {
	return runPrefix + strconv.FormatInt(run, 10) + partInfix + strconv.Itoa(number) + suffix
}

// Cut divides the run at these keys, in ascending order: with n cuts it has
// n+1 parts. It is durable, and for the life of the run. ErrCut once there are
// records.
func (r *Run) Cut(cuts [][]byte) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.cut(cuts); err != nil {
		return fmt.Errorf("cut run %d of sync %d: %w", r.id, r.s.id, err)
	}
	return nil
}

func (r *Run) cut(cuts [][]byte) error {
	switch {
	case r.failed != nil:
		return r.failed
	case r.cuts != nil, r.number > 0, r.part > 0:
		return ErrCut
	}
	for i, at := range cuts {
		if len(at) == 0 || i > 0 && bytes.Compare(cuts[i-1], at) >= 0 {
			return errors.New("the cuts are not keys in ascending order")
		}
	}
	// Logs of parts may be left of a log of this run that was damaged.
	if err := r.s.dropParts(r.s.files, r.id, doneSuffix, restSuffix); err != nil {
		return err
	}
	text, err := json.Marshal(cuts)
	if err != nil {
		return err
	}
	if err := r.write(append(openFrame(nil, frameCut), text...)); err != nil {
		r.failed = err
		return err
	}
	r.divide(cuts)
	return nil
}

// divide notes the cuts.
func (r *Run) divide(cuts [][]byte) {
	r.queue.Lock()
	defer r.queue.Unlock()
	r.cuts = cuts
	r.parts, r.sums = make([]*Run, len(cuts)+1), make([]Counters, len(cuts)+1)
}

// Parts tells which parts the run was cut into; nil: it is whole.
func (r *Run) Parts() []Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	parts := make([]Part, len(r.parts))
	for i := range parts {
		parts[i] = r.partOf(i)
	}
	return parts
}

func (r *Run) partOf(i int) Part {
	p := Part{Run: r.id, Number: i + 1}
	if i > 0 {
		p.From = r.cuts[i-1]
	}
	if i < len(r.cuts) {
		p.To = r.cuts[i]
	}
	return p
}

// Sums are the counters of each part.
func (r *Run) Sums() []Counters {
	r.queue.Lock()
	defer r.queue.Unlock()
	sums := slices.Clone(r.sums)
	for i, p := range r.parts {
		if p != nil {
			sums[i] = p.Counters()
		}
	}
	return sums
}

// Part is the log of a part, to be written in this process. It takes the
// verdicts of the keys of its range alone, and is closed with the run.
func (r *Run) Part(number int) (*Run, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := r.openPart(number - 1)
	if err == nil {
		err = p.start()
	}
	if err != nil {
		return nil, fmt.Errorf("open part %d of run %d of sync %d: %w", number, r.id, r.s.id, err)
	}
	return p, nil
}

func (r *Run) openPart(i int) (*Run, error) {
	switch {
	case r.failed != nil:
		return nil, r.failed
	case i < 0 || i >= len(r.parts):
		return nil, ErrNoRun
	case r.parts[i] != nil:
		return r.parts[i], nil
	}
	p, err := r.s.openPart(r.partOf(i))
	if err != nil {
		return nil, err
	}
	r.queue.Lock()
	defer r.queue.Unlock()
	r.parts[i] = p
	return p, nil
}

// openParts reads the logs of all parts, when the run begins again. What was
// left beside them was left by an earlier pass.
func (r *Run) openParts() error {
	if len(r.cuts) == 0 {
		return nil
	}
	for i := range r.parts {
		p, err := r.openPart(i)
		if err != nil {
			return err
		}
		r.resumed = r.resumed || p.resumed
	}
	return r.s.dropParts(r.s.files, r.id, restSuffix)
}

func (s *Sync) openPart(at Part) (*Run, error) {
	return s.openFile(&Run{s: s, id: at.Run, part: at.Number, from: at.From, to: at.To}, partName(at.Run, at.Number, doneSuffix))
}

// start begins the log of a part that is new.
func (r *Run) start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end > 0 {
		return nil
	}
	return r.goOn(Meta{})
}

// OpenPart opens the log of a part of a run that another process has open, and
// has lent (Lend). Its writes are under a fence of their own, which is the one of
// that process: when another one takes the run over, all its parts end. 0 is
// none. Close it.
func (l *Ledger) OpenPart(sync int64, at Part, fence int64) (*Run, error) {
	s := l.Sync(sync)
	own := &Sync{id: sync, files: s.files.under(fence), o: s.o}
	p, err := own.openPart(at)
	if err == nil {
		if err = p.start(); err != nil {
			err = errors.Join(err, p.release())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open part %d of run %d of sync %d: %w", at.Number, at.Run, sync, err)
	}
	return p, nil
}

// Lend closes the logs of the parts, so that others may write them. What they
// count stays as it was; Finish reads them again.
func (r *Run) Lend() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lend()
}

func (r *Run) lend() error {
	var errs []error
	for i, p := range r.parts {
		if p == nil {
			continue
		}
		p.mu.Lock()
		errs = append(errs, p.release())
		p.mu.Unlock()
		r.queue.Lock()
		r.parts[i], r.sums[i] = nil, p.Counters()
		r.queue.Unlock()
	}
	return errors.Join(errs...)
}

// route is the part of a key.
func (r *Run) route(key []byte) int {
	return sort.Search(len(r.cuts), func(i int) bool { return bytes.Compare(key, r.cuts[i]) < 0 })
}

// scatter gives the records of a batch to the logs of their parts: of a run that
// was cut, and is written by one after all. What is invalid has no place.
func (r *Run) scatter(batch Batch) error {
	own := batch
	own.Records = nil
	each := make([][]int, len(r.cuts)+1)
	for i := range batch.Records {
		if record := &batch.Records[i]; record.Verdict == Invalid {
			own.Records = append(own.Records, *record)
		} else {
			at := r.route(record.Key)
			each[at] = append(each[at], i)
		}
	}
	if len(own.Records) > 0 || own.Skipped > 0 || len(batch.Records) == 0 {
		if err := r.append(own); err != nil {
			return err
		}
	}
	for at, places := range each {
		if len(places) == 0 {
			continue
		}
		p, err := r.Part(at + 1)
		if err != nil {
			return err
		}
		part := batch
		part.Records, part.Skipped = make([]Record, 0, len(places)), 0
		for _, i := range places {
			part.Records = append(part.Records, batch.Records[i])
		}
		if err := p.Append(part); err != nil {
			return err
		}
		for k, i := range places {
			batch.Records[i].Place = part.Records[k].Place
		}
	}
	return nil
}

// within reports whether a key belongs to the log.
func (r *Run) within(key []byte) bool {
	return bytes.Compare(r.from, key) <= 0 && (r.to == nil || bytes.Compare(key, r.to) < 0)
}
