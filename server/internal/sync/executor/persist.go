package executor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/sync/destination"
)

// caller makes the calls of a run: within the limits of its connection, and again as
// long as there is use in it.
type caller struct {
	e       *Executor
	gate    *gate
	backoff Backoff
}

// persist retries one call until it succeeds or a retry cannot help. It passes the
// limits before each attempt; n is how many records the call carries. Waits are on
// the injected clock, the deadline of an attempt is real time. The error is a
// *wholeError when the call failed as often as it may, and a *Failure when the run
// has to end.
func (c *caller) persist(ctx context.Context, attempts, n int, deadline time.Duration, call func(context.Context) (int64, error)) error {
	return (&persistent{by: c, ctx: ctx, attempts: attempts, records: n, deadline: deadline}).do(call)
}

// persistent is one call from its first attempt to its last. Attempts of a Sender that makes
// them over HTTP are those of go-retryablehttp, which calls Check, Backoff and Prepare.
// Failures that only show in a response with the status 200 (an error object, a result of
// another shape: most failures, spec 7.2) are seen here, and so are those of Senders without
// HTTP; both are called again from here, on the same account.
type persistent struct {
	by       *caller
	ctx      context.Context // of the caller; each attempt has its own
	attempts int
	records  int
	deadline time.Duration
	// before and after are called around each attempt; they may be nil.
	before func()
	after  func(failure error)
	// rested waits before each attempt of a call that passes the limits by itself;
	// nil: this call takes them.
	rested func(context.Context) error

	cancel      context.CancelFunc // the attempt under way
	written     func()
	failure     error // of the last attempt
	reaction    reaction
	made, reach int // counted attempts so far, and those that reached nothing
	throttle    throttle
	ended       error // why there is no further attempt
}

var _ destination.Attempts = (*persistent)(nil)

func (p *persistent) do(call func(context.Context) (int64, error)) error {
	p.made, p.reach = 1, 1
	for ctx, err := p.begin(); ; ctx, err = p.Prepare(p.Backoff()) {
		if err != nil {
			return err
		}
		limit, failure := call(ctx)
		if p.ended != nil { // its last attempt is finished already
			return p.ended
		}
		p.finish(limit, failure)
		if failure == nil {
			return nil
		}
		if again, err := p.check(failure); !again {
			return err
		}
	}
}

// begin takes an attempt from the limits and gives the context under which it is
// made.
func (p *persistent) begin() (ctx context.Context, err error) {
	if p.rested != nil {
		err = p.rested(p.ctx)
	} else {
		err = p.by.gate.pass(p.ctx, p.records)
	}
	if err != nil {
		return nil, err
	}
	ctx, p.cancel = p.by.bounded(p.ctx, p.deadline)
	p.written = func() {}
	if p.rested == nil {
		ctx = p.paced(ctx)
	}
	if p.before != nil {
		p.before()
	}
	return ctx, nil
}

// paced lets the limits follow an attempt on its way: they are about its first
// byte, and a connection that must be made first takes time.
func (p *persistent) paced(ctx context.Context) context.Context {
	p.written = sync.OnceFunc(func() { p.by.gate.written(p.records) })
	return destination.Attempted(destination.AtFirstByte(ctx, p.written), p)
}

// finish is the end of an attempt; limit is what its response announced.
func (p *persistent) finish(limit int64, failure error) {
	p.written()
	p.cancel()
	if p.after != nil {
		p.after(failure)
	}
	p.by.gate.limiter.Announce(max(limit, limitOf(failure)))
}

// Check implements destination.Attempts.
func (p *persistent) Check(failed *destination.CallError) (again bool, err error) {
	p.finish(0, failed)
	again, p.ended = p.check(failed)
	return again, p.ended
}

// check reports whether there is another attempt, or why not. A 429 counts for
// nothing.
func (p *persistent) check(failure error) (again bool, _ error) {
	p.failure, p.reaction = failure, react(p.ctx, failure)
	if p.reaction != pause {
		p.throttle = throttle{}
	}
	switch p.reaction {
	case canceled:
		if cause := context.Cause(p.ctx); cause != nil {
			return false, cause
		}
		return false, &wholeError{failure}
	case giveUp:
		return false, ofCall(failure)
	case waitFor:
		if p.reach++; p.reach > p.by.backoff.Reach {
			return false, ofCall(failure)
		}
	case pause:
		if !p.throttle.goesOn(p.by.e.options.Clock.Now(), p.by.backoff.Throttle) {
			f := ofCall(failure)
			f.Code = CodeThrottled
			return false, f
		}
	default:
		if p.made++; p.made > p.by.attemptLimit(p.attempts, failure) {
			return false, &wholeError{failure}
		}
	}
	return true, nil
}

// Backoff implements destination.Attempts: the destination's Retry-After, or an
// exponential wait.
func (p *persistent) Backoff() time.Duration {
	c := p.by
	now, random := c.e.options.Clock.Now(), c.e.options.Random
	if p.reaction == pause {
		return c.backoff.throttled(p.failure, now, p.throttle.count, random)
	}
	if d, asked := c.backoff.retryAfter(p.failure, now); asked {
		return d
	}
	if p.reaction == waitFor {
		return c.wait(p.reach)
	}
	return c.wait(p.made)
}

// wait is how long to wait before an attempt without a requested delay.
func (c *caller) wait(try int) time.Duration {
	d := c.backoff.before(try, c.e.options.Random)
	if c.e.options.Deviations.SteadyBackoff {
		d = c.backoff.First
	}
	return d
}

// Prepare implements destination.Attempts. After a 429 the whole connection rests;
// taking the attempt from the limits waits for it.
func (p *persistent) Prepare(wait time.Duration) (ctx context.Context, err error) {
	defer func() { p.ended = err }()
	clock := p.by.e.options.Clock
	if p.reaction == pause {
		p.by.gate.limiter.Pause(clock.Now().Add(wait))
	} else if err := clock.Rest(p.ctx, wait); err != nil {
		return nil, fmt.Errorf("wait for another attempt: %w", err)
	}
	return p.begin()
}

// throttle is how long 429s have followed one another.
type throttle struct {
	since time.Time
	count int
}

// goesOn counts a 429, and reports whether they may go on.
func (t *throttle) goesOn(now time.Time, most time.Duration) bool {
	if t.since.IsZero() {
		t.since, t.count = now, 1
	}
	if now.Before(t.since) { // the clock may have been set back
		t.since = now
	}
	t.count++
	return now.Sub(t.since) < most
}

// attemptLimit: a connection that breaks is given longer than a destination
// that answers, unless the batch is split already. It may come back.
func (c *caller) attemptLimit(attempts int, err error) int {
	var call *destination.CallError
	if attempts > 1 && errors.As(err, &call) && call.Outcome == destination.OutcomeNetwork {
		return max(attempts, c.backoff.Reach)
	}
	return attempts
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

// bounded is the context of an attempt. A run that is cancelled lets calls that are
// on their way end for a moment: their verdicts are worth more than the time.
func (c *caller) bounded(ctx context.Context, deadline time.Duration) (context.Context, context.CancelFunc) {
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(c.e.options.Grace, cancel)
		context.AfterFunc(own, func() { timer.Stop() })
	})
	return own, func() { stop(); cancel() }
}
