package executor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/destkit/destkit/server/destination"
)

// persist makes one call until it succeeds or there is no use in it. It passes
// the limits before each try; n is how many records the call carries. Waits are
// on the injected clock, the deadline of a call is real time. The error is a
// *wholeError when the call failed as often as it may, and a *Failure when the
// run has to end.
func (r *run) persist(ctx context.Context, tries, n int, deadline time.Duration, call func(context.Context) (int64, error)) error {
	var taken time.Time
	pass := func(ctx context.Context) (err error) {
		taken, err = r.gate.pass(ctx, n)
		return err
	}
	if err := pass(ctx); err != nil {
		return err
	}
	c := &persistent{run: r, tries: tries, deadline: deadline, try: 1, reach: 1}
	c.pass = pass
	// The limits are about the first byte of a try: a connection that must be made
	// first takes time.
	c.call = func(ctx context.Context) (int64, error) {
		written := sync.OnceFunc(func() { r.gate.written(n) })
		defer written()
		return call(destination.Paced(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn:      func(httptrace.GotConnInfo) { r.gate.confirm(ctx, taken, n) },
			WroteHeaders: written,
		})))
	}
	return c.do(ctx)
}

// persistent is one call from its first try to its last, under
// go-retryablehttp. A try is a round trip to it: the whole call, with its
// answer read and judged, since most failures stand in the body of a 200 (spec
// 7.2) and each try is a request with an id of its own (spec 4.2).
type persistent struct {
	run      *run
	tries    int
	deadline time.Duration
	pass     func(context.Context) error // the limits, before another try
	call     func(context.Context) (limit int64, err error)

	failure    error // of the last try
	reaction   reaction
	try, reach int // counted tries so far, and those that reached nobody
	throttle   throttle
}

// anywhere stands for the endpoint, whose URL is a secret and no business of
// the loop (spec 5.2.3).
var anywhere = &url.URL{Scheme: "https", Host: "destination"}

func (p *persistent) do(ctx context.Context) error {
	client := retryablehttp.Client{
		HTTPClient: &http.Client{Transport: p}, RetryMax: math.MaxInt, // check counts
		CheckRetry: p.check, Backoff: noBackoff, PrepareRetry: p.prepare,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	request := (&http.Request{Method: http.MethodPost, URL: anywhere, Header: http.Header{}}).WithContext(ctx)
	reply, err := client.Do(&retryablehttp.Request{Request: request})
	if err != nil {
		return err
	}
	return reply.Body.Close()
}

// noBackoff leaves all waiting to prepare: the library sleeps in real time, and
// believes any Retry-After.
func noBackoff(time.Duration, time.Duration, int, *http.Response) time.Duration { return 0 }

// RoundTrip is one try.
func (p *persistent) RoundTrip(request *http.Request) (*http.Response, error) {
	if allowed := p.run.job.Allowed; allowed != nil {
		if p.failure = allowed(request.Context()); p.failure != nil {
			return nil, p.failure
		}
	}
	limit, err := p.run.bounded(request.Context(), p.deadline, p.call)
	p.run.gate.limiter.Announce(max(limit, limitOf(err)))
	if p.failure = err; err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
}

// check says whether there is another try, or why not. A 429 counts for nothing.
func (p *persistent) check(ctx context.Context, _ *http.Response, err error) (retry bool, _ error) {
	if err == nil {
		return false, nil
	}
	p.reaction = react(ctx, p.failure)
	if p.reaction != pause {
		p.throttle = throttle{}
	}
	switch p.reaction {
	case canceled:
		if cause := context.Cause(ctx); cause != nil {
			return false, cause
		}
		return false, &wholeError{p.failure}
	case giveUp:
		return false, ofCall(p.failure)
	case waitFor:
		if p.reach++; p.reach > p.run.backoff.Reach {
			return false, ofCall(p.failure)
		}
	case again:
		if p.try++; p.try > p.run.limitOfTries(p.tries, p.failure) {
			return false, &wholeError{p.failure}
		}
	}
	return true, nil
}

// prepare waits before another try: for what the destination asks or what the
// backoff says, and then for the limits.
func (p *persistent) prepare(request *http.Request) (err error) {
	ctx := request.Context()
	switch p.reaction {
	case pause:
		err = p.run.pause(ctx, &p.throttle, p.failure)
	case waitFor:
		err = p.run.rest(ctx, p.failure, p.reach)
	default:
		err = p.run.rest(ctx, p.failure, p.try)
	}
	if err != nil {
		return err
	}
	return p.pass(ctx)
}

// throttle is how long 429s have followed one another.
type throttle struct {
	since time.Time
	count int
}

// pause lets the whole connection rest after a 429; the next pass waits for it.
func (r *run) pause(ctx context.Context, t *throttle, err error) error {
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
	rest := r.backoff.throttled(err, now, t.count, r.e.options.Random)
	if r.e.options.Deviations.RestsAlone {
		return r.e.options.Clock.Sleep(ctx, rest)
	}
	r.gate.limiter.Pause(now.Add(rest))
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
		if r.e.options.Deviations.SteadyBackoff {
			d = r.backoff.First
		}
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
	return call(own)
}
