package pace

import (
	"math/rand/v2"
	"sync"
	"time"
)

// ShareOptions make a Share.
type ShareOptions struct {
	// Source is where the shares of all processes come together; required.
	Source Source
	// Now is the clock that pauses are told by, and Runs reports whether it runs by
	// itself, be it ahead of the system's or behind it. While it is frozen, or on
	// its way to another time, the process counts alone by that clock, and nothing
	// is exchanged but limits: whoever moves a clock has the installation for
	// himself. Nil: the system's clock.
	Now  func() time.Time
	Runs func() bool
}

// Share is what one process has of a limit that several keep together. It asks
// the window ahead of the need, from a goroutine that lives as long as a sender
// sends. Without an answer nothing is granted, and so nothing is sent. It is safe
// for parallel use.
type Share struct {
	options ShareOptions

	mu    sync.Mutex
	limit int64
	known bool      // the limit was announced, here or elsewhere
	rest  time.Time // nothing is sent before, by the system's clock

	holder uint64
	chunks []Units   // granted and not let go, by their moments
	ready  int64     // their sum
	open   int64     // let go and not written
	lost   int64     // let go, and lapsed before it was written
	lapsed time.Time // when that was last
	until  time.Time // the end of all that is held
	wall   time.Time // the same by the wall clock, which runs on while a machine sleeps

	sent, stray []Units      // since the last report
	announced   announcement // to be announced
	ask         asking
}

// announcement is what a destination said that the window does not know yet.
type announcement struct {
	limit  int64
	reset  bool
	paused time.Time
}

// NewShare is a share of a limit in units per second, which holds until another
// one is heard of.
func NewShare(limit int64, o ShareOptions) *Share {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Share{options: o, limit: min(max(limit, 1), mostLimit), holder: rand.Uint64(), ask: asking{poke: make(chan struct{}, 1)}}
}

// Announce takes over another limit, in units per second: here at once, and
// everywhere with the next exchanges. 0 and less say nothing.
func (s *Share) Announce(limit int64) {
	if limit <= 0 {
		return
	}
	limit = min(limit, mostLimit)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && limit == s.limit {
		return
	}
	s.limit, s.known, s.announced.limit = limit, true, limit
	s.wake(time.Now())
}

// pause stops everybody until a moment of the options' clock.
func (s *Share) pause(until time.Time) {
	rest := until.Sub(s.options.Now())
	if rest <= 0 || !s.runs() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := time.Now().Add(rest); at.After(s.rest) {
		s.rest, s.announced.paused = at, at
		s.wake(time.Now())
	}
}

// reset forgets what was announced.
func (s *Share) reset(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.known, s.rest = limit, false, time.Time{}
	s.announced = announcement{limit: limit, reset: true}
	s.wake(time.Now())
}

// runs reports whether the window is to be asked.
func (s *Share) runs() bool { return s.options.Runs == nil || s.options.Runs() }

// resting is how much of a pause is left that was announced to any process.
func (s *Share) resting() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(time.Until(s.rest), 0)
}

// rate is the limit in force.
func (s *Share) rate() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit
}

// wait is how long n units must wait, or 0: then take gives them.
func (s *Share) wait(n int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.look(now)
	if rest := s.rest.Sub(now); rest > 0 {
		return rest
	}
	d := s.missing(now, n)
	if d > 0 {
		s.ask.refuse(now, d, n)
		s.wake(now)
	}
	return d
}

// missing is how long it takes until n units are ready, as far as is known.
func (s *Share) missing(now time.Time, n int64) time.Duration {
	if s.ready >= n {
		for _, c := range s.chunks {
			if n -= c.N; n <= 0 {
				return max(c.At.Sub(now), 0)
			}
		}
	}
	return s.ask.answered(now)
}

// take lets n units go, if they are ready.
func (s *Share) take(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.look(now)
	if s.missing(now, n) > 0 {
		return false
	}
	s.open += n
	s.ready -= n
	s.ask.took(now, n)
	for left := n; left > 0; {
		k := min(left, s.chunks[0].N)
		left -= k
		if s.chunks[0].N -= k; s.chunks[0].N == 0 {
			s.chunks = s.chunks[1:]
		}
	}
	s.wake(now)
	return true
}

// written tells that n units which take gave are sent.
func (s *Share) written(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.look(now)
	// They cannot be told apart; that the lost ones come first counts too much
	// rather than too little.
	late := min(s.lost, n)
	s.lost -= late
	held := min(s.open, n-late)
	s.open -= held
	if !s.runs() {
		return
	}
	s.sent = noted(s.sent, now, held)
	s.stray = noted(s.stray, now, n-held)
	s.ask.wrote(s.open, s.ready)
	s.wake(now)
}

// still reports whether n units that were taken at the moment taken or later may
// still be sent: it is asked right before they are. Otherwise they are given up,
// and have to be taken again.
func (s *Share) still(taken time.Time, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look(time.Now())
	if s.lapsed.Before(taken) {
		return true
	}
	s.drop(n)
	return false
}

// giveUp takes n units back that were taken and are not sent.
func (s *Share) giveUp(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(n)
}

// drop counts n units as not on their way, first those that were lost: as with
// written, in the end each is counted once.
func (s *Share) drop(n int64) {
	late := min(s.lost, n)
	s.lost -= late
	s.open -= min(s.open, n-late) // the next report gives them back
}

// look notices that what was held has lapsed: this process stood still, or the
// window did not answer. A frozen process sees it by the monotonic clock, a
// sleeping machine by that on the wall.
func (s *Share) look(now time.Time) {
	if (s.ready > 0 || s.open > 0) && (!now.Before(s.until) || !now.Round(0).Before(s.wall)) {
		s.lose(now)
	}
}

// lose forgets all that is held; the window counts it as sent.
func (s *Share) lose(now time.Time) {
	s.lost += s.open
	s.chunks, s.ready, s.open, s.sent = nil, 0, 0, nil
	s.lapsed = now
	s.holder = rand.Uint64()
}

// noted adds a send to a list that has one entry for each grain of time.
func noted(list []Units, now time.Time, n int64) []Units {
	if n <= 0 {
		return list
	}
	if last := len(list) - 1; last >= 0 && now.Sub(list[last].At) < 0 {
		list[last].N += n
		return list
	}
	return append(list, Units{now.Add(grain), n})
}
