package loadgen

import (
	"math"
	"sync"
	"sync/atomic"
)

// Control pauses, paces and stops a run from outside. Its zero value is ready, for one
// run, and safe for parallel use.
type Control struct {
	mu      sync.Mutex
	e       *engine // of the phase that runs; nil between phases
	open    bool
	resumed chan struct{} // closed at the end of a pause
	rate    float64       // that was set; 0: none

	paused, stopped, set atomic.Bool
}

// phase says which phase runs now; nil: none. What was asked for before holds in it,
// too.
func (c *Control) phase(e *engine, ph phase) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.e, c.open = e, ph.open
	if e == nil {
		return
	}
	if c.stopped.Load() {
		e.stopFor(stopAsked)
	}
	if c.paused.Load() && ph.open {
		e.pacer.pause()
	}
	if c.rate > 0 && ph.open {
		e.pacer.limit(c.rate)
	}
}

// Pause holds requests back until Resume; those under way are answered. The time of a
// pause is part of the duration, and nothing is made up for afterwards.
func (c *Control) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused.Load() {
		return
	}
	c.resumed = make(chan struct{})
	c.paused.Store(true)
	if c.e != nil && c.open {
		c.e.pacer.pause()
	}
}

// Resume ends a pause.
func (c *Control) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.paused.Load() {
		return
	}
	c.paused.Store(false)
	close(c.resumed)
	if c.e != nil && c.open {
		p := c.e.pacer
		p.turn.Lock()
		p.resume(p.clock.now() - p.began)
		p.turn.Unlock()
	}
}

// Paused reports whether the run is paused.
func (c *Control) Paused() bool { return c.paused.Load() }

// SetRate replaces the rate from now on, in requests per second: of stages, and of what
// the target declares. The error is a *UsageError: a closed loop has no rate.
func (c *Control) SetRate(rate float64) error {
	if !(rate > 0) || rate > mostRate || math.IsNaN(rate) {
		return usagef("a rate must be above 0 and at most %.0f requests per second; pause to send nothing", mostRate)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.e == nil {
		return usagef("nothing is sent now: set the rate while the load runs")
	}
	if !c.open {
		return usagef("a closed loop sends as fast as it is answered: it has no rate")
	}
	c.rate = rate
	c.set.Store(true)
	c.e.pacer.limit(rate)
	return nil
}

// Stop ends the run as if its duration were over; what was measured is its result.
func (c *Control) Stop() {
	c.Resume()
	c.stopped.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.e != nil {
		c.e.stopFor(stopAsked)
	}
}

// fixed reports whether the rate was set by hand, so that no reply changes it.
func (c *Control) fixed() bool { return c != nil && c.set.Load() }

// wait waits for the end of a pause, or of the phase: false.
func (c *Control) wait(quit <-chan struct{}) bool {
	if !c.paused.Load() {
		return true
	}
	c.mu.Lock()
	resumed := c.resumed
	c.mu.Unlock()
	select {
	case <-resumed:
		return true
	case <-quit:
		return false
	}
}
