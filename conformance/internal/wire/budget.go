package wire

import (
	"runtime"
	"sync"
	"time"

	"github.com/destkit/destkit/internal/quantity"
)

// The memory of all replies of one client that are still in use. Small bodies
// are not counted: 64 of them at once stay below 16 MiB.
const (
	memoryBudget = 64 << 20
	freeBytes    = 256 << 10
)

// budget counts the bytes of large bodies and trees that are alive, so that
// many huge replies at once cannot add up. Bytes come back when the garbage
// collector finds the memory unused.
type budget struct {
	mu     sync.Mutex
	used   int64
	max    int64
	spare  func() // gives up what is kept for speed alone; nil: nothing is
	alone  bool   // one reply is read after the other: no one gives back while one waits
	gc     sync.Mutex
	lastGC time.Time
}

// take counts n bytes; false says that they must not be allocated.
func (b *budget) take(n int64) bool {
	if n <= freeBytes || b.tryTake(n) {
		return true
	}
	return b.collect(n)
}

func (b *budget) tryTake(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used+n > b.max {
		return false
	}
	b.used += n
	return true
}

// collect lets the garbage collector give back what is not in use any more. Calls
// that are hungry at the same time share one collection.
func (b *budget) collect(n int64) bool {
	asked := time.Now()
	b.gc.Lock()
	defer b.gc.Unlock()
	if b.lastGC.After(asked) {
		return b.tryTake(n)
	}
	if b.spare != nil {
		b.spare()
	}
	runtime.GC()
	b.lastGC = time.Now()
	// Cleanups run on their own goroutine shortly after the collection.
	for range 10 {
		if b.tryTake(n) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return b.tryTake(n)
}

// await is take for what is worth waiting for: others may be done with theirs soon.
func (b *budget) await(n int64) bool {
	for pause := firstPause; ; pause *= 2 {
		if b.take(n) {
			return true
		}
		if b.alone || pause > longestPause {
			return false
		}
		time.Sleep(pause)
	}
}

// The pauses of await are together two and a half seconds long.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = 1280 * time.Millisecond
)

// give returns n bytes that take had counted.
func (b *budget) give(n int64) {
	if n <= freeBytes {
		return
	}
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
}

// follow returns n bytes once the object of ptr is no longer reachable.
func follow[T any](b *budget, ptr *T, n int64) {
	if n > freeBytes {
		runtime.AddCleanup(ptr, b.give, n)
	}
}

// grower is a byte buffer that asks the budget before it grows and never
// exceeds max bytes. Where the budget has nothing left it keeps the beginning and counts
// the rest: a body that is too large by itself is told from one among too many.
type grower struct {
	buf    []byte
	max    int64
	budget *budget
	past   int64 // bytes that were counted and not kept
	lost   error // why; nil while all are kept
}

// What a grower keeps that lost the rest, and the buffer that it reads on with, which is
// not counted.
const (
	lostHead = freeBytes / 4
	scratch  = freeBytes / 2
)

// heavy is from how many bytes on a body is itself the reason why it cannot be held beside
// others. What many smaller ones take together is the fault of none.
const heavy = 2 << 20

// ended is the error of a body that has come to its end, nil when all of it was kept.
func (g *grower) ended() error {
	if g.lost != nil && g.size() >= heavy {
		return tooLarge("the body has %s, and the bodies of all calls in flight are together larger than %d", quantity.Count(g.size(), "byte"), g.budget.max)
	}
	return g.lost
}

// size is how many bytes have come.
func (g *grower) size() int64 { return g.past + int64(len(g.buf)) }

// lose drops what was kept but its beginning.
func (g *grower) lose() {
	head := min(len(g.buf), lostHead)
	g.past += int64(len(g.buf) - head)
	if g.lost != nil {
		g.buf = g.buf[:head]
		return
	}
	g.lost = unread("the bodies of all calls in flight are together larger than %s", quantity.Count(g.budget.max, "byte"))
	old := int64(cap(g.buf))
	g.buf = append(make([]byte, 0, scratch), g.buf[:head]...)
	g.budget.give(old)
}

// room makes space for at least one byte. A total that is known (0: it is not)
// avoids waste, but is not believed beyond what has arrived.
func (g *grower) room(total int64) error {
	if len(g.buf) < cap(g.buf) {
		return nil
	}
	old := int64(cap(g.buf))
	size := max(2*old, 4<<10)
	if total > old {
		size = min(total, max(2*old, 64<<10))
	}
	// One byte over the bound is enough to see that it is exceeded.
	if size = min(size, g.max+1); size <= old && g.lost == nil {
		return tooLarge("the body is larger than %s", quantity.Count(g.max, "byte"))
	}
	if g.lost != nil || !g.budget.take(size) {
		g.lose()
		return nil
	}
	next := make([]byte, len(g.buf), size)
	copy(next, g.buf)
	g.buf = next
	g.budget.give(old)
	return nil
}

// take hands the bytes over; the budget follows their life from here on. A nil
// grower or one whose bytes were dropped gives nil.
func (g *grower) take() []byte {
	buf := g.buf
	g.buf = nil
	if cap(buf) > 0 {
		follow(g.budget, &buf[:1][0], int64(cap(buf)))
	}
	return buf
}

// clip frees everything but a short beginning: a body over its bound is not
// worth its memory.
func (g *grower) clip() []byte {
	head := append([]byte(nil), g.buf[:min(len(g.buf), recordedResponse)]...)
	g.budget.give(int64(cap(g.buf)))
	g.buf = nil
	return head
}
