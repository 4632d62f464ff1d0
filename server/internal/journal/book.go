package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/cluster/chronicle"
	"github.com/destkit/destkit/server/internal/store"
	"github.com/destkit/destkit/server/internal/strictjson"
)

// book is one journal: a ring in the memory of this process or, where several
// processes share an installation, a ring from which entries go to the database.
type book[T any] struct {
	kind   string
	room   int // in bytes
	pace   int // entries a second that a process writes in the long run
	ring   ring[T]
	key    func(*T) string // by which an entry is found
	sign   func(*T, int64) // writes its number into an entry
	number func(*T) int64  // reads it
	show   func(*T)        // takes secrets out of an entry that leaves the ring; nil: there are none

	To     *journalWriter // nil: the ring is the journal
	Turn   *sync.Mutex    // of who writes to the database; guards what follows
	Next   *chronicle.Batch
	budget *budget
}

// newBook is a journal in memory.
func newBook[T any](kind string, room, pace int, size func(*T) int) book[T] {
	return book[T]{kind: kind, room: room, pace: pace, ring: newRing(mostHere, room, size), Turn: &sync.Mutex{}, budget: &budget{}}
}

// add keeps an entry. It never waits for the database.
func (b *book[T]) add(entry T) {
	b.ring.add(entry, b.sign)
	if b.To != nil {
		b.To.wake()
	}
}

// page gives up to limit entries after a number that pass, oldest first; next is
// the number from which the following page goes on. may sees the JSON of an entry that
// comes from the database: where it says no, pass would.
func (b *book[T]) page(ctx context.Context, after, limit int64, may func([]byte) bool, pass func(*T) bool) (page journalPage[T], err error) {
	if b.To != nil {
		return b.pageOfAll(ctx, after, int(limit), may, pass)
	}
	var last int64
	page.Entries, last, page.Total, page.Dropped = b.ring.page(after, int(limit), pass)
	for i := range page.Entries {
		b.shown(&page.Entries[i])
	}
	if last > 0 {
		page.Next = &last
	}
	return page, nil
}

// pageOfAll reads what all processes have written.
func (b *book[T]) pageOfAll(ctx context.Context, after int64, limit int, may func([]byte) bool, pass func(*T) bool) (page journalPage[T], err error) {
	if err := b.To.gather(ctx); err != nil {
		return page, err
	}
	page.Entries = []T{}
	var last int64
	totals, err := b.To.all.Each(ctx, b.kind, after, func(number int64, text []byte) (bool, error) {
		if !may(text) {
			return true, nil
		}
		entry, err := b.read(number, text)
		if err != nil || !pass(entry) {
			return true, err
		}
		if len(page.Entries) == limit {
			page.Next = &last
			return false, nil
		}
		page.Entries, last = append(page.Entries, *entry), number
		return true, nil
	})
	page.Total, page.Dropped = totals.All, totals.Dropped
	return page, store.Explained(err)
}

// pageBack gives up to limit entries before a number that pass, newest first; 0 begins
// with the newest. Next is the number from which the following page goes on.
func (b *book[T]) pageBack(ctx context.Context, before, limit int64, may func([]byte) bool, pass func(*T) bool) (page journalPage[T], err error) {
	var last int64
	if b.To != nil {
		// The database is read forwards: the last ones that pass are kept on the way.
		if err := b.To.gather(ctx); err != nil {
			return page, err
		}
		totals, err := b.To.all.Each(ctx, b.kind, 0, func(number int64, text []byte) (bool, error) {
			if before > 0 && number >= before {
				return false, nil
			}
			if !may(text) {
				return true, nil
			}
			entry, err := b.read(number, text)
			if err != nil || !pass(entry) {
				return true, err
			}
			if page.Entries = append(page.Entries, *entry); len(page.Entries) > 2*int(limit) {
				page.Entries = slices.Clone(page.Entries[len(page.Entries)-int(limit)-1:])
			}
			return true, nil
		})
		if err != nil {
			return page, store.Explained(err)
		}
		page.Total, page.Dropped = totals.All, totals.Dropped
		more := len(page.Entries) > int(limit)
		page.Entries = append([]T{}, page.Entries[max(0, len(page.Entries)-int(limit)):]...)
		slices.Reverse(page.Entries)
		if more {
			last = b.number(&page.Entries[len(page.Entries)-1])
		}
	} else {
		page.Entries, last, page.Total, page.Dropped = b.ring.back(before, int(limit), pass)
		for i := range page.Entries {
			b.shown(&page.Entries[i])
		}
	}
	if last > 0 {
		page.Next = &last
	}
	return page, nil
}

// Find is the newest entry with a key; nil when none is kept. Where there are other
// processes, gather comes first.
func (b *book[T]) Find(ctx context.Context, key string) (*T, error) {
	if b.To == nil {
		entry := b.ring.find(func(e *T) bool { return b.key(e) == key })
		if entry != nil {
			b.shown(entry)
		}
		return entry, nil
	}
	number, text, err := b.To.all.Find(ctx, b.kind, key)
	if err != nil || number == 0 {
		return nil, store.Explained(err)
	}
	return b.read(number, text)
}

// clear forgets the entries of all processes.
func (b *book[T]) clear(ctx context.Context) error {
	if b.To == nil {
		b.ring.clear()
		return nil
	}
	// What the others have not written yet is older than this call, too.
	if err := b.To.gather(ctx); err != nil {
		return err
	}
	return store.Explained(b.To.all.Clear(ctx, b.kind))
}

func (b *book[T]) shown(entry *T) {
	if b.show != nil {
		b.show(entry)
	}
}

// read is an entry as it was written.
func (b *book[T]) read(number int64, text []byte) (*T, error) {
	entry := new(T)
	if err := json.Unmarshal(text, entry); err != nil {
		return nil, fmt.Errorf("read entry %d of journal of %s: %w", number, b.kind, err)
	}
	b.sign(entry, number)
	return entry, nil
}

// write brings what has come since the last time into the database. What fails is
// tried again the next time.
func (b *book[T]) write(ctx context.Context) error {
	b.Turn.Lock()
	defer b.Turn.Unlock()
	if err := b.WriteNext(ctx); err != nil {
		return err
	}
	b.Next = b.Batch(time.Now())
	return b.WriteNext(ctx)
}

func (b *book[T]) WriteNext(ctx context.Context) error {
	if b.Next == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	if err := b.To.all.Add(ctx, b.kind, chronicle.Bounds{Entries: MostEntries, Bytes: int64(b.room)}, *b.Next); err != nil {
		b.Next.Again = true
		return err
	}
	b.Next = nil
	return nil
}

// Batch takes the newest entries that the budget pays for; the others are only
// counted, as those are that a ring has no room for.
func (b *book[T]) Batch(now time.Time) *chronicle.Batch {
	entries, size := b.budget.refill(now, b.pace, b.room)
	list, lost := b.ring.take(entries, min(size, largestBatch))
	if len(list) == 0 && lost == 0 {
		return nil
	}
	batch := &chronicle.Batch{Entries: make([]chronicle.Entry, 0, len(list)), Lost: lost}
	size = 0
	for i := range list {
		b.shown(&list[i])
		text, err := strictjson.Encode(&list[i])
		if err != nil {
			batch.Lost++
			continue
		}
		text = bytes.TrimSpace(text)
		batch.Entries = append(batch.Entries, chronicle.Entry{Key: b.key(&list[i]), Text: text})
		size += len(text)
	}
	b.budget.spend(len(list), size)
	return batch
}

// A process writes a burst of as much as a journal keeps, and in the long run no
// more than this: a worker makes tens of thousands of calls a second, and no one
// reads more than ten thousand of them. Calls cost more than requests: the secrets
// are taken out of them only now.
const (
	requestPace  = 1000    // entries a second
	callPace     = 200     // entries a second
	fullTime     = 60      // in which as many bytes are written as the journal keeps, in seconds
	largestBatch = 8 << 20 // bytes
	writeTime    = 10 * time.Second
)

// budget says how much may be written. The zero value is full.
type budget struct {
	at             time.Time
	entries, bytes float64
}

// refill adds what has come together since the last time.
func (p *budget) refill(now time.Time, pace, room int) (entries, size int) {
	if p.at.IsZero() {
		p.entries, p.bytes = MostEntries, float64(room)
	} else {
		passed := now.Sub(p.at).Seconds()
		p.entries = min(MostEntries, p.entries+passed*float64(pace))
		p.bytes = min(float64(room), p.bytes+passed*float64(room)/fullTime)
	}
	p.at = now
	return max(0, int(p.entries)), max(0, int(p.bytes))
}

// spend may leave a debt: how large an entry is shows when it is written.
func (p *budget) spend(entries, size int) {
	p.entries -= float64(entries)
	p.bytes -= float64(size)
}
