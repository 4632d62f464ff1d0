package clock

import (
	"context"
	"runtime/debug"
	"time"
)

const (
	// recheck bounds how long the loop trusts a timer of the system: those
	// stop while a machine sleeps, and its wall clock does not.
	recheck = time.Minute
	// leastWait is the least wait after a look that found nothing due, so that
	// a stopped system clock costs no processor.
	leastWait = time.Millisecond
)

// loop starts what falls due while the clock runs by itself. It is the only
// goroutine of a clock, with the only timer.
func (c *Clock) loop() {
	defer close(c.ended)
	timer := time.NewTimer(recheck)
	defer timer.Stop()
	alarmed := false
	for {
		wait, started := c.startDue()
		if alarmed && started == 0 {
			wait = max(wait, leastWait)
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
			alarmed = true
		case <-c.wake:
			alarmed = false
		case <-c.life.Done():
			return
		}
	}
}

// startDue starts everything that is due, and returns for how long nothing more is.
func (c *Clock) startDue() (wait time.Duration, started int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stepped {
		return recheck, 0 // Advance does it, and wakes the loop at its end
	}
	for c.due() {
		c.start(c.queue.pop())
		started++
	}
	if c.frozen || len(c.queue) == 0 {
		return recheck, started
	}
	return min(c.queue[0].at.Sub(c.now()), recheck), started
}

// due reports whether something should run at the present moment; the lock is
// held.
func (c *Clock) due() bool {
	return len(c.queue) > 0 && !c.queue[0].at.After(c.now())
}

// look wakes the loop; the lock may be held.
func (c *Clock) look() {
	select {
	case c.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// start lets a timer run that was taken from the queue; the lock is held. It is
// counted before its goroutine exists, so that the clock is never quiet in
// between.
func (c *Clock) start(t *Timer) {
	if t.woken != nil {
		t.wakeSleeper(nil)
		return
	}
	go c.run(t, c.begin(t.name))
}

// run calls a function and survives it.
func (c *Clock) run(t *Timer, w *work) {
	defer func() {
		value := recover()
		c.mu.Lock()
		tell := c.onPanic
		if value != nil && c.report != nil {
			c.report.Panicked = append(c.report.Panicked, t.name)
		}
		c.mu.Unlock()
		if value != nil && tell != nil {
			tell(t.name, value, debug.Stack())
		}
		w.done()
	}()
	t.fn(context.WithValue(c.life, workKey{c}, w))
}
