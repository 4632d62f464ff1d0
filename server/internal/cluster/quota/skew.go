package quota

import (
	"sync"
	"time"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

const (
	// drift is how fast two clocks may come apart, one part in so many.
	drift = 1000
	// slop is how far they may come apart between an exchange and the moments that
	// it tells of, which lie within half a second.
	slop = time.Second / 2 / drift
)

// skew is how far the database's clock is ahead of the monotonic clock of this
// process, as far as exchanges have told: each shows the moment of the database
// between two of this process. What the clock on the wall shows does not matter.
type skew struct {
	base time.Time

	mu        sync.Mutex
	at        time.Duration // since base
	low, high time.Duration // of the database's clock, since 1970
	known     bool
}

// span is a skew that is known with an error.
type span struct {
	base      time.Time
	low, high time.Duration
}

// local is a moment of this process.
func (s *skew) local(t time.Time) time.Duration { return t.Sub(s.base) }

// learn takes in that the database's clock stood at now between two moments of
// this process. A clock that was set, or a machine that slept, makes all worthless
// that was known before.
func (s *skew) learn(asked, answered time.Duration, now time.Time) span {
	s.mu.Lock()
	defer s.mu.Unlock()
	stood := time.Duration(now.UnixNano())
	low, high := stood-answered, stood-asked
	if s.known {
		apart := (answered - s.at).Abs() / drift
		if l, h := max(low, s.low-apart), min(high, s.high+apart); l <= h {
			low, high = l, h
		}
	}
	s.low, s.high, s.at, s.known = low, high, answered, true
	return span{s.base, low - slop, high + slop}
}

// there gives a report the database's moments, none of them earlier than it was.
func (b span) there(r pace.Report) pace.Report {
	at := func(t time.Time) time.Time { return time.Unix(0, int64(t.Sub(b.base)+b.high)).UTC() }
	r.Sent, r.Stray = moved(r.Sent, at), moved(r.Stray, at)
	if !r.Paused.IsZero() {
		r.Paused = at(r.Paused)
	}
	return r
}

// here gives a grant this process's moments: none may be used too early, and none
// is kept too long.
func (b span) here(g pace.Grant) pace.Grant {
	from := func(t time.Time) time.Time { return b.base.Add(time.Duration(t.UnixNano()) - b.low) }
	g.Chunks = moved(g.Chunks, from)
	if !g.Paused.IsZero() {
		g.Paused = from(g.Paused)
	}
	if !g.Again.IsZero() {
		g.Again = from(g.Again)
	}
	g.Until = b.base.Add(time.Duration(g.Until.UnixNano()) - b.high)
	return g
}

func moved(list []pace.Units, to func(time.Time) time.Time) []pace.Units {
	to2 := make([]pace.Units, len(list))
	for i, u := range list {
		to2[i] = pace.Units{At: to(u.At), N: u.N}
	}
	return to2
}
