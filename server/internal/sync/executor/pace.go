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

// pass waits until n records may be sent in one request.
func (g *gate) pass(ctx context.Context, n int) error {
	for {
		d := g.try(int64(n))
		if d <= 0 {
			return ctx.Err()
		}
		if err := g.wait(ctx, d); err != nil {
			return err
		}
	}
}

// wait lets d pass. Between two batches the run is at work: it ends by itself as long
// as time runs. Pauses after a 429 may come again and again for an hour.
func (g *gate) wait(ctx context.Context, d time.Duration) error {
	if g.limiter.Rest(g.clock.Now()) > 0 {
		return g.clock.Rest(ctx, d)
	}
	return g.clock.Doze(ctx, d)
}

func (g *gate) try(n int64) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.limiter.Take(g.clock.Now(), &g.records, n)
}

// written notes that a send with n records is on its way.
func (g *gate) written(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limiter.Written(g.clock.Now(), &g.records, int64(n))
}
