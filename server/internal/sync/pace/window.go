package pace

import (
	"slices"
	"time"
)

const (
	// ahead is how far in advance units are granted, each for a moment of its own:
	// a process asks again long before they are used up, and no time is lost.
	ahead = 200 * time.Millisecond
	// stock is the time whose units all shares together may have ready. As it is
	// less than ahead, whoever asks finds room for what is his, and no one gets less
	// because he comes at the wrong moment.
	stock = 3 * ahead / 4
	// life is how long a share keeps what it was granted without another
	// exchange. It is less than the second after which a changed limit holds, even
	// with all that was granted before.
	life = 2 * ahead
	// coarse is how exactly the window remembers moments of sends. Its memory is
	// bounded, and its row in a database stays short.
	coarse = 4 * time.Millisecond
	// soonest and latest are when a holder that lacks something may come again, and
	// when it has to: a limit that another one has heard of reaches it in time.
	soonest = 10 * time.Millisecond
	latest  = 800 * time.Millisecond
	// queueGrace is how long a place in the queue is kept for a holder beyond the
	// moment at which it was told to come.
	queueGrace = 300 * time.Millisecond
	// mostPause is longer than any pause that is heeded (Retry-After: a minute).
	mostPause = 2 * time.Minute
)

// Window is the last second of a limit over all processes, and what they may
// send next. It is told the time, by one clock alone: that of the database.
//
// It holds to one rule: what is sent at a moment f, and all that is or may still be
// sent later than f less a second, is together within the limit. What was granted
// may be sent until it lapses, so it counts as if it were sent at the end of its
// life, until its holder reports the true moment. The zero value is not of use;
// see NewWindow.
type Window struct {
	limit  int64
	paused time.Time
	next   time.Time // when the next unit is due, evenly spaced
	sends  []send    // those of the last second, oldest first
	holds  []hold
}

// hold is one share.
type hold struct {
	holder uint64
	n      int64     // granted, neither reported as sent nor given back
	until  time.Time // and counted as sent then
	short  int64     // what it lacks; 0: it does not wait
	since  time.Time // when it began to wait
	due    time.Time // it is expected to ask by then
}

// NewWindow is a window in which nothing was sent, with a limit in units per
// second. Nothing is granted before the moment from.
func NewWindow(limit int64, from time.Time) *Window {
	return &Window{limit: min(max(limit, 1), mostLimit), paused: from}
}

// Exchange takes a report at the moment now, and answers it. All moments are of
// the same clock, which runs forwards.
func (w *Window) Exchange(now time.Time, r Report) Grant {
	w.pass(now)
	h := w.settle(now, r)
	w.heed(now, r)
	g := Grant{Limit: w.limit, Paused: w.paused, Lapsed: h == nil}
	if h == nil {
		return g
	}
	h.until = now.Add(life)
	g.Chunks, g.Again = w.grant(now, h, r)
	g.Until = h.until
	if h.n == 0 && h.short == 0 {
		w.drop(h)
	}
	return g
}

// pass lets time pass: shares that were not renewed lapse, what is older than a
// second is forgotten.
func (w *Window) pass(now time.Time) {
	for i := range w.holds { // a clock that was set back must not keep them for ever
		h := &w.holds[i]
		h.until, h.due = sooner(h.until, now.Add(life)), sooner(h.due, now.Add(latest+queueGrace))
	}
	w.holds = slices.DeleteFunc(w.holds, func(h hold) bool {
		if h.n > 0 && !h.until.After(now) {
			w.count(h.until, h.n)
			h.n = 0
			return true
		}
		return h.n == 0 && !h.due.After(now)
	})
	// A clock that was set back makes all of it worthless.
	if last := len(w.sends) - 1; last >= 0 && w.sends[last].at.After(now.Add(window)) {
		w.sends = nil
	}
	if w.next.After(now.Add(window)) {
		w.next = now
	}
	if w.paused.After(now.Add(mostPause)) {
		w.paused = time.Time{}
	}
	w.sends = slices.DeleteFunc(w.sends, func(s send) bool { return !s.at.Add(window).After(now) })
}

// count adds what was sent at a moment, or a little later than it was.
func (w *Window) count(at time.Time, n int64) {
	if up := at.Truncate(coarse); up.Before(at) {
		at = up.Add(coarse)
	}
	i, there := slices.BinarySearchFunc(w.sends, at, func(s send, at time.Time) int { return s.at.Compare(at) })
	if there {
		w.sends[i].n += n
		return
	}
	w.sends = slices.Insert(w.sends, i, send{at, n})
}

// settle takes over what a share says of itself. It gives nil when the share
// believes in more than the window knows of: all of that has lapsed.
func (w *Window) settle(now time.Time, r Report) *hold {
	var sent int64
	for _, list := range [][]Units{r.Sent, r.Stray} {
		for _, u := range list {
			if u.At.After(now) {
				u.At = now // the clocks are compared with an error
			}
			w.count(u.At, u.N)
		}
	}
	for _, u := range r.Sent {
		sent += u.N
	}
	i := slices.IndexFunc(w.holds, func(h hold) bool { return h.holder == r.Holder })
	if i < 0 {
		if sent > 0 || r.Keep > 0 {
			return nil
		}
		w.holds = append(w.holds, hold{holder: r.Holder})
		return &w.holds[len(w.holds)-1]
	}
	h := &w.holds[i]
	back := h.n - sent - r.Keep
	if back < 0 {
		w.count(h.until, h.n)
		w.holds = slices.Delete(w.holds, i, i+1)
		return nil
	}
	w.next = w.next.Add(-w.spaced(back))
	h.n = r.Keep
	return h
}

// heed takes over what a destination has announced.
func (w *Window) heed(now time.Time, r Report) {
	if r.Reset {
		w.paused = time.Time{}
	}
	if r.Paused.After(w.paused) {
		w.paused = r.Paused
	}
	if limit := min(r.Limit, mostLimit); limit > 0 && limit != w.limit {
		w.limit, w.next = limit, now
	}
}

// drop forgets a share that holds nothing and waits for nothing.
func (w *Window) drop(h *hold) {
	w.holds = slices.DeleteFunc(w.holds, func(other hold) bool { return other.holder == h.holder })
}
