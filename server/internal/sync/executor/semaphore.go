package executor

import (
	"context"
	"slices"
	"sync"

	"github.com/destkit/destkit/server/internal/sync/clock"
)

// semaphore bounds how many batches are on their way at once. Who waits for a place
// counts as not running on the clock, and runs again from the moment in which
// the place is given: so an Advance neither hangs nor passes by.
type semaphore struct {
	clock *clock.Clock
	name  string

	size int // how many batches may be on their way at once

	mu    sync.Mutex
	free  int
	queue []*waiter
}

type waiter struct {
	want   int // 0: that all are free
	given  chan struct{}
	resume func()
}

func newSemaphore(c *clock.Clock, name string, size int) *semaphore {
	return &semaphore{clock: c, name: name, size: size, free: size}
}

// do runs fn in parallel with the caller as soon as there is a place.
func (c *semaphore) do(ctx context.Context, fn func(ctx context.Context)) error {
	if err := c.take(ctx, 1); err != nil {
		return err
	}
	own, done := c.clock.Work(ctx, c.name)
	go func() {
		defer done()
		defer c.give(1)
		fn(own)
	}()
	return nil
}

// wait returns when nothing is on its way any more, whatever becomes of ctx:
// batches end by themselves.
func (c *semaphore) wait(ctx context.Context) {
	_ = c.take(context.WithoutCancel(ctx), 0)
}

// busy reports whether something is on its way.
func (c *semaphore) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.free < c.size
}

func (c *semaphore) take(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	if len(c.queue) == 0 && c.has(n) {
		c.free -= n
		c.mu.Unlock()
		return nil
	}
	w := &waiter{want: n, given: make(chan struct{}), resume: c.clock.Pause(ctx)}
	c.queue = append(c.queue, w)
	c.mu.Unlock()
	select {
	case <-w.given:
		return nil
	case <-ctx.Done():
	}
	return c.leave(w, ctx.Err())
}

// leave takes a waiter out that gives up, unless it was just served.
func (c *semaphore) leave(w *waiter, err error) error {
	w.resume()
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.queue, w)
	if at < 0 {
		return nil
	}
	c.queue = slices.Delete(c.queue, at, at+1)
	return err
}

// has reports whether a waiter can be served.
func (c *semaphore) has(n int) bool { return c.free >= n && (n > 0 || c.free == c.size) }

// give hands out n places that are free now.
func (c *semaphore) give(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free += n
	for len(c.queue) > 0 && c.has(c.queue[0].want) {
		w := c.queue[0]
		c.queue = c.queue[1:]
		c.free -= w.want
		w.resume()
		close(w.given)
	}
}
