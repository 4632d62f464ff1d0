package clock

import (
	"context"
	"fmt"
	"time"
)

// reported bounds the names in a Report; years of minutes would fill memory.
const reported = 1000

// Report is the result of an Advance.
type Report struct {
	From time.Time `json:"from"`
	// To is the moment that was reached: From plus the whole way, unless the
	// call ended early with an error.
	To time.Time `json:"to"`
	// Count is how many functions ran, Ran their names in order, the first
	// 1000 of them.
	Count int      `json:"count"`
	Ran   []string `json:"ran"`
	// Panicked are the names of those that ended in a panic.
	Panicked []string `json:"panicked,omitempty"`
}

// Advance adds d to the offset step by step. Everything that falls due in between runs
// in order (by moment, then by registration), one after the other, each while Now shows
// its own moment; each step waits until nothing runs any more. Real time does not count
// meanwhile: the clock runs on from the end of the way, or stays frozen there. It
// returns when nothing is left, at that end, that could end by itself, as for Settle;
// but a longer wait (Rest) is for another Advance.
//
// Calls wait for one another. A negative d, one that reaches where Set would not
// go and a call from work that it would wait for are refused. When ctx ends the clock stays
// at the moment that it has reached; the error names what still runs.
func (c *Clock) Advance(ctx context.Context, d time.Duration) (Report, error) {
	if d < 0 {
		return Report{}, fmt.Errorf("advance clock: %s is negative; time runs forwards only", d)
	}
	if workOf(ctx, c) != nil {
		return Report{}, fmt.Errorf("advance clock: %w", ErrWithin)
	}
	report, err := c.travel(ctx, d)
	if report == nil {
		return Report{}, fmt.Errorf("advance clock: %w", err)
	}
	if err == nil {
		err = c.wait(ctx, func() bool { return c.quiet() && (c.dozing == c.resting || c.frozen) })
	}
	if err != nil {
		return *report, fmt.Errorf("advance clock: %w", c.blame(err))
	}
	return *report, nil
}

// travel goes the whole way, one call at a time; without a report it has not started.
func (c *Clock) travel(ctx context.Context, d time.Duration) (*Report, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	report, target, err := c.depart(d)
	if err != nil {
		return nil, err
	}
	defer c.arrive() // also when a callback of the clock panics
	return report, c.walk(ctx, target, report)
}

// count adds a function that was started.
func (r *Report) count(name string) {
	if r.Count++; r.Count <= reported {
		r.Ran = append(r.Ran, name)
	}
}

// depart holds the clock at its present moment.
func (c *Clock) depart(d time.Duration) (*Report, time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, time.Time{}, ErrClosed
	}
	from := c.now()
	target := from.Add(d)
	if err := c.reach(target); err != nil {
		return nil, time.Time{}, fmt.Errorf("%s reaches too far: %w", d, err)
	}
	c.stepped, c.at = true, from
	c.report = &Report{From: from, Ran: []string{}}
	return c.report, target, nil
}

// walk goes from one due function to the next.
func (c *Clock) walk(ctx context.Context, target time.Time, report *Report) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := c.wait(ctx, func() bool { return c.running == 0 || c.closed })
		if err != nil {
			return err
		}
		c.mu.Lock()
		switch {
		case c.closed:
			c.mu.Unlock()
			return ErrClosed
		case c.running > 0: // some work has started meanwhile
			c.mu.Unlock()
			continue
		case len(c.queue) == 0 || c.queue[0].at.After(target):
			c.at = target
			c.mu.Unlock()
			return nil
		}
		t := c.queue.pop()
		if t.at.After(c.at) { // overdue functions run now, not back then
			c.at = t.at
		}
		if t.fn != nil {
			report.count(t.name)
		}
		c.start(t)
		c.mu.Unlock()
	}
}

// arrive lets time run on from the moment that was reached.
func (c *Clock) arrive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.To = c.at
	c.stepped, c.report = false, nil
	if !c.frozen {
		c.release(c.at)
	}
	c.look()
	c.tell()
}
