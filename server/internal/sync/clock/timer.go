package clock

import (
	"container/heap"
	"context"
	"time"
)

// Timer is a function that waits for its moment.
type Timer struct {
	c     *Clock
	at    time.Time
	seq   uint64
	index int // in the queue; -1 outside of it
	name  string
	fn    func(ctx context.Context)
	woken chan error // of a sleeper, which has no fn
	work  *work      // that sleeps; nil when it belongs to no work
	brief bool       // a sleeper that Settle waits for while time runs
	long  bool       // … and Advance does not
	span  bool       // waits for a while, not for a moment
}

// AfterFunc runs fn in its own goroutine when d has passed on this clock; at
// once when d is not positive. The context ends with the clock, and Sleep
// under it counts as not running. name is for reports.
func (c *Clock) AfterFunc(d time.Duration, name string, fn func(ctx context.Context)) *Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.push(&Timer{c: c, at: c.now().Add(d), name: name, fn: fn, span: true})
}

// At runs fn as AfterFunc does, at a moment of this clock.
func (c *Clock) At(t time.Time, name string, fn func(ctx context.Context)) *Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.push(&Timer{c: c, at: t.Round(0).UTC(), name: name, fn: fn})
}

// Turn reserves a place among what falls due at one moment, as if a function had been
// registered now. It is for those who keep elsewhere what waits, and register nothing
// but what comes first, by AtTurn.
func (c *Clock) Turn() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq++
	return int64(c.seq)
}

// TurnsFrom lets the next turns come after last, which was kept from an earlier clock.
func (c *Clock) TurnsFrom(last int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seq = max(c.seq, uint64(max(last, 0)))
}

// AtTurn is At in a place that was reserved.
func (c *Clock) AtTurn(t time.Time, turn int64, name string, fn func(ctx context.Context)) *Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.push(&Timer{c: c, at: t.Round(0).UTC(), seq: uint64(max(turn, 0)), name: name, fn: fn})
}

// push queues a timer, behind all others where it has no turn; one of a closed clock
// never falls due.
func (c *Clock) push(t *Timer) *Timer {
	t.index = -1
	if c.closed {
		return t
	}
	if t.seq == 0 {
		c.seq++
		t.seq = c.seq
	}
	heap.Push(&c.queue, t)
	if t.index == 0 {
		c.look()
	}
	return t
}

// Stop keeps the function from running. It reports whether it has: false when
// the function was started or stopped before. It does not wait for a function
// that runs.
func (t *Timer) Stop() bool {
	if t == nil {
		return false
	}
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.c.queue, t.index)
	t.c.tell() // it may have been what Settle waited for
	return true
}

// Sleep waits until d has passed on this clock. Under a context of a due
// function or of Work the sleeper counts as not running meanwhile. Errors are
// those of ctx, and ErrClosed.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	return c.sleep(ctx, d, false, false)
}

// Doze is Sleep for the short waits of work that ends by itself, such as those that keep
// a rate: Settle and Advance wait for their end, unless time is stopped.
func (c *Clock) Doze(ctx context.Context, d time.Duration) error { return c.sleep(ctx, d, true, false) }

// Rest is Doze for a wait that may come again and again for hours, such as a pause that
// a destination requests or the one before another attempt: Settle waits for its end,
// and Advance, which is there to pass it, does not.
func (c *Clock) Rest(ctx context.Context, d time.Duration) error { return c.sleep(ctx, d, true, true) }

func (c *Clock) sleep(ctx context.Context, d time.Duration, brief, long bool) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	t := &Timer{c: c, at: c.now().Add(d), name: "sleep", woken: make(chan error, 1), work: workOf(ctx, c), brief: brief, long: long, span: true}
	if t.work != nil {
		t.name = t.work.name
		t.work.pause()
	}
	if brief {
		c.dozing++
	}
	if long {
		c.resting++
	}
	c.push(t)
	c.mu.Unlock()
	select {
	case err := <-t.woken:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.index >= 0 {
		heap.Remove(&c.queue, t.index)
		c.awake(t)
		t.work.resume()
	}
	return ctx.Err()
}

// awake counts a sleeper out, who may have been all that was due; the lock is held.
func (c *Clock) awake(t *Timer) {
	if t.long {
		c.resting--
	}
	if t.brief {
		c.dozing--
	}
	c.tell()
}

// wakeSleeper ends a Sleep. Its work runs again from here on, not from when
// its goroutine gets the processor: otherwise the clock could pass for quiet
// in between.
func (t *Timer) wakeSleeper(err error) {
	t.c.awake(t)
	t.work.resume()
	t.woken <- err
}

// Waiting names what waits, sleepers too.
func (c *Clock) Waiting() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.queue {
		names = append(names, t.name)
	}
	return names
}

// queue is a heap of timers: by moment, then by registration.
type queue []*Timer

func before(a, b *Timer) bool {
	if a.at.Equal(b.at) {
		return a.seq < b.seq
	}
	return a.at.Before(b.at)
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return before(q[i], q[j]) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for package heap.
func (q *queue) Push(x any) {
	t := x.(*Timer)
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop is for package heap.
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.index = -1
	return t
}

// pop takes the timer that falls due first.
func (q *queue) pop() *Timer { return heap.Pop(q).(*Timer) }
