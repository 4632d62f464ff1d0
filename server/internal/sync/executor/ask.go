package executor

import (
	"context"
	"math"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

// Ask makes the planning calls of a run, all in one call of fn, with the retries
// that its other calls get: a destination may fail any call (spec 4.2). Each
// planning call has its own deadline and passes the limit of the connection by
// itself. The error is that of the last try, or of ctx.
func (e *Executor) Ask(ctx context.Context, connection int64, fn func(ctx context.Context) error) error {
	limiter := e.options.Limiter(connection)
	by := &caller{e: e, backoff: e.options.Backoff, gate: &gate{clock: e.options.Clock, limiter: limiter}}
	c := &persistent{
		by: by, ctx: ctx, attempts: by.backoff.Attempts, deadline: math.MaxInt64,
		rested: func(ctx context.Context) error { return e.rested(ctx, limiter) },
	}
	err := c.do(func(ctx context.Context) (int64, error) { return 0, fn(ctx) })
	if err != nil && c.failure != nil && ctx.Err() == nil {
		return c.failure
	}
	return err
}

// rested waits for the end of the pause that a 429 has brought.
func (e *Executor) rested(ctx context.Context, limiter *pace.Limiter) error {
	for {
		rest := limiter.Rest(e.options.Clock.Now())
		if rest <= 0 {
			return ctx.Err()
		}
		if err := e.options.Clock.Rest(ctx, rest); err != nil {
			return err
		}
	}
}
