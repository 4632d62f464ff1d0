package executor

import (
	"context"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/sync/clock"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// gate is what a send of one run must pass: the pause and the requests of the
// connection, and the records per second of the sync (spec 8).
type gate struct {
	clock   *clock.Clock
	limiter *pace.Limiter

	mu      sync.Mutex
	records pace.Pacer
}

// pass waits until n records may be sent in one request. It says when they were
// let go, in real time: what is late may have lapsed.
func (g *gate) pass(ctx context.Context, n int) (taken time.Time, err error) {
	for {
		taken = time.Now()
		d := g.try(int64(n))
		if d <= 0 {
			return taken, ctx.Err()
		}
		if err := g.wait(ctx, d); err != nil {
			return taken, err
		}
	}
}

// shortly is how long the answer of the other processes takes at most.
const shortly = time.Second

// wait lets d pass. Between two batches the run is at work: it ends by itself as long
// as time runs. What is asked of other processes comes in real time, but for pauses
// after a 429, which may come again and again for an hour.
func (g *gate) wait(ctx context.Context, d time.Duration) error {
	switch {
	case g.limiter.Rest(g.clock.Now()) > 0:
		return g.clock.Rest(ctx, d)
	case d > shortly:
	case g.limiter.Shared():
		return clock.Sleep(ctx, d)
	}
	return g.clock.Doze(ctx, d)
}

// confirm waits again where what was let go has lapsed: this process stood still
// meanwhile, and others may have sent in its place.
func (g *gate) confirm(ctx context.Context, taken time.Time, n int) {
	for {
		g.mu.Lock()
		still := g.limiter.Still(taken, &g.records, int64(n))
		g.mu.Unlock()
		if still {
			return
		}
		var err error
		if taken, err = g.pass(ctx, n); err != nil {
			return // the call ends with its context
		}
	}
}

func (g *gate) try(n int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limiter.Take(g.clock.Now(), &g.records, n)
}

// written tells that a send with n records is on its way.
func (g *gate) written(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limiter.Written(g.clock.Now(), &g.records, int64(n))
}

// connections are limiters for an executor that is given none.
type connections struct {
	mu  sync.Mutex
	all map[int64]*pace.Limiter
}

// of gives the limiter of a connection; it stays known when no run uses it, as
// the last limit that was announced still holds.
func (c *connections) of(id int64) *pace.Limiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[int64]*pace.Limiter{}
	}
	l := c.all[id]
	if l == nil {
		l = pace.NewLimiter()
		c.all[id] = l
	}
	return l
}
