package clock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// work is something that runs and that Settle and Advance wait for. Its fields
// belong to the lock of the clock. A nil work counts nowhere.
type work struct {
	c      *Clock
	name   string
	pauses int
}

// workKey finds the work of a context; each clock has its own.
type workKey struct{ c *Clock }

func workOf(ctx context.Context, c *Clock) *work {
	w, _ := ctx.Value(workKey{c}).(*work)
	return w
}

// begin counts a work in; the lock is held.
func (c *Clock) begin(name string) *work {
	w := &work{c: c, name: name}
	c.works[w] = struct{}{}
	c.running++
	return w
}

// end counts it out; the lock is held.
func (w *work) end() {
	if _, known := w.c.works[w]; !known {
		return
	}
	delete(w.c.works, w)
	if w.pauses == 0 {
		w.c.running--
	}
	w.c.tell()
}

// pause counts a work as not running; the lock is held.
func (w *work) pause() {
	if w == nil {
		return
	}
	if w.pauses++; w.pauses == 1 {
		w.c.running--
		w.c.tell()
	}
}

// resume undoes one pause; the lock is held.
func (w *work) resume() {
	if w == nil {
		return
	}
	if _, known := w.c.works[w]; !known {
		return
	}
	if w.pauses--; w.pauses == 0 {
		w.c.running++
	}
}

// Busy reports work that Settle and Advance must wait for, until done is
// called. It must not sleep on this clock: use Work for that.
func (c *Clock) Busy(name string) (done func()) {
	c.mu.Lock()
	w := c.begin(name)
	c.mu.Unlock()
	return w.done
}

func (w *work) done() {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.end()
}

// Work is Busy for one goroutine that sleeps on this clock or pauses: under the
// context that it returns Sleep and Pause count it as not running. Each further
// goroutine needs its own Work. The context ends with done and with the clock.
func (c *Clock) Work(ctx context.Context, name string) (_ context.Context, done func()) {
	c.mu.Lock()
	w := c.begin(name)
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithValue(ctx, workKey{c}, w))
	unlink := context.AfterFunc(c.life, cancel)
	return ctx, func() {
		unlink()
		cancel()
		w.done()
	}
}

// Pause counts the work of ctx as not running until resume is called: for a
// goroutine that waits for another one, which may be asleep on this clock. That
// other one must have started its own Work before, and whoever ends the wait
// calls resume first: so the clock never passes for quiet in between. Further
// calls of resume do nothing.
func (c *Clock) Pause(ctx context.Context) (resume func()) {
	w := workOf(ctx, c)
	if w == nil {
		return func() {}
	}
	c.mu.Lock()
	w.pause()
	c.mu.Unlock()
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.resume()
	})
}

// Running names what keeps the clock from being quiet: what runs now and, while time
// runs, what dozes; sorted.
func (c *Clock) Running() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for w := range c.works {
		if w.pauses == 0 {
			names = append(names, w.name)
		}
	}
	for _, t := range c.queue {
		if t.brief && !c.frozen {
			names = append(names, t.name)
		}
	}
	slices.Sort(names)
	return names
}

// Settle waits until nothing runs that could end by itself, and nothing is due at
// the present moment. While time runs, what dozes could: it is waited for. What
// sleeps is quiet, and what dozes is when time is stopped. It fails when ctx ends,
// naming what still runs, and with ErrWithin from work that it would wait for.
func (c *Clock) Settle(ctx context.Context) error {
	if workOf(ctx, c) != nil {
		return fmt.Errorf("settle clock: %w", ErrWithin)
	}
	if err := c.wait(ctx, func() bool { return c.quiet() && (c.dozing == 0 || c.frozen) }); err != nil {
		return fmt.Errorf("settle clock: %w", c.blame(err))
	}
	return nil
}

// quiet: nothing runs at this moment; the lock is held.
func (c *Clock) quiet() bool { return c.running == 0 && !c.stepped && !c.due() }

// blame adds to an error what still runs.
func (c *Clock) blame(err error) error {
	names := c.Running()
	if len(names) == 0 {
		return err
	}
	const shown = 10
	text := strings.Join(names[:min(shown, len(names))], ", ")
	if len(names) > shown {
		text += fmt.Sprintf(" and %d more", len(names)-shown)
	}
	return fmt.Errorf("%w; still running: %s", err, text)
}

// wait returns when fine, which is called under the lock, holds.
func (c *Clock) wait(ctx context.Context, fine func() bool) error {
	c.mu.Lock()
	for !fine() {
		told := make(chan struct{})
		c.waiters = append(c.waiters, told)
		c.mu.Unlock()
		select {
		case <-told:
		case <-ctx.Done():
			c.forget(told)
			return ctx.Err()
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
	return nil
}

// forget takes a waiter out that has given up.
func (c *Clock) forget(told chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters = slices.DeleteFunc(c.waiters, func(w chan struct{}) bool { return w == told })
}

// tell wakes all waiters; the lock is held.
func (c *Clock) tell() {
	for _, told := range c.waiters {
		close(told)
	}
	c.waiters = c.waiters[:0]
}
