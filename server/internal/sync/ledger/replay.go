package ledger

import (
	"errors"
	"fmt"
	"io/fs"
)

// openLog opens the log of a run, or makes an empty one, and reads its
// content. A torn or damaged end is cut.
func (s *Sync) openLog(run int64) (_ *Run, err error) {
	r, name := &Run{s: s, id: run}, logName(run, openSuffix)
	r.f, err = s.files.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		r.f, err = s.files.create(name)
	}
	if err != nil {
		return nil, err
	}
	whole, err := r.replay()
	if err == nil && !whole {
		// spec 7.2 rule 5: durability is in doubt. The mark is durable before
		// the damaged part goes.
		err = s.files.write(damagedFile, fmt.Appendf(nil, logDamaged, r.id))
		if err == nil {
			err = r.f.truncate(r.end)
		}
		if err == nil {
			_, err = r.replay() // without the half of a frame that was read
		}
	}
	if err == nil {
		err = r.f.truncate(r.end)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read log: %w", err), r.release())
	}
	return r, nil
}

// replay reads the log up to its end, or up to a damaged part.
func (r *Run) replay() (whole bool, err error) {
	if r.index != nil {
		if err := r.index.close(); err != nil {
			return false, err
		}
	}
	r.index = newIndex(r.s.files, r.s.o)
	r.summed, r.began, r.resumed, r.end = Counters{}, Meta{}, false, 0
	size, err := r.f.size()
	if err != nil {
		return false, err
	}
	l, err := readLog(r.f, size, r.id)
	if err == nil {
		r.began = l.began.Meta
		err = l.each(r.learnBatch, r.learn, func() { r.summed.Invalid = 0 })
		r.end = l.at
	}
	r.place, r.number = l.place, l.records
	if errors.Is(err, ErrDamaged) {
		return false, nil
	}
	if errors.Is(err, errTorn) {
		err = nil
	}
	return true, err
}

func (r *Run) learnBatch(b *Batch) { r.summed.Invalid += b.Skipped }

// learn is to a log that is read what enter is to one that is written.
func (r *Run) learn(record *logged) error {
	r.resumed = true
	r.summed.count(record)
	if record.Verdict == Invalid {
		return nil
	}
	find := r.index.at
	if record.Verdict != Rejected { // only a refusal keeps parts of the entry before
		find = r.index.over
	}
	it, err := find(record.Key)
	if err == nil {
		r.index.follow(it, &record.Record, record.number)
	}
	return err
}

// goOn writes the beginning of a new log, or that an old one is resumed.
func (r *Run) goOn(meta Meta) error {
	var frame []byte
	var err error
	if r.end == 0 {
		r.began, r.place = meta, 0
		frame, err = startFrame(beginning{Run: r.id, Meta: meta})
	} else {
		frame = openFrame(nil, frameResume)
		err = sealFrame(frame, r.place)
	}
	if err != nil {
		return err
	}
	_, err = r.f.WriteAt(frame, r.end)
	if err == nil {
		err = r.f.sync()
	}
	if err == nil {
		err = r.s.files.sync()
	}
	if err != nil {
		return fmt.Errorf("write log: %w", err)
	}
	r.end += int64(len(frame))
	r.place++
	r.summed.Invalid = 0
	return nil
}
