package journal

// book is one journal: a ring in memory.
type book[T any] struct {
	ring   ring[T]
	key    func(*T) string // by which an entry is found
	sign   func(*T, int64) // writes its number into an entry
	number func(*T) int64  // reads it
	show   func(*T)        // takes secrets out of an entry that leaves the ring; nil: there are none
}

// newBook is a journal in memory, of so many bytes.
func newBook[T any](room int, size func(*T) int) book[T] {
	return book[T]{ring: newRing(mostEntries, room, size)}
}

// add keeps an entry.
func (b *book[T]) add(entry T) { b.ring.add(entry, b.sign) }

// page gives up to limit entries after a number that pass, oldest first; next is
// the number from which the following page goes on.
func (b *book[T]) page(after, limit int64, pass func(*T) bool) (page journalPage[T]) {
	var last int64
	page.Entries, last, page.Total, page.Dropped = b.ring.page(after, int(limit), pass)
	b.finish(&page, last)
	return page
}

// pageBack gives up to limit entries before a number that pass, newest first; 0 begins
// with the newest. Next is the number from which the following page goes on.
func (b *book[T]) pageBack(before, limit int64, pass func(*T) bool) (page journalPage[T]) {
	var last int64
	page.Entries, last, page.Total, page.Dropped = b.ring.back(before, int(limit), pass)
	b.finish(&page, last)
	return page
}

func (b *book[T]) finish(page *journalPage[T], last int64) {
	for i := range page.Entries {
		b.shown(&page.Entries[i])
	}
	if last > 0 {
		page.Next = &last
	}
}

// Find is the newest entry with a key; nil when none is kept.
func (b *book[T]) Find(key string) *T {
	entry := b.ring.find(func(e *T) bool { return b.key(e) == key })
	if entry != nil {
		b.shown(entry)
	}
	return entry
}

// clear forgets the entries.
func (b *book[T]) clear() { b.ring.clear() }

func (b *book[T]) shown(entry *T) {
	if b.show != nil {
		b.show(entry)
	}
}
