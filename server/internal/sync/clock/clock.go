// Package clock owns the time of the service: the system clock plus an offset,
// that runs by itself, can be frozen, and can be advanced so that everything
// that falls due in between runs in order, each at its own moment.
//
// It refuses to know what runs: schedules, back-offs and expiries belong to
// those who register them. Deadlines of the network are real time and are no
// business of this clock.
package clock

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Errors of a clock.
var (
	// ErrClosed: the clock was closed, nothing falls due any more.
	ErrClosed = errors.New("the clock is closed")
	// ErrWithin: a function that the clock itself waits for must not wait for
	// the clock.
	ErrWithin = errors.New("called from work that the clock waits for")
	// ErrAdvancing: the clock is on its way and cannot be set.
	ErrAdvancing = errors.New("the clock is being advanced")
)

// earliest is the first year that a clock can be set to: zero moments of broken
// states are not among them.
const earliest = 1970

// latest is the last moment that RFC 3339 can write.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// farthest is how far the clock can be from the system clock: a Duration holds
// 292 years, and time must have room to run on.
const farthest = 290 * 365 * 24 * time.Hour

// reach returns why the clock cannot be set to t.
func (c *Clock) reach(t time.Time) error {
	if t.After(latest) || t.Year() < earliest {
		return fmt.Errorf("year %d is outside of %d to %d", t.Year(), earliest, latest.Year())
	}
	if now := c.system(); t.Sub(now).Abs() > farthest {
		return fmt.Errorf("year %d is more than %d years from the system's clock, which stands at %d", t.Year(), farthest/(365*24*time.Hour), now.Year())
	}
	return nil
}

// Clock is a virtual clock. It is safe for parallel use. One goroutine belongs
// to it until Close.
type Clock struct {
	system func() time.Time

	mu      sync.Mutex
	offset  time.Duration
	last    time.Time // what Now has shown: time never runs back by itself
	frozen  bool
	stepped bool      // an Advance is under way
	at      time.Time // what Now shows while frozen or stepped
	queue   queue
	seq     uint64 // of registrations
	works   map[*work]struct{}
	running int // works that are not paused
	dozing  int // brief sleepers
	resting int // … of these those that Advance does not wait for
	waiters []chan struct{}
	closed  bool
	report  *Report // of the Advance under way
	onPanic func(name string, value any, stack []byte)

	turn   chan struct{} // held by the one Advance under way
	wake   chan struct{} // wakes the loop
	ended  chan struct{} // the loop has returned
	life   context.Context
	cancel context.CancelFunc
}

// New starts a clock over system, which must run like time does; nil is
// time.Now. Close it to end its goroutine.
func New(system func() time.Time) *Clock {
	if system == nil {
		system = time.Now
	}
	c := &Clock{
		system: system, works: map[*work]struct{}{},
		turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	c.life, c.cancel = context.WithCancel(context.Background())
	go c.loop()
	return c
}

// Now is the moment of this clock, in UTC and without a monotonic part. Within
// a function that falls due during Advance it is the moment for which the
// function was registered.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

// now is Now with the lock held.
func (c *Clock) now() time.Time {
	if c.frozen || c.stepped {
		return c.at
	}
	// The wall time counts: moments are stored and compared across restarts.
	t := c.system().Round(0).UTC().Add(c.offset)
	if t.Before(c.last) {
		return c.last
	}
	c.last = t
	return t
}

// release lets time run on from the moment t.
func (c *Clock) release(t time.Time) {
	c.offset = t.Sub(c.system().Round(0))
	c.last = t
}

// Freeze stops the clock at its present moment, or lets it run on from there.
// Functions due at the moment of a frozen clock still run.
func (c *Clock) Freeze(frozen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if frozen == c.frozen {
		return
	}
	now := c.now()
	c.frozen, c.at = frozen, now
	if !frozen && !c.stepped {
		c.release(now)
	}
	c.look()
	c.tell() // what dozes is quiet from here on
}

// Set puts the clock to t, forwards or backwards, without the steps between:
// overdue functions run at once, in order. Use Advance to run through time.
// Backwards, what waits for a while (Sleep, Doze, AfterFunc) has as long to wait as
// before; what waits for a moment (At) waits for that moment. It fails with
// ErrAdvancing while another call advances the clock, for a moment outside of the
// years 1970 to 9999, and for one more than 290 years away from the system's clock.
func (c *Clock) Set(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set(c.now(), t)
}

// set puts the clock from one moment to another.
func (c *Clock) set(from, t time.Time) error {
	if c.stepped {
		return fmt.Errorf("set clock: %w", ErrAdvancing)
	}
	t = t.Round(0).UTC()
	if err := c.reach(t); err != nil {
		return fmt.Errorf("set clock: %w", err)
	}
	c.at = t
	if !c.frozen {
		c.release(t)
	}
	if back := from.Sub(t); back > 0 {
		c.keepWaits(back)
	}
	c.look()
	c.tell() // due functions may have to wait again
	return nil
}

// keepWaits moves what waits for a while back with the clock: otherwise it would
// wait for the old time to return.
func (c *Clock) keepWaits(back time.Duration) {
	for _, t := range c.queue {
		if t.span {
			t.at = t.at.Add(-back)
		}
	}
	heap.Init(&c.queue)
}

// Offset is how far the clock is ahead of the system clock.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen || c.stepped {
		return c.at.Sub(c.system().Round(0))
	}
	return c.offset
}

// Advancing reports whether a call of Advance is under way: it waits after each function
// until nothing runs any more.
func (c *Clock) Advancing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stepped
}

// State is what a snapshot keeps of a clock. Functions that wait are not part
// of it: their owners register them again.
type State struct {
	Offset   time.Duration `json:"offset"` // nanoseconds; without meaning while frozen
	Frozen   bool          `json:"frozen"`
	FrozenAt time.Time     `json:"frozen_at,omitzero"`
}

// State is the present setting of the clock.
func (c *Clock) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen {
		return State{Frozen: true, FrozenAt: c.at}
	}
	if c.stepped {
		return State{Offset: c.at.Sub(c.system().Round(0))}
	}
	return State{Offset: c.offset}
}

// Restore puts the clock into a state; errors are those of Set, and then
// nothing has changed.
func (c *Clock) Restore(state State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, from := c.frozen, c.now()
	c.frozen = state.Frozen
	to := state.FrozenAt
	if !state.Frozen {
		to = c.system().Add(state.Offset)
	}
	if err := c.set(from, to); err != nil {
		c.frozen = was
		return err
	}
	return nil
}

// OnPanic sets the function to call after a panic in a function that fell
// due; nil: none. The clock goes on in either case.
func (c *Clock) OnPanic(tell func(name string, value any, stack []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onPanic = tell
}

// Close ends the clock: what waits never falls due, Sleep returns ErrClosed,
// the contexts of running functions end. It returns when everything that was
// running has ended, so it must not be called from within.
func (c *Clock) Close() {
	c.mu.Lock()
	c.closed = true
	for len(c.queue) > 0 {
		if t := c.queue.pop(); t.woken != nil {
			t.wakeSleeper(ErrClosed)
		}
	}
	c.tell()
	c.mu.Unlock()
	c.cancel()
	<-c.ended
	// The background context never ends, so wait has no error to give.
	_ = c.wait(context.Background(), func() bool { return len(c.works) == 0 })
}
