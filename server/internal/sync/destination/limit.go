package destination

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

// restUnasked is how long a connection rests after a 429 that does not say.
const restUnasked = time.Second

// MostRest caps every Retry-After: a destination must not park a connection for
// ever.
const MostRest = time.Minute

type pacedKey struct{}

// Paced marks calls whose maker has taken them from the Limiter of their connection itself, and
// reports to it what their replies announce: a run, which takes requests and records together.
// All other calls do both by themselves.
func Paced(ctx context.Context) context.Context {
	return context.WithValue(ctx, pacedKey{}, true)
}

// Limiter is what all calls of a destination share (spec 8). An id of 0 shares
// nothing.
func (g *Gate) Limiter(id int64) *pace.Limiter {
	if id == 0 {
		return pace.NewLimiter()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.limiters[id]
	if l == nil {
		l = pace.NewLimiter()
		g.limiters[id] = l
	}
	return l
}

// pass waits until a call of planning or of a test may be made. Limits are about the
// service's clock; but a client waits for the answer of such a call, so it waits in
// real time, never longer than it may take itself, and a clock that is stopped
// meanwhile neither holds nor counts it. written is to be called with the first byte
// of the call, and at its end.
func (c *caller) pass(ctx context.Context, method string) (written func(), failed *CallError) {
	most := c.gate.timeout(method)
	for last := (time.Time{}); ctx.Value(pacedKey{}) == nil; {
		now := c.gate.options.Now()
		wait := c.limiter.Take(now, nil, 0)
		switch {
		case wait <= 0:
			return sync.OnceFunc(func() { c.limiter.Written(c.gate.options.Now(), nil, 0) }), nil
		case now.Equal(last):
			return func() {}, nil
		case wait > most:
			return nil, &CallError{Method: method, Outcome: OutcomeLimit, Message: fmt.Sprintf(
				"the connection has to rest for another %s: the destination answered 429, or its limit of requests per second is used up; try again later",
				seconds(wait))}
		}
		if c.gate.options.Pause(ctx, wait) != nil {
			return nil, &CallError{Method: method, Outcome: OutcomeCanceled, Message: "the call was cancelled"}
		}
		last, most = now, most-wait
	}
	return func() {}, nil
}

// heed passes a reply's limits to the limiter: any reply may carry a limit,
// and a 429 holds all calls of the connection (spec 8).
func (c *caller) heed(ctx context.Context, x *Exchange) {
	if ctx.Value(pacedKey{}) != nil {
		return
	}
	c.limiter.Announce(rateLimit(x))
	if x.Status != http.StatusTooManyRequests {
		return
	}
	now := c.gate.options.Now()
	rest, asked := RetryAfter(x.Header.Get("Retry-After"), now)
	if !asked {
		rest = restUnasked
	}
	c.limiter.Pause(now.Add(rest))
}

// RetryAfter reads a header of that name: seconds or a date (RFC 9110), at most
// MostRest. ok is false where it cannot be understood.
func RetryAfter(text string, now time.Time) (d time.Duration, ok bool) {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(MostRest/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), MostRest), true
	}
	return 0, false
}
