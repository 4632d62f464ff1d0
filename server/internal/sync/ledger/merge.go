package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// items gives items in ascending order of their keys, each key once. The same
// item is handed in every time; its key is good until the next call.
type items interface {
	next(*item) error // io.EOF after the last
}

// merged is several in one: a heap of their next items. Of equal keys the one
// of the first source counts.
type merged struct {
	heads []*mergeHead
	begun bool
	given []byte
}

type mergeHead struct {
	from items
	rank int
	it   item
}

// mergeItems wants newer sources before older ones.
func mergeItems(sources []items) items {
	if len(sources) == 1 {
		return sources[0]
	}
	m := &merged{}
	for rank, from := range sources {
		m.heads = append(m.heads, &mergeHead{from: from, rank: rank})
	}
	return m
}

func (m *merged) next(it *item) error {
	if !m.begun {
		if err := m.begin(); err != nil {
			return err
		}
	} else if err := m.pass(); err != nil {
		return err
	}
	if len(m.heads) == 0 {
		return io.EOF
	}
	*it = m.heads[0].it
	return nil
}

// begin reads the first item of each.
func (m *merged) begin() error {
	m.begun = true
	for i := len(m.heads) - 1; i >= 0; i-- {
		if err := m.advance(i); err != nil {
			return err
		}
	}
	for i := len(m.heads)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return nil
}

// pass leaves the key that was given, in all sources.
func (m *merged) pass() error {
	if len(m.heads) == 0 {
		return nil
	}
	m.given = append(m.given[:0], m.heads[0].it.key...)
	for len(m.heads) > 0 && bytes.Equal(m.heads[0].it.key, m.given) {
		if err := m.advance(0); err != nil {
			return err
		}
		m.sink(0)
	}
	return nil
}

// advance reads the next item of a head; at its end the last head takes its
// place.
func (m *merged) advance(i int) error {
	err := m.heads[i].from.next(&m.heads[i].it)
	if errors.Is(err, io.EOF) {
		last := len(m.heads) - 1
		m.heads[i] = m.heads[last]
		m.heads = m.heads[:last]
		return nil
	}
	return err
}

func (m *merged) less(i, j int) bool {
	a, b := m.heads[i], m.heads[j]
	if c := bytes.Compare(a.it.key, b.it.key); c != 0 {
		return c < 0
	}
	return a.rank < b.rank
}

// sink moves a head down to its place.
func (m *merged) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heads); child++ {
			if m.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}

// merge makes the new state; the mark of damage is then in its meta or gone. A run
// that learnt nothing changes the Meta only. A state that turns out to be damaged
// here is rebuilt from the logs, and the next run must be a full sync, even if the
// caller did not want one.
func (s *Sync) merge(x *index, meta Meta) error {
	now, whole, err := s.meta()
	if err != nil {
		return err
	}
	if !meta.Damaged {
		meta.Reason = ""
	}
	if whole && x.empty() {
		meta.Rows = now.Rows
		return s.changeMeta(storedMeta{meta, now.Generation})
	}
	next := storedMeta{meta, now.Generation + 1}
	err = s.mergeState(x, next)
	if errors.Is(err, ErrDamaged) {
		if now, err = s.rebuilt(meta.Run); err != nil {
			return err
		}
		next.Generation, next.Damaged, next.Reason = now.Generation+1, true, now.Reason
		err = s.mergeState(x, next)
	}
	if err != nil {
		return err
	}
	return errors.Join(s.files.remove(damagedFile), s.files.remove(metaFile))
}

// mergeState writes a new state: the old one with what a run learnt over it, or
// an empty one where x is nil.
// The old state is whole until the new one takes its name.
func (s *Sync) mergeState(x *index, meta storedMeta) (err error) {
	s.crash(BeforeMerge)
	f, err := s.files.create(stateFile + newSuffix)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			_ = s.files.remove(stateFile + newSuffix) // else Begin does it
		}
	}()
	w := &sortedWriter{f: f, limit: cmp.Or(s.o.block, blockSize)}
	err = w.start()
	if err == nil && x != nil {
		err = s.writeMerged(w, x, meta.Meta)
	}
	if err == nil {
		err = w.finish(meta)
	}
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	s.crash(AfterMerge)
	if err := s.files.rename(stateFile+newSuffix, stateFile); err != nil {
		return fmt.Errorf("replace state: %w", err)
	}
	s.crash(AfterRename)
	return nil
}

// writeMerged writes the items of a run over those of the state.
func (s *Sync) writeMerged(w *sortedWriter, x *index, meta Meta) error {
	old, err := s.readItems()
	if err != nil {
		return err
	}
	o := &overlay{run: x.sorted(), state: old, below: meta.Below}
	return errors.Join(s.writeItems(w, o), old.Close())
}

func (s *Sync) writeItems(w *sortedWriter, from items) error {
	var it item
	for blocks := w.blocks; ; {
		err := from.next(&it)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = w.add(&it)
		}
		if err != nil {
			return err
		}
		if w.blocks != blocks || w.rows == 1 {
			blocks = w.blocks
			s.crash(MidMerge)
		}
	}
}

// overlay lays the entries of a run over the state with the same keys, in key
// order; entries that it does not mention stay as they are. Keys that sort
// before a key are left out.
type overlay struct {
	run, state items
	below      []byte

	begun, fromRun, fromState bool // which of the two were given last
	now, old                  item
	nowErr, oldErr            error
}

func (o *overlay) next(it *item) error {
	for {
		if !o.begun || o.fromRun {
			o.nowErr = o.run.next(&o.now)
		}
		if !o.begun || o.fromState {
			o.oldErr = o.state.next(&o.old)
		}
		o.begun, o.fromRun, o.fromState = true, false, false
		for _, err := range []error{o.nowErr, o.oldErr} {
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		if o.nowErr != nil && o.oldErr != nil {
			return io.EOF
		}
		if o.choose(it) {
			return nil
		}
	}
}

// choose gives the lesser of the two, or both as one; false: nothing of it is
// kept.
func (o *overlay) choose(it *item) bool {
	c := 0
	switch {
	case o.oldErr != nil:
		c = -1
	case o.nowErr != nil:
		c = 1
	default:
		c = bytes.Compare(o.now.key, o.old.key)
	}
	o.fromRun, o.fromState = c <= 0, c >= 0
	if c > 0 {
		*it = o.old
		return bytes.Compare(it.key, o.below) >= 0
	}
	if bytes.Compare(o.now.key, o.below) < 0 {
		return false
	}
	before := &o.old
	if c < 0 {
		before = nil
	}
	var kept bool
	*it, kept = o.now.over(before)
	return kept
}
