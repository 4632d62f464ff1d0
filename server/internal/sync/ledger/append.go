package ledger

import "fmt"

// group is batches that are written together: while one group is being made
// durable the next one gathers.
type group struct {
	batches []Batch
	done    chan struct{}
	err     error
}

// Append writes the verdicts of a batch in one piece; they are durable when it
// returns nil. Calls at the same time share one write. After an error the run
// takes no more: close it, the next Begin finds the durable part.
func (r *Run) Append(batch Batch) error {
	if err := batch.check(); err != nil {
		return fmt.Errorf("append to run %d of sync %d: %w", r.id, r.s.id, err)
	}
	r.queue.Lock()
	g, leads := r.next, r.next == nil
	if leads {
		g = &group{done: make(chan struct{}), err: ErrClosed}
		r.next = g
	}
	g.batches = append(g.batches, batch)
	r.queue.Unlock()
	if leads {
		r.lead(g)
	}
	<-g.done
	if g.err != nil {
		return fmt.Errorf("append to run %d of sync %d: %w", r.id, r.s.id, g.err)
	}
	return nil
}

// lead writes a group when the one before it is durable.
func (r *Run) lead(g *group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(g.done)
	r.queue.Lock()
	r.next = nil
	r.queue.Unlock()
	if r.failed == nil {
		if err := r.commit(g.batches); err != nil {
			r.failed = err
		}
	}
	g.err = r.failed
}

// commit makes batches durable. The index runs ahead of the log here, so after
// an error it must not be used any more.
func (r *Run) commit(batches []Batch) error {
	// spec 7.2: one verdict for each record. They are counted when they are
	// durable, not before.
	r.s.crash(BeforeAppend)
	r.queue.Lock()
	sums := r.summed
	r.queue.Unlock()
	frame := openFrame(r.buffer[:0], frameBatch)
	for i := range batches {
		b := &batches[i]
		frame = appendBatchHead(frame, b)
		sums.Invalid += b.Skipped
		for k := range b.Records {
			l, err := r.enter(&b.Records[k], b.Fresh)
			if err != nil {
				return err
			}
			frame = appendRecord(frame, &l)
			sums.count(&l)
		}
	}
	if err := r.write(frame); err != nil {
		return err
	}
	if r.buffer = frame; cap(frame) > 4<<20 {
		r.buffer = nil
	}
	r.queue.Lock()
	r.summed = sums
	r.queue.Unlock()
	r.s.crash(AfterAppend)
	return nil
}

// enter numbers a record and finds the one that it replaces.
func (r *Run) enter(record *Record, fresh bool) (logged, error) {
	r.number++
	l := logged{Record: *record, number: r.number}
	if record.Verdict == Invalid {
		return l, nil
	}
	it, err := r.known(record, fresh)
	if err != nil {
		return l, fmt.Errorf("keep a key: %w", err)
	}
	if it.number > 0 {
		l.replaces, l.was = it.number, outcome{it.verdict(), it.isDelete()}
	}
	r.index.follow(it, record, r.number)
	if fresh {
		record.Place = Place{r.number, r.index.generation, uint32(len(r.index.items) - 1)}
	}
	return l, nil
}

// known is what the run knows of the key of a record.
func (r *Run) known(record *Record, fresh bool) (*item, error) {
	place := record.Place
	switch {
	case fresh:
		return r.index.add(record.Key, item{})
	case place == Place{}:
		return r.index.at(record.Key)
	case place.generation == r.index.generation:
		return &r.index.items[place.at].item, nil
	}
	// It went to disk as the refusal that it was; newer verdicts count.
	before := item{marks: rejected, number: place.number}
	if record.Delete {
		before.marks |= deleted
	}
	return r.index.add(record.Key, before)
}

// write appends a frame; it is durable then. Otherwise a partial write is
// cut, so that the log stays whole.
func (r *Run) write(frame []byte) error {
	err := sealFrame(frame, r.place)
	if err == nil && r.s.o.Crash != nil {
		// A process that dies in the middle of its write leaves this much.
		_, err = r.f.WriteAt(frame[:len(frame)/2], r.end)
		r.s.crash(MidAppend)
	}
	if err == nil {
		_, err = r.f.WriteAt(frame, r.end)
	}
	if err == nil {
		err = r.f.sync()
	}
	if err != nil {
		// After a failed sync it is unknown what the disk has, so the run does not
		// try again; Begin reads the file.
		_ = r.f.truncate(r.end)
		return fmt.Errorf("write log: %w", err)
	}
	r.end += int64(len(frame))
	r.place++
	return nil
}
