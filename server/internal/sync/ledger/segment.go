package ledger

import (
	"bytes"
	"errors"
	"io"
	"sort"
)

// segment is one sorted scratch file, with the first key of each of its blocks.
type segment struct {
	f     *file
	heads []head
	last  []byte // its greatest key
	end   int64
	block int // the one that the reader is in; -1: none
	from  sortedReader
	it    item // the reader's current item
}

type head struct {
	first []byte
	at    int64
}

// write makes a segment of sorted items.
func (x *index) write(from items) (_ *segment, err error) {
	f, err := x.files.scratch()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	s := &segment{f: f, block: -1}
	w := sortedWriter{f: f, limit: segmentCut, opened: func(first []byte, at int64) {
		s.heads = append(s.heads, head{bytes.Clone(first), at})
	}}
	var it item
	for {
		if err := from.next(&it); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := w.add(&it); err != nil {
			return nil, err
		}
		s.last = append(s.last[:0], it.key...)
	}
	err = w.flush()
	s.end = w.at
	return s, err
}

// items reads the whole segment, apart from get.
func (s *segment) items() items {
	return &sortedReader{f: s.f, end: s.end}
}

// get looks for a key. Going upwards it reads every block once.
func (s *segment) get(key []byte) (item, bool, error) {
	if bytes.Compare(key, s.heads[0].first) < 0 || bytes.Compare(key, s.last) > 0 {
		return item{}, false, nil
	}
	block := sort.Search(len(s.heads), func(i int) bool { return bytes.Compare(s.heads[i].first, key) > 0 }) - 1
	if block != s.block || bytes.Compare(key, s.it.key) < 0 {
		if err := s.seek(block); err != nil {
			return item{}, false, err
		}
	}
	for {
		if c := bytes.Compare(s.it.key, key); c >= 0 {
			return s.it, c == 0, nil
		}
		if len(s.from.rest) == 0 {
			return item{}, false, nil
		}
		if err := s.from.next(&s.it); err != nil {
			return item{}, false, err
		}
	}
}

// seek moves to the first item of a block.
func (s *segment) seek(block int) error {
	if block != s.block {
		s.from.f, s.from.at, s.from.end, s.from.place = s.f, s.heads[block].at, s.end, uint32(block)
		s.block = -1
		if err := s.from.load(); err != nil {
			return err
		}
		s.block = block
	}
	s.from.rest = s.from.block
	s.it.key = nil
	return s.from.next(&s.it)
}
