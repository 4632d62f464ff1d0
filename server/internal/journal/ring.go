package journal

import (
	"iter"
	"slices"
	"sync"
)

// ring keeps the last entries within a number and a size in bytes. Entries are
// numbered from 1 on, also across clear.
type ring[T any] struct {
	mu    *sync.Mutex
	size  func(*T) int
	most  int // entries
	room  int // bytes
	slots []T
	base  int64 // the number before the first slot's
	first int64 // number of the oldest kept entry
	last  int64 // number of the newest entry
	bytes int
}

// newRing has no slots at first: most journals stay small.
func newRing[T any](most, room int, size func(*T) int) ring[T] {
	return ring[T]{mu: &sync.Mutex{}, size: size, most: most, room: room, first: 1}
}

func (r *ring[T]) slot(number int64) *T { return &r.slots[(number-r.base-1)%int64(r.most)] }

// add keeps an entry; number writes its number into it.
func (r *ring[T]) add(entry T, number func(*T, int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	number(&entry, r.last)
	if len(r.slots) < r.most {
		r.slots = append(r.slots, entry)
	} else {
		if r.first == r.last-int64(r.most) {
			r.drop()
		}
		*r.slot(r.last) = entry
	}
	r.bytes += r.size(&entry)
	for r.bytes > r.room && r.first < r.last {
		r.drop()
	}
}

// drop forgets the oldest entry.
func (r *ring[T]) drop() {
	oldest := r.slot(r.first)
	r.bytes -= r.size(oldest)
	var none T
	*oldest = none
	r.first++
}

// clear forgets the entries and keeps their numbers, by which readers go on.
func (r *ring[T]) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots, r.bytes = nil, 0
	r.base, r.first = r.last, r.last+1
}

// page copies up to limit entries after a number that pass, oldest first, and
// counts all entries and the forgotten ones. next is the number of the last one
// where more follow, and otherwise 0. It ignores entries added meanwhile; entries
// removed meanwhile may be missing.
func (r *ring[T]) page(after int64, limit int, pass func(*T) bool) (list []T, next, total, dropped int64) {
	end := int64(-1)
	return r.walk(after, limit, pass, slices.All[[]T], func(at int64) (int64, int64) {
		if end < 0 {
			end = r.last
		}
		at = max(at, r.first-1)
		return at + 1, min(at+chunk, end)
	})
}

// back copies up to limit entries before a number that pass, newest first; 0 begins
// with the newest. The rest is as for page.
func (r *ring[T]) back(before int64, limit int, pass func(*T) bool) (list []T, next, total, dropped int64) {
	return r.walk(before, limit, pass, slices.Backward[[]T], func(at int64) (int64, int64) {
		if at == 0 || at > r.last+1 {
			at = r.last + 1
		}
		return max(at-chunk, r.first), at - 1
	})
}

// chunk is how many entries one turn of walk looks at. They are copied, so that who adds
// an entry waits for the copy and not for the search.
const chunk = 512

// walk goes through the entries, chunk by chunk, in an order; between gives the numbers,
// both included, of the entries that follow one.
func (r *ring[T]) walk(at int64, limit int, pass func(*T) bool, order func([]T) iter.Seq2[int, T], between func(int64) (from, to int64)) (list []T, next, total, dropped int64) {
	list = []T{}
	var part []T
	for last := int64(0); ; {
		var from int64
		part, from, total, dropped = r.copied(part, func() (int64, int64) { return between(at) })
		for i := range order(part) {
			if at = from + int64(i); !pass(&part[i]) {
				continue
			}
			if len(list) == limit {
				return list, last, total, dropped
			}
			list, last = append(list, part[i]), at
		}
		if len(part) == 0 {
			return list, 0, total, dropped
		}
	}
}

// copied copies the entries between two numbers, both included, into part, whose room it
// uses again. It gives the number of the first one with the counts of the ring.
func (r *ring[T]) copied(part []T, between func() (from, to int64)) (_ []T, from, total, dropped int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from, to := between()
	part = part[:0]
	for n := from; n <= to; n++ {
		part = append(part, *r.slot(n))
	}
	return part, from, r.last - r.base, r.first - r.base - 1
}

// find copies the newest entry that fits; nil when none is kept.
func (r *ring[T]) find(fits func(*T) bool) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := r.last; n >= r.first; n-- {
		if fits(r.slot(n)) {
			entry := *r.slot(n)
			return &entry
		}
	}
	return nil
}

// stamp changes with every entry, and when the ring is emptied.
func (r *ring[T]) stamp() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last<<1 ^ r.first
}
