package loadgen

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Control pauses, paces and stops a run from outside. Its zero value is ready, for one
// run, and safe for parallel use.
type Control struct {
	mu      sync.Mutex
	e       *engine // of the phase that runs; nil between phases
	ph      phase
	open    bool
	resumed chan struct{} // closed at the end of a pause
	rate    float64       // that was set; 0: none
	held    int64         // when the pause began, in nanoseconds from the start of the phase
	changes []ByHand      // of the phase that runs, or ran last

	paused, stopped, set atomic.Bool
}

// ByHand is one pause or change of the rate, made by hand while the load ran.
type ByHand struct {
	At   float64 `json:"at_seconds"`     // seconds from the start of the measurement
	Did  string  `json:"did"`            // pause, resume or rate
	From float64 `json:"from,omitempty"` // the rate that was asked for before, in requests per second; a closed loop has none
	To   float64 `json:"to,omitempty"`   // and after
}

// now is the time of the phase, in nanoseconds. The control is locked.
func (c *Control) now() int64 { return c.e.clock.Now() - c.e.began.Load() }

// asked is the requested rate of a phase at a moment, 0 in a closed loop. The control is
// locked.
func (c *Control) asked(at int64) float64 {
	switch {
	case !c.open:
		return 0
	case c.rate > 0:
		return c.rate
	}
	return c.e.pacer.AskedAt(newSchedule(c.ph.stages, c.ph.burst), at)
}

// keep notes a change. The control is locked.
func (c *Control) keep(at int64, did string, from, to float64) {
	if len(c.changes) < mostChanges {
		c.changes = append(c.changes, ByHand{float64(at) / 1e9, did, from, to})
	}
}

// byHand lists the changes in the phase that ran last.
func (c *Control) byHand() []ByHand {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.changes)
}

// phase sets the phase that runs now; nil: none. What was requested before holds in
// it, too.
func (c *Control) phase(e *engine, ph phase) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.e, c.open, c.ph = e, ph.open, ph
	if e == nil {
		return
	}
	c.changes, c.held = nil, 0
	if c.rate > 0 && ph.open {
		c.keep(0, "rate", e.pacer.AskedAt(newSchedule(ph.stages, ph.burst), 0), c.rate)
	}
	if c.paused.Load() {
		c.keep(0, "pause", c.asked(0), 0)
	}
	if c.stopped.Load() {
		e.stopFor(stopAsked)
	}
	if c.paused.Load() && ph.open {
		e.pacer.Pause()
	}
	if c.rate > 0 && ph.open {
		e.pacer.Limit(c.rate)
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
	if c.e != nil {
		c.held = c.now()
		c.keep(c.held, "pause", c.asked(c.held), 0)
	}
	c.resumed = make(chan struct{})
	c.paused.Store(true)
	if c.e != nil && c.open {
		c.e.pacer.Pause()
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
	if c.e != nil {
		c.keep(c.now(), "resume", 0, c.asked(max(c.held-1, 0)))
	}
	close(c.resumed)
	if c.e != nil && c.open {
		c.e.pacer.Resume()
	}
}

// Paused reports whether the run is paused.
func (c *Control) Paused() bool { return c.paused.Load() }

// SetRate replaces the rate from now on, in requests per second: of stages, and of what
// the target declares. The error is a *UsageError: a closed loop has no rate.
func (c *Control) SetRate(rate float64) error {
	if !(rate > 0) || rate > mostRate || math.IsNaN(rate) {
		return wire.Usagef("a rate must be above 0 and at most %.0f requests per second; pause to send nothing", mostRate)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.e == nil {
		return wire.Usagef("nothing is sent now: set the rate while the load runs")
	}
	if !c.open {
		return wire.Usagef("a closed loop sends as fast as it is answered: it has no rate")
	}
	at := c.now()
	before := at
	if c.paused.Load() { // nothing is requested then
		before = max(c.held-1, 0)
	}
	c.keep(at, "rate", c.asked(before), rate)
	c.rate = rate
	c.set.Store(true)
	c.e.pacer.Limit(rate)
	return nil
}

// Stop ends the run as if its duration were over; its measurements are the result.
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
