// Package pace decides when requests are due, and hands them to the connections that
// are free by then. It leaves connections, requests and measurements to the
// generator.
package pace

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pacer hands due requests to free connections: one goroutine, whatever the
// number of connections, since a sleep of each would wake late. A connection that
// becomes free while something is due does not wait for it: where the processors
// are full, it would wake late as well.
//
// Late requests are sent as soon as a connection is free, but no faster than
// catchUp times the requested rate: a generator that empties its backlog at once
// would measure its own burst.
type Pacer struct {
	clock   Clock
	plan    *Schedule
	Began   int64 // on the clock
	Until   int64 // no request that is due later is released
	Most    int64 // requests at most; 0: no bound
	catchUp float64
	slack   int64 // how many may be released and are not taken

	// Requests below released are to be sent, those below taken have been taken;
	// ring has the intended times of those between.
	released, taken atomic.Int64
	ring            [ringSize]atomic.Int64
	queued          [ringSize]atomic.Bool // of those: they are due since before a connection was free
	ended           atomic.Bool

	mu   sync.Mutex
	idle []chan struct{} // of the free connections: who gets something is woken
	// rate replaces the rate of the schedule from now on where it is not 0: the
	// target has changed its limit. In thousandths of a request per second.
	rate atomic.Int64
	// paused is when the load was paused, 0 while it is not; changes are the rates that
	// replaced the schedule's, in order. turn guards both.
	paused  int64
	changes []Change

	turn    sync.Mutex   // to release; it guards plan and what follows
	at      int64        // when the next request is due
	allowed int64        // from when on it may be sent
	looked  int64        // of the last look at due requests
	shift   int64        // of the schedule, since it started again
	gap     int64        // between the last two requests that were due
	full    bool         // a backlog that began when all connections were busy is not made up yet
	next    atomic.Int64 // before this moment there is nothing to release
}

// ringSize bounds the requests that are released and not taken; a power of two.
const ringSize = 1 << 12

// tick is the pacer's shortest sleep: waking for every single request would
// cost more than sending it.
const tick = int64(50 * time.Microsecond)

// leeway is by how much the pacer itself may be late without any distance being
// kept, in addition to the time since it last looked, up to oversleep:
// processors are shared, and it may wake less often than it wants to.
const (
	leeway    = int64(time.Millisecond)
	oversleep = int64(20 * time.Millisecond)
)

// longestSleep is how long the pacer may take to see that it is to stop.
const longestSleep = int64(5 * time.Millisecond)

func New(c Clock, s *Schedule, connections int, catchUp float64) *Pacer {
	if catchUp <= 1 {
		catchUp = 2
	}
	p := &Pacer{clock: c, plan: s, catchUp: catchUp, slack: max(1, int64(connections/4)), Until: never}
	p.slack = min(p.slack, ringSize-1)
	if math.IsInf(catchUp, 1) {
		p.slack = ringSize - 1
	}
	p.at = s.next()
	return p
}

// Run releases requests until its time is over or stop is set.
func (p *Pacer) Run(stop *atomic.Bool) {
	defer p.end()
	for !stop.Load() {
		now := p.clock.Now() - p.Began
		p.turn.Lock()
		room := p.slack + p.waiting() - (p.released.Load() - p.taken.Load())
		p.full = p.full || room <= 0 && p.at <= now
		p.release(now, room, p.wake)
		next, gap, over := max(p.at, p.allowed), p.gap, p.over()
		at := p.at
		p.turn.Unlock()
		if now >= p.Until {
			return
		}
		if p.pausing() {
			time.Sleep(time.Duration(longestSleep))
			continue
		}
		if over {
			// The last request has its share of the time like every other.
			if next = min(at, p.Until); now >= next || next == never {
				return
			}
		}
		shortest := tick
		if gap < tick {
			shortest = 2 * tick // several are due at once anyway
		}
		runtime.Gosched() // those who were woken run first, on this processor too
		now = p.clock.Now() - p.Began
		if late := now - at; late > leeway && p.waiting() == 0 {
			// The connections take late requests as they become free (help), and it takes
			// about as long as it is late to make it up: until then no worker waits here. A
			// precise sleep would keep a processor from them.
			time.Sleep(time.Duration(min(late, longestSleep)))
			continue
		}
		precise(min(max(next-now, shortest), longestSleep))
	}
}

// over reports that nothing will be released any more; turn is held.
func (p *Pacer) over() bool {
	return p.at >= p.Until || p.Most > 0 && p.released.Load() >= p.Most
}

// release releases due requests, room at most, and calls wake for each; turn is
// held.
func (p *Pacer) release(now, room int64, wake func()) {
	if p.paused > 0 {
		p.next.Store(never)
		return
	}
	if rate := p.rate.Swap(0); rate > 0 {
		p.changes = append(p.changes, Change{now, float64(rate) / 1000})
		p.plan, p.shift = NewSchedule(constant(float64(rate)/1000), Burst{}), max(now, p.at)
	}
	// Late ones keep a part of their distance to each other, from now on: a stall
	// must not let the time that it took be made up for at once.
	p.allowed = max(p.allowed, max(p.looked, now-oversleep)-leeway)
	p.looked = max(p.looked, now)
	for ; room > 0 && p.at <= now && p.allowed <= now && !p.over(); room-- {
		released := p.released.Load()
		if released-p.taken.Load() >= ringSize {
			break
		}
		p.ring[released&(ringSize-1)].Store(p.Began + p.at)
		p.queued[released&(ringSize-1)].Store(p.full)
		p.released.Store(released + 1)
		wake()
		following := p.following()
		p.gap = following - p.at
		p.allowed = max(p.at, p.allowed) + int64(float64(p.gap)/p.catchUp)
		p.at = following
	}
	p.full = p.full && p.at <= now
	p.next.Store(max(p.at, p.allowed))
}

// help releases one request for a connection that is free, if one is due.
func (p *Pacer) help() bool {
	now := p.clock.Now() - p.Began
	if now < p.next.Load() || p.ended.Load() {
		return false
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	before := p.released.Load()
	p.release(now, 1, func() {})
	return p.released.Load() > before
}

// Limit replaces the rate from now on, in requests per second.
func (p *Pacer) Limit(rate float64) {
	p.rate.Store(int64(rate * 1000))
}

// Change is a rate that replaced another one, at a moment from the start.
type Change struct {
	At   int64
	Rate float64
}

// Pause holds everything back that is not released yet.
func (p *Pacer) Pause() {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.paused == 0 {
		p.paused = max(p.clock.Now()-p.Began, 1)
	}
}

// resume goes on at a moment from the start: requests due in between are left out, as
// if the time had stood still. turn is held.
func (p *Pacer) resume(now int64) {
	if p.paused == 0 {
		return
	}
	stood := max(now-p.paused, 0)
	p.paused = 0
	if p.at != never {
		p.at += stood
	}
	p.shift += stood
	p.next.Store(max(p.at, p.allowed))
}

// Resume ends a pause.
func (p *Pacer) Resume() {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.resume(p.clock.Now() - p.Began)
}

func (p *Pacer) pausing() bool {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.paused > 0
}

// AskedAt is the requested rate at a moment from the start.
func (p *Pacer) AskedAt(stages *Schedule, ns int64) float64 {
	p.turn.Lock()
	defer p.turn.Unlock()
	if p.paused > 0 && ns >= p.paused {
		return 0
	}
	for i := len(p.changes) - 1; i >= 0; i-- {
		if p.changes[i].At <= ns {
			return p.changes[i].Rate
		}
	}
	return stages.RateAt(ns)
}

// Changes are the rates that replaced the schedule's, in order.
func (p *Pacer) Changes() []Change {
	p.turn.Lock()
	defer p.turn.Unlock()
	return p.changes
}

// following is when the next request is due.
func (p *Pacer) following() int64 {
	at := p.plan.next()
	if at == never {
		return never
	}
	return at + p.shift
}

// Unsent counts the requests that were due before a moment, in nanoseconds from
// the start, and were never released. It ends the schedule.
func (p *Pacer) Unsent(end int64) int64 {
	p.turn.Lock()
	defer p.turn.Unlock()
	n, end := int64(0), min(end, p.Until)
	p.resume(end)
	if p.at < end {
		n = p.plan.skip(end - p.shift)
	}
	if p.Most > 0 {
		n = min(n, max(0, p.Most-p.released.Load()))
	}
	for at := p.at; at < end && (p.Most == 0 || p.released.Load()+n < p.Most); at = p.following() {
		n++
	}
	return n + p.released.Load() - p.taken.Load()
}

// waiting is the number of free connections.
func (p *Pacer) waiting() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.idle))
}

// wake hands on that a request was released. The connection that was used last
// is taken first: the others may have been closed meanwhile.
func (p *Pacer) wake() {
	p.mu.Lock()
	var w chan struct{}
	if n := len(p.idle); n > 0 {
		w = p.idle[n-1]
		p.idle = p.idle[:n-1]
	}
	p.mu.Unlock()
	if w != nil {
		w <- struct{}{}
	}
}

// end lets all connections finish.
func (p *Pacer) end() {
	p.ended.Store(true)
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, w := range idle {
		w <- struct{}{}
	}
}

// Take gives the intended time of the next request on the clock; waited means that a
// connection was free before the request was due, and that no backlog is made up which
// began when all were busy. It blocks until there is one, and ok is false when there will
// be none. wake is the connection's own, with room for one.
func (p *Pacer) Take(wake chan struct{}) (intended int64, waited, ok bool) {
	for {
		taken := p.taken.Load()
		if taken < p.released.Load() {
			// Read before it is taken: the slot is not written again until then.
			intended = p.ring[taken&(ringSize-1)].Load()
			queued := p.queued[taken&(ringSize-1)].Load()
			if p.taken.CompareAndSwap(taken, taken+1) {
				return intended, waited && !queued, true
			}
			continue
		}
		if p.ended.Load() {
			return 0, waited, false
		}
		if p.help() {
			continue
		}
		if p.park(wake) {
			<-wake
		}
		waited = true
	}
}

// park puts a connection among the free ones, unless there is work by now.
func (p *Pacer) park(wake chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken.Load() < p.released.Load() || p.ended.Load() {
		return false
	}
	p.idle = append(p.idle, wake)
	return true
}
