package pace

import (
	"slices"
	"time"
)

// grant gives a share what it wants, as far as its turn and the limit allow, and
// says when to ask for the rest. h is one of w.holds.
func (w *Window) grant(now time.Time, h *hold, r Report) (chunks []Units, again time.Time) {
	waited := h.since
	if h.short == 0 {
		waited = now
	}
	h.short, h.since = 0, time.Time{}
	if r.Want <= 0 {
		return nil, time.Time{}
	}
	least := max(r.Least, 1)
	fair := w.fair(h, least)
	n := min(r.Want, fair-r.Ready)
	if n -= n % least; n <= 0 { // it has its part, the rest is for others
		return nil, now.Add(ahead / 4)
	}
	before := w.before(h, waited)
	chunks = w.plan(now, before, n, least, now.Add(ahead))
	got := total(chunks)
	if got > 0 {
		last := chunks[len(chunks)-1]
		h.n += got
		w.next = last.At.Add(w.spaced(last.N - before))
		waited = now
	}
	switch {
	case got == n && r.Want > n:
		return chunks, now.Add(ahead / 4)
	case got == n:
		return chunks, time.Time{}
	}
	h.short, h.since = n-got, waited
	again = w.worth(now, before, least)
	h.due = again.Add(queueGrace)
	return chunks, again
}

// fair is how much a share may have ready: its part of what the limit allows in
// the time that is granted ahead. Whoever sends faster asks more often, so nothing
// is lost when others need less.
func (w *Window) fair(own *hold, least int64) int64 {
	shares := int64(1)
	for i := range w.holds {
		if other := &w.holds[i]; other.holder != own.holder && (other.n > 0 || other.short > 0) {
			shares++
		}
	}
	part := unitsIn(stock, w.limit) / shares
	return max(part-part%least, least)
}

// before is what others lack who wait for longer: it is left for them.
func (w *Window) before(own *hold, waited time.Time) (n int64) {
	for i := range w.holds {
		if other := &w.holds[i]; other.holder != own.holder && other.short > 0 && other.since.Before(waited) {
			n += other.short
		}
	}
	return n
}

// worth is when a holder that is short finds something: some time before the unit
// it waits for is due. What others have not reported yet may be free sooner.
func (w *Window) worth(now time.Time, before, least int64) time.Time {
	at := now.Add(ahead)
	if next := w.plan(now, 0, least, least, now.Add(time.Hour)); len(next) > 0 {
		at = next[0].At.Add(w.spaced(before) - ahead)
	}
	for i := range w.holds {
		if w.holds[i].n > 0 {
			at = sooner(at, now.Add(ahead))
		}
	}
	return sooner(later(at, now.Add(soonest)), now.Add(latest))
}

// plan lays n units out from now to the moment end, as far as they have room:
// evenly spaced, in chunks of a few milliseconds, each of at least so many at
// once, and behind those that are left for others.
func (w *Window) plan(now time.Time, before, n, least int64, end time.Time) (chunks []Units) {
	marks, sum := w.marks()
	sum += before
	at := later(later(now, w.next), w.paused).Add(w.spaced(before))
	step := unitsIn(coarse, w.limit)
	step = max(step-step%least, least)
	for n >= least {
		for len(marks) > 0 && !marks[0].at.Add(window).After(at) {
			sum -= marks[0].n
			marks = marks[1:]
		}
		room := w.limit - sum
		if least > w.limit && sum == 0 { // larger than the limit: it has a second to itself
			room = least
		}
		if room < least {
			if len(marks) == 0 {
				return chunks
			}
			at = marks[0].at.Add(window)
			continue
		}
		if at.After(end) {
			return chunks
		}
		k := min(n, step, room)
		k -= k % least
		chunks = append(chunks, Units{at, k})
		n, sum = n-k, sum+k
		at = at.Add(w.spaced(k))
	}
	return chunks
}

// marks are the moments at which what was sent, or may be, counts; oldest first.
func (w *Window) marks() (marks []send, sum int64) {
	marks = slices.Clone(w.sends)
	for i := range w.holds {
		if h := &w.holds[i]; h.n > 0 {
			marks = append(marks, send{h.until, h.n})
		}
	}
	slices.SortStableFunc(marks, func(a, b send) int { return a.at.Compare(b.at) })
	for _, m := range marks {
		sum += m.n
	}
	return marks, sum
}

// spaced is the time that n units take up.
func (w *Window) spaced(n int64) time.Duration {
	return time.Duration(n) * window / time.Duration(w.limit)
}

// unitsIn is how many units a limit allows in a part of a second.
func unitsIn(d time.Duration, limit int64) int64 {
	return limit * int64(d/time.Millisecond) / int64(window/time.Millisecond)
}

func total(chunks []Units) (n int64) {
	for _, u := range chunks {
		n += u.N
	}
	return n
}

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
