// Package pace owns how fast destinations are called: the records per second of
// a sync, and the requests per second of a connection, which all calls to it
// share, whoever makes them (spec 8).
//
// No sender waits here: a Pacer is given the time, and names the moment of the
// next send. The package refuses to know the content of sends.
package pace

import "time"

const (
	// window is the second that every limit is about (spec 8).
	window = time.Second
	// grain is how exactly moments of sends are remembered: a thousand grains
	// bound the memory of any rate.
	grain = time.Millisecond
	// late is how much later than the truth a send may be counted: its grain, and
	// one more between the count and the wire.
	late = 2 * grain
	// slack is how much earlier than evenly spaced a send may be: without it a
	// high rate would sleep for microseconds.
	slack = 5 * time.Millisecond
)

// Pacer keeps sends evenly spaced and below a rate in every window of one
// second. A send that was taken and is not written yet counts in every window:
// its connection may still have to be made. The zero value has no limit. It is
// not safe for parallel use.
type Pacer struct {
	Rate  int64 // units per second; 0 is no limit
	next  time.Time
	seen  time.Time // the latest moment of a call
	sends []send    // those of the last second, oldest first
	sum   int64     // of sends
	open  int64     // taken, not written
}

// setBack distinguishes a clock that was set back from callers that overtake one
// another between reading it and calling.
func setBack(by time.Duration) bool { return by > window }

// send counts the sends within one grain.
type send struct {
	at time.Time // later than the truth by up to late, never earlier
	n  int64
}

// Wait is how long n units must wait at the moment now. A single send larger
// than the rate waits for an empty window.
func (p *Pacer) Wait(now time.Time, n int64) time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	p.forget(now)
	until := p.next.Add(-slack)
	room := p.Rate - p.sum - p.open
	for i := 0; i < len(p.sends) && room < n; i++ {
		room += p.sends[i].n
		if at := p.sends[i].at.Add(window); at.After(until) {
			until = at
		}
	}
	if room < n && p.open > 0 && !until.After(now) { // it is unknown when it is written
		until = now.Add(slack)
	}
	return max(until.Sub(now), 0)
}

// Take lets n units go at the moment now; Written must follow.
func (p *Pacer) Take(now time.Time, n int64) {
	if now.After(p.next) {
		p.next = now
	}
	if p.Rate > 0 {
		p.next = p.next.Add(time.Duration(n) * window / time.Duration(p.Rate))
	}
	p.open += n
}

// Written counts n units that were taken as sent now: their first byte is.
func (p *Pacer) Written(now time.Time, n int64) {
	p.open = max(p.open-n, 0) // a call that was given up may end as if it were written
	p.forget(now)
	p.sum += n
	at := now.Truncate(grain).Add(late)
	if last := len(p.sends) - 1; last >= 0 && !p.sends[last].at.Before(at) {
		p.sends[last].n += n
		return
	}
	p.sends = append(p.sends, send{at, n})
}

// forget drops sends outside of the window. A clock that was set back makes all of
// it worthless: otherwise a sync would wait for the old time to return. The
// remaining wait keeps its length.
func (p *Pacer) forget(now time.Time) {
	if back := p.seen.Sub(now); setBack(back) {
		p.sends, p.sum = p.sends[:0], 0
		p.next, p.seen = p.next.Add(-back), now
		return
	}
	if now.After(p.seen) {
		p.seen = now
	}
	gone := 0
	for gone < len(p.sends) && !p.sends[gone].at.Add(window).After(now) {
		p.sum -= p.sends[gone].n
		gone++
	}
	if gone > 0 {
		p.sends = append(p.sends[:0], p.sends[gone:]...)
	}
}
