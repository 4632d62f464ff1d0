package executor

import (
	"context"
	"sync"
	"time"

	"github.com/destkit/destkit/server/clock"
)

const (
	// window is the second that every limit is about (spec 8).
	window = time.Second
	// grain is how exactly moments of sends are remembered: a thousand grains
	// bound the memory of any rate.
	grain = time.Millisecond
	// slack is how much earlier than evenly spaced a send may be: without it a
	// high rate would sleep for microseconds.
	slack = 5 * time.Millisecond
)

// pacer keeps sends evenly spaced and below a rate in every window of one
// second. It does not sleep: it names the moment of the next send.
type pacer struct {
	rate  int64 // units per second; 0 is no limit
	next  time.Time
	sends []send // those of the last second, oldest first
	sum   int64
}

// send is what was sent within one grain.
type send struct {
	at time.Time // the end of the grain: later than the truth, never earlier
	n  int64
}

// wait is how long n units must wait at the moment now. A single send larger
// than the rate waits for an empty window.
func (p *pacer) wait(now time.Time, n int64) time.Duration {
	if p.rate <= 0 {
		return 0
	}
	p.forget(now)
	until := p.next.Add(-slack)
	room := p.rate - p.sum
	for i := 0; i < len(p.sends) && room < n; i++ {
		room += p.sends[i].n
		if at := p.sends[i].at.Add(window); at.After(until) {
			until = at
		}
	}
	return max(until.Sub(now), 0)
}

// take counts n units as sent now.
func (p *pacer) take(now time.Time, n int64) {
	if p.rate <= 0 {
		return
	}
	p.forget(now)
	if now.After(p.next) {
		p.next = now
	}
	p.next = p.next.Add(time.Duration(n) * window / time.Duration(p.rate))
	p.sum += n
	at := now.Truncate(grain).Add(grain)
	if last := len(p.sends) - 1; last >= 0 && !p.sends[last].at.Before(at) {
		p.sends[last].n += n
		return
	}
	p.sends = append(p.sends, send{at, n})
}

// forget drops what left the window. A clock that was set back makes all of it
// worthless: otherwise a sync would wait for the old time to return.
func (p *pacer) forget(now time.Time) {
	if last := len(p.sends) - 1; last >= 0 && p.sends[last].at.After(now.Add(window)) {
		p.sends, p.sum, p.next = p.sends[:0], 0, now
		return
	}
	gone := 0
	for gone < len(p.sends) && !p.sends[gone].at.Add(window).After(now) {
		p.sum -= p.sends[gone].n
		gone++
	}
	p.sends = append(p.sends[:0], p.sends[gone:]...)
}

// DefaultRateLimit is the connection-wide limit in requests per second (spec 8).
const DefaultRateLimit = 50_000

// limiter is the connection-wide limit, shared by all runs on a connection.
type limiter struct {
	mu       sync.Mutex
	requests pacer
	paused   time.Time // nothing is sent before: a 429 came (facts A6)
}

// announce takes the limit of a reply over; it binds from the next send.
func (l *limiter) announce(limit int64) {
	if limit <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests.rate = limit
}

// pause stops the connection until a moment.
func (l *limiter) pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.paused) {
		l.paused = until
	}
}

// gate is what a send of one run must pass: the pause and the requests of the
// connection, and the records per second of the sync (spec 8).
type gate struct {
	clock   *clock.Clock
	limiter *limiter

	mu      sync.Mutex
	records pacer
}

// pass waits until n records may be sent in one request. Both limits are taken
// together, so that waiting for one does not use the other up.
func (g *gate) pass(ctx context.Context, n int) error {
	for {
		d := g.try(int64(n))
		if d <= 0 {
			return ctx.Err()
		}
		if err := g.clock.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

func (g *gate) try(n int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limiter.mu.Lock()
	defer g.limiter.mu.Unlock()
	now := g.clock.Now()
	d := max(g.limiter.paused.Sub(now), g.limiter.requests.wait(now, 1), g.records.wait(now, n))
	if d <= 0 {
		g.limiter.requests.take(now, 1)
		g.records.take(now, n)
	}
	return d
}

// connections are the limiters of all connections that are in use.
type connections struct {
	mu  sync.Mutex
	all map[int64]*limiter
}

// of gives the limiter of a connection; it stays known when nobody uses it, as
// the last limit that was announced still holds.
func (c *connections) of(id int64) *limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[int64]*limiter{}
	}
	l := c.all[id]
	if l == nil {
		l = &limiter{requests: pacer{rate: DefaultRateLimit}}
		c.all[id] = l
	}
	return l
}
