package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/destkit/destkit/server/internal/sync/destination"
	"github.com/destkit/destkit/server/internal/sync/ledger"
	"github.com/destkit/destkit/server/internal/sync/pace"
)

// keptCalls is how many calls of one batch the ledger keeps: a destination that
// throttles for an hour is called often.
const keptCalls = 16

// noteCall keeps the id of a call, also of one that failed, so that what became
// of a record can be explained by what went over the wire.
func (d *delivery) noteCall(id string, err error) {
	var call *destination.CallError
	if errors.As(err, &call) {
		id = call.Call
	}
	if id == "" {
		return
	}
	if len(d.calls) == keptCalls {
		d.calls = append(d.calls[:0:0], d.calls[1:]...)
	}
	d.calls = append(d.calls, id)
}

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

// look finds the state as Begin would, without opening a log.
func (bk *booking) look() error {
	found, err := bk.ledger.Survey()
	if errors.Is(err, ledger.ErrBusy) {
		return err
	}
	if err != nil {
		return failed(CodeState, err, "read the state of the sync: %v", err)
	}
	if len(found.Unsettled) > 0 {
		return fmt.Errorf("run %d: %w", found.Unsettled[0], ErrUnsettled)
	}
	bk.before, bk.dry.blank = found.Meta, found.Empty
	bk.dry.reset()
	return nil
}

// noState is a state without entries.
type noState struct{}

// Next implements State.
func (noState) Next() (ledger.Entry, error) { return ledger.Entry{}, io.EOF }

// Close implements State.
func (noState) Close() error { return nil }
