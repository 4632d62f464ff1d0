package pace

import (
	"sync"
	"time"
)

// DefaultLimit is the connection-wide limit in requests per second (spec 8).
const DefaultLimit = 50_000

// Limiter is the limit of one connection, shared by all calls on it: planning,
// tests and the batches of every run. It is safe for parallel use.
type Limiter struct {
	mu       sync.Mutex
	requests Pacer
	paused   time.Time // nothing is sent before: a 429 came
	seen     time.Time // the latest moment of a call
}

// look notices a clock that was set back: the rest of a pause keeps its length. The
// lock is held.
func (l *Limiter) look(now time.Time) {
	if back := l.seen.Sub(now); setBack(back) {
		l.paused = l.paused.Add(-back)
		l.seen = now
	}
	if now.After(l.seen) {
		l.seen = now
	}
}

// NewLimiter is a limiter of the default rate.
func NewLimiter() *Limiter { return &Limiter{requests: Pacer{Rate: DefaultLimit}} }

// Announce takes over the limit that a reply names, in requests per second; it
// binds from the next send. 0 and less say nothing.
func (l *Limiter) Announce(limit int64) {
	if limit <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests.Rate = limit
}

// Pause stops the connection until a moment.
func (l *Limiter) Pause(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(l.paused) {
		l.paused = until
	}
}

// Rest is how much of a pause is left at the moment now.
func (l *Limiter) Rest(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(now)
	return max(l.paused.Sub(now), 0)
}

// Reset forgets the endpoint's limits, for a connection that has got another
// one. Records sent in this second still count.
func (l *Limiter) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests.Rate, l.paused = DefaultLimit, time.Time{}
}

// Take lets one request with n records go at the moment now, or returns how long
// to wait. Whoever may go calls Written, once, as soon as the first byte is
// written or never will be. records is the pacer of the sync, nil for a call
// that carries none: both limits are taken together, so that waiting for one
// does not use the other up.
func (l *Limiter) Take(now time.Time, records *Pacer, n int64) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(now)
	wait = max(l.paused.Sub(now), l.requests.Wait(now, 1))
	if records != nil {
		wait = max(wait, records.Wait(now, n))
	}
	if wait > 0 {
		return wait
	}
	l.requests.Take(now, 1)
	if records != nil {
		records.Take(now, n)
	}
	return 0
}

// Written reports that a request which Take let go was sent at the moment now.
func (l *Limiter) Written(now time.Time, records *Pacer, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests.Written(now, 1)
	if records != nil {
		records.Written(now, n)
	}
}
