package executor

import (
	"cmp"
	"errors"
	"time"

	"github.com/destkit/destkit/server/internal/sync/destination"
)

// Backoff sets the number of attempts and the waits between them. Zero fields
// take the defaults in brackets. All waits are times of the injected clock.
type Backoff struct {
	First time.Duration // before the second try (1 s); doubled from try to try
	Most  time.Duration // the longest wait (60 s), of a Retry-After too
	// Tries of a batch as a whole before it is split (3), and of a destination
	// that cannot be reached before the run fails (6).
	Attempts, Reach int
	// Rounds is how often a refused record is sent in one run (3).
	Rounds int
	// Throttle is how long 429s may follow one another before the run fails
	// (1 h).
	Throttle time.Duration
}

func (b Backoff) withDefaults() Backoff {
	b.First = cmp.Or(b.First, time.Second)
	b.Most = cmp.Or(b.Most, time.Minute)
	b.Attempts = cmp.Or(b.Attempts, 3)
	b.Reach = cmp.Or(b.Reach, 6)
	b.Rounds = cmp.Or(b.Rounds, 3)
	b.Throttle = cmp.Or(b.Throttle, time.Hour)
	return b
}

// before is the wait before try number try, from 2: exponential, with up to a
// quarter taken off by chance, so that parallel batches do not come back at
// the same moment.
func (b Backoff) before(try int, chance func() float64) time.Duration {
	d := b.First
	for i := 2; i < try && d < b.Most; i++ {
		d *= 2
	}
	d = min(d, b.Most)
	return d - time.Duration(chance()*float64(d)/4)
}

// retryAfter reads the header of that name off a failed call: seconds or a date
// (RFC 9110). The wait is capped: a destination must not park a run for ever.
func (b Backoff) retryAfter(err error, now time.Time) (d time.Duration, ok bool) {
	var call *destination.CallError
	if !errors.As(err, &call) {
		return 0, false
	}
	d, ok = destination.RetryAfter(call.RetryAfter, now)
	return min(d, b.Most), ok
}

// throttled is how long a connection rests after a 429: its Retry-After, or
// the backoff of the attempt where that is missing or invalid.
func (b Backoff) throttled(err error, now time.Time, try int, chance func() float64) time.Duration {
	if d, ok := b.retryAfter(err, now); ok {
		return max(d, b.First/16)
	}
	return b.before(try, chance)
}
