package pace

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// settle is how long a share waits for what was just let go to be written,
	// before it reports: at a low limit the exact moment is what counts.
	settle = 2 * time.Millisecond
	// retryFirst and retryMost bound the time between two exchanges that fail.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second
)

// asking is when a share asks, and for how much.
type asking struct {
	poke    chan struct{} // wakes the goroutine
	running bool
	planned time.Time // when the goroutine looks again

	demand  time.Time // there is a sender at least until then
	refused bool      // a sender had to wait since the last report
	taken   int64     // since then
	least   int64     // the most that was taken at once since then
	emptied time.Time // when it began to run out of units since then

	reported time.Time // the last report
	wanted   int64     // to have ready, at that time
	full     int64     // was ready after it
	open     int64     // on the way, at that time
	again    time.Time // nothing more is to be had before
	fails    int       // in a row
	retry    time.Time
}

// refuse notes that a sender waits for d.
func (a *asking) refuse(now time.Time, d time.Duration, n int64) {
	a.demand = later(a.demand, now.Add(d+ahead/2))
	a.refused, a.least = true, max(a.least, n)
}

// took notes that n units are let go.
func (a *asking) took(now time.Time, n int64) {
	a.demand = later(a.demand, now.Add(ahead))
	a.taken, a.least = a.taken+n, max(a.least, n)
}

// wrote notes that all but open units are written. What the window was told to be
// on its way may have held back what is wanted now.
func (a *asking) wrote(open, ready int64) {
	if open == 0 && ready == 0 && a.open > 0 {
		a.open, a.again = 0, time.Time{}
	}
}

// answered is how long a sender waits who gets nothing now.
func (a *asking) answered(now time.Time) time.Duration {
	switch {
	case a.fails > 0:
		return retryFirst
	case a.again.After(now):
		return a.again.Sub(now) + settle
	}
	return settle
}

// low reports whether so many ready units call for more.
func (a *asking) low(ready int64) bool { return ready <= a.full/2 || ready < a.least }

// appetite is how many units to have ready: those of the time ahead, at the
// speed of the time since the last report. Who had to wait wants more.
func (a *asking) appetite(now time.Time, limit int64) int64 {
	if !a.demand.After(now) {
		return 0
	}
	least := max(a.least, 1)
	since := max(now.Sub(a.reported), soonest)
	want := least + int64(float64(a.taken)*1.25*float64(ahead)/float64(since))
	if a.refused {
		want = max(want, 2*a.wanted)
	}
	want = min(want, unitsIn(stock, limit)+least)
	return want - want%least
}

// due is when the window is to be asked next, if there is anything to tell it or to
// be wanted from it.
func (s *Share) due(now time.Time) (at time.Time, is bool) {
	a := &s.ask
	if a.fails > 0 && !a.demand.After(now) {
		return at, false // no sender waits for an answer
	}
	add := func(t time.Time) {
		if !is || t.Before(at) {
			at, is = t, true
		}
	}
	hungry := a.demand.After(now) && a.low(s.ready)
	if s.announced != (announcement{}) {
		add(now)
	}
	if s.runs() {
		if hungry {
			soon := a.again
			if s.open > 0 {
				soon = later(soon, a.emptied.Add(settle))
			}
			add(soon)
		}
		if s.ready > 0 || s.open > 0 || len(s.sent) > 0 || len(s.stray) > 0 {
			add(a.reported.Add(ahead))
		}
	}
	if a.fails > 0 {
		at = later(at, a.retry)
	}
	return at, is
}

// wake starts the goroutine, or wakes it when it would sleep too long.
func (s *Share) wake(now time.Time) {
	a := &s.ask
	if a.emptied.IsZero() && a.low(s.ready) {
		a.emptied = now
	}
	at, is := s.due(now)
	switch {
	case !is:
	case !a.running:
		a.running = true
		go s.run()
	case at.Before(a.planned):
		a.planned = time.Time{}
		select {
		case a.poke <- struct{}{}:
		default:
		}
	}
}

// run exchanges with the window until there is nothing to tell it.
func (s *Share) run() {
	for {
		s.mu.Lock()
		now := time.Now()
		at, is := s.due(now)
		s.ask.planned = at
		if !is {
			s.ask.running = false
			s.mu.Unlock()
			return
		}
		if d := at.Sub(now); d > 0 {
			s.mu.Unlock()
			select {
			case <-s.ask.poke:
			case <-time.After(d):
			}
			continue
		}
		r := s.report(now)
		s.ask.planned = time.Time{} // it looks afterwards
		s.mu.Unlock()
		g, err := s.options.Source.Exchange(context.Background(), r)
		s.mu.Lock()
		s.heed(now, r, g, err)
		s.mu.Unlock()
	}
}

// report is what there is to tell. What is ready beyond the need is given back.
func (s *Share) report(now time.Time) Report {
	s.look(now)
	a := &s.ask
	want := a.appetite(now, s.limit)
	s.shed(s.ready - want)
	r := Report{
		Holder: s.holder, Sent: s.sent, Stray: s.stray, Keep: s.ready + s.open, Ready: s.ready,
		Want: max(want-s.ready, 0), Least: a.least, Limit: s.announced.limit, Reset: s.announced.reset, Paused: s.announced.paused,
	}
	if s.known {
		r.Known = s.limit
	}
	s.sent, s.stray, s.announced = nil, nil, announcement{}
	a.reported, a.wanted, a.open, a.again = now, want, s.open, time.Time{}
	a.refused, a.taken, a.least, a.emptied = false, 0, 0, time.Time{}
	return r
}

// shed gives n units back, those first that are due last.
func (s *Share) shed(n int64) {
	for n > 0 {
		last := &s.chunks[len(s.chunks)-1]
		k := min(n, last.N)
		n, s.ready = n-k, s.ready-k
		if last.N -= k; last.N == 0 {
			s.chunks = s.chunks[:len(s.chunks)-1]
		}
	}
}

// heed takes over what the window answered to the report of the moment began.
func (s *Share) heed(began time.Time, r Report, g Grant, err error) {
	now := time.Now()
	if err != nil {
		s.missed(now, r)
		return
	}
	a := &s.ask
	a.fails = 0
	if s.announced.limit == 0 {
		s.limit, s.known = g.Limit, true
	}
	if !s.announced.reset && s.announced.paused.IsZero() {
		s.rest = g.Paused
	}
	switch {
	case r.Holder != s.holder: // lapsed meanwhile
	case g.Lapsed:
		s.lose(now)
	default:
		s.until, s.wall = g.Until, began.Round(0).Add(g.Until.Sub(began))
		s.chunks = append(s.chunks, g.Chunks...)
		slices.SortStableFunc(s.chunks, func(a, b Units) int { return a.At.Compare(b.At) })
		s.ready += total(g.Chunks)
		a.full = s.ready
		if a.again = g.Again; !g.Again.IsZero() { // processes that wait do not come all at once
			a.again = g.Again.Add(rand.N(settle))
		}
		a.wrote(s.open, s.ready)
	}
}

// missed goes on after an exchange of which it is unknown whether it was one. What
// was held is left to lapse.
func (s *Share) missed(now time.Time, r Report) {
	s.ask.fails++
	pause := min(retryFirst<<min(s.ask.fails-1, 10), retryMost)
	s.ask.retry = now.Add(pause/2 + rand.N(pause))
	s.lose(now)
	s.stray = slices.DeleteFunc(append(r.Stray, s.stray...), func(u Units) bool { return now.Sub(u.At) > window })
	if s.announced.reset { // what was heard before is nothing any more
		return
	}
	if s.announced.limit == 0 {
		s.announced.limit = r.Limit
	}
	s.announced.reset, s.announced.paused = r.Reset, later(s.announced.paused, r.Paused)
}
