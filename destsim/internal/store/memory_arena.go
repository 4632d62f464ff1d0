package store

import (
	"bytes"
	"sync"
	"sync/atomic"
)

// arena keeps the data of rows in pieces of up to 64 KiB, which cost a garbage
// collector little. Packing the table frees the space of replaced rows.
type arena struct {
	piece []byte // free at its end
	given int    // bytes in use and abandoned ones
	waste int    // abandoned ones
}

const (
	leastPiece = 1 << 10
	mostPiece  = 64 << 10
	// littleWaste is the waste that does not matter.
	littleWaste = 16 << 10
)

// keep copies data into the arena, with a little room behind it so that a
// value may grow.
func (a *arena) keep(data []byte) []byte {
	size := (len(data) + 15) &^ 15
	if size > mostPiece/4 {
		a.given += size
		return append(make([]byte, 0, size), data...)
	}
	if cap(a.piece)-len(a.piece) < size {
		a.piece = make([]byte, 0, max(size, min(max(2*cap(a.piece), leastPiece), mostPiece)))
	}
	from := len(a.piece)
	a.piece = a.piece[:from+size]
	a.given += size
	kept := a.piece[from : from+len(data) : from+size]
	copy(kept, data)
	return kept
}

// abandon notes that the data of a row is not used any more; the lock of the
// shard is held, which keeps the account.
func (t *memoryTable) abandon(s *memoryShard, r *memoryRow) {
	if !r.owned {
		return
	}
	r.owned = false
	if s.room.waste += cap(r.Data); s.room.waste > littleWaste && 2*s.room.waste > s.room.given {
		t.wasteful.Store(true)
	}
}

// Shape is a list of names in order. Rows that have the same one have the same
// members, so that one can take the place of the other without being read.
type Shape struct{ names []byte } // quoted, with commas between

// shapesKept bounds how many are known; records of others take the long way.
const shapesKept = 4096

// shapes knows each shape once.
type shapes struct {
	mu    sync.Mutex
	known map[string]*Shape
	last  atomic.Pointer[Shape]
}

// of gives the shape of the quoted names, nil when there are too many.
func (s *shapes) of(list [][]byte) *Shape {
	names := bytes.Join(list, []byte{','})
	if last := s.last.Load(); last != nil && bytes.Equal(last.names, names) {
		return last
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.known[string(names)]
	if found == nil {
		if len(s.known) >= shapesKept {
			return nil
		}
		if s.known == nil {
			s.known = map[string]*Shape{}
		}
		found = &Shape{names}
		s.known[string(names)] = found
	}
	s.last.Store(found)
	return found
}

// fits reports whether data has these names in this order.
func (s *Shape) fits(data []byte) bool {
	rest, first := s.names, true
	same := true
	EachMember(data, func(name, _ []byte) bool {
		if !first {
			rest, same = bytes.CutPrefix(rest, []byte{','})
		}
		if first = false; same {
			rest, same = bytes.CutPrefix(rest, name)
		}
		return same
	})
	return same && len(rest) == 0
}
