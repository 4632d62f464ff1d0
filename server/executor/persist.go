package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/server/destination"
)

// persist makes one call until it succeeds or there is no use in it. It passes
// the limits before each try; n is how many records the call carries. Waits are
// on the injected clock, the deadline of a call is real time. The error is a
// *wholeError when the call failed as often as it may, and a *Failure when the
// run has to end.
func (r *run) persist(ctx context.Context, tries, n int, deadline time.Duration, call func(context.Context) (int64, error)) error {
	var throttle throttle
	for try, reach := 1, 1; ; {
		if err := r.gate.pass(ctx, n); err != nil {
			return err
		}
		limit, err := r.bounded(ctx, deadline, call)
		r.gate.limiter.Announce(max(limit, limitOf(err)))
		if err == nil {
			return nil
		}
		reaction := react(ctx, err)
		if reaction != pause {
			throttle.since = time.Time{}
		}
		switch reaction {
		case canceled:
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return &wholeError{err}
		case giveUp:
			return ofCall(err)
		case pause:
			err = r.pause(&throttle, err)
		case waitFor:
			if reach++; reach > r.backoff.Reach {
				return ofCall(err)
			}
			err = r.rest(ctx, err, reach)
		case again:
			if try++; try > r.limitOfTries(tries, err) {
				return &wholeError{err}
			}
			err = r.rest(ctx, err, try)
		}
		if err != nil {
			return err
		}
	}
}

// throttle is how long 429s have followed one another.
type throttle struct {
	since time.Time
	count int
}

// pause lets the whole connection rest after a 429; the next pass waits for it.
func (r *run) pause(t *throttle, err error) error {
	now := r.e.options.Clock.Now()
	if t.since.IsZero() {
		t.since, t.count = now, 1
	}
	if now.Sub(t.since) >= r.backoff.Throttle {
		f := ofCall(err)
		f.Code = CodeThrottled
		return f
	}
	t.count++
	r.gate.limiter.Pause(now.Add(r.backoff.throttled(err, now, t.count, r.e.options.Random)))
	return nil
}

// limitOfTries: a connection that breaks is given longer than a destination
// that answers, unless the batch is split already. It may come back.
func (r *run) limitOfTries(tries int, err error) int {
	var call *destination.CallError
	if tries > 1 && errors.As(err, &call) && call.Outcome == destination.OutcomeNetwork {
		return max(tries, r.backoff.Reach)
	}
	return tries
}

// limitOf is the X-RateLimit-Limit of a failed call: any reply may carry it
// (spec 8).
func limitOf(err error) int64 {
	var call *destination.CallError
	if errors.As(err, &call) {
		return call.RateLimit
	}
	return 0
}

// rest waits before a try, for as long as the destination asks where it does.
func (r *run) rest(ctx context.Context, failure error, try int) error {
	d, asked := r.backoff.retryAfter(failure, r.e.options.Clock.Now())
	if !asked {
		d = r.backoff.before(try, r.e.options.Random)
	}
	if err := r.e.options.Clock.Sleep(ctx, d); err != nil {
		return fmt.Errorf("wait for another try: %w", err)
	}
	return nil
}

// bounded makes the call with its deadline. A run that is cancelled lets calls
// that are on their way end for a moment: their verdicts are worth more than
// the time.
func (r *run) bounded(ctx context.Context, deadline time.Duration, call func(context.Context) (int64, error)) (int64, error) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(r.e.options.Grace, cancel)
		context.AfterFunc(own, func() { timer.Stop() })
	})()
	return call(destination.Paced(own))
}
