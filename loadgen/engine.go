package loadgen

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/histogram"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/restload"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// engine sends the work of a run: one phase after another, over connections
// that stay.
type engine struct {
	ctx   context.Context // its end breaks every call
	end   *wire.Endpoint
	clock pace.Clock
	seed  uint64
	work  Work
	plan  *plan
	// replicas take turns with end, connection by connection.
	replicas []*wire.Endpoint
	budget   budget

	service     *restload.Work // of a load on a service's API; nil: batches are sent
	connections int            // the most that any phase uses
	acks        *acks          // nil: nothing is verified
	remembered  int            // batches whose keys a connection keeps
	workers     []*worker
	// pool has the keys that were written before a mix of updates and deletes.
	pool struct {
		sync.Mutex
		known []written
	}
	follow   bool // X-RateLimit-Limit of replies changes the rate
	declared targetWords
	limit    atomic.Int64 // as replies said it last
	limits   struct {     // that replies stated one after the other
		sync.Mutex
		changes []LimitChange
		speed   rpc.Speed // as get_sync_speed said it last
		speeds  []SpeedChange
		rest    time.Time // until then nothing is sent: Retry-After
		rests   Rests
	}
	resized  atomic.Pointer[plan] // since get_sync_speed reports another size; nil: plan
	parallel atomic.Int64         // connections that may send; 0: all
	began    atomic.Int64         // of the phase, on the clock
	control  *Control             // nil: none

	// Of the phase that runs:
	stopped atomic.Bool
	quit    chan struct{}
	ending  sync.Once
	reason  atomic.Int32
	claims  atomic.Int64
	cutting atomic.Bool
	cut     atomic.Int64 // calls that the end of the run broke
	pacer   *pace.Pacer
}

// budget bounds the records of a run.
type budget struct {
	most int64 // 0: no bound
	sent atomic.Int64
}

// spend takes n records, or the rest where that is less.
func (b *budget) spend(n int64) int64 {
	if b.most == 0 {
		return n
	}
	for {
		sent := b.sent.Load()
		n := min(n, b.most-sent)
		if n <= 0 {
			return 0
		}
		if b.sent.CompareAndSwap(sent, sent+n) {
			return n
		}
	}
}

// stopReason is why a phase ended.
type stopReason int32

const (
	stopTime stopReason = iota
	stopCount
	stopRecords
	stopKeys
	stopNothing
	stopErrors
	stopInterrupted
	stopAsked
)

var stopWords = [...]string{"duration", "count", "max-records", "keys used up", "nothing left to work on", "too many errors", "interrupted", "stopped"}

func (r stopReason) String() string { return stopWords[r] }

// phase is a part of a run: a closed loop, or an open one with stages.
type phase struct {
	open        bool // by the stages and the burst; else a closed loop
	stages      []Stage
	burst       Burst
	duration    time.Duration // 0: no bound
	count       int64         // requests; 0: no bound
	connections int
	catchUp     float64
	only        *task                 // instead of the mix
	settle      bool                  // of a service: only calls that end what was started
	begun       func()                // called once the pacer is there
	watch       func(*measure, int64) // called after every look at the figures
	// grace is how long calls under way may go on after the end; 0: the timeout.
	grace time.Duration
}

// stopFor ends the phase; the first reason counts.
func (e *engine) stopFor(r stopReason) {
	e.ending.Do(func() {
		e.reason.Store(int32(r))
		e.stopped.Store(true)
		close(e.quit)
	})
}

// rearm forgets how the phase before ended.
func (e *engine) rearm() {
	e.stopped.Store(false)
	e.quit, e.ending, e.pacer = make(chan struct{}), sync.Once{}, nil
	e.reason.Store(int32(stopTime))
}

// limited takes a new limit of the target, in requests per second (spec 8).
func (e *engine) limited(limit int64) {
	if e.limit.Load() == limit || e.limit.Swap(limit) == limit || e.control.fixed() {
		return // as before: the schedule goes on
	}
	e.limits.Lock()
	if len(e.limits.changes) < mostChanges {
		e.limits.changes = append(e.limits.changes, LimitChange{At: float64(e.clock.Now()-e.began.Load()) / 1e9, RateLimit: limit})
	}
	allowed := e.allowed()
	e.limits.Unlock()
	if p := e.pacer; p != nil && e.follow {
		p.Limit(allowed)
	}
}

// rest sends nothing for as long as a throttled reply asks for, as a service does: of 429
// also without Retry-After.
func (e *engine) rest(rep wire.Reply) {
	d, ok := rep.RetryIn(time.Now())
	if !ok && rep.Status == http.StatusTooManyRequests {
		d, ok = unaskedRest, true
	}
	p := e.pacer
	if !ok || d <= 0 || p == nil {
		return
	}
	e.limits.Lock()
	defer e.limits.Unlock()
	from, until := time.Now(), time.Now().Add(d)
	if !until.After(e.limits.rest) {
		return
	}
	if from.Before(e.limits.rest) {
		from = e.limits.rest
	} else {
		e.limits.rests.Times++
	}
	e.limits.rests.Seconds += until.Sub(from).Seconds()
	e.limits.rest = until
	p.Pause()
	time.AfterFunc(d, func() {
		e.limits.Lock()
		defer e.limits.Unlock()
		if !time.Now().Before(e.limits.rest) && (e.control == nil || !e.control.Paused()) {
			p.Resume()
		}
	})
}

// unaskedRest follows a 429 that does not say for how long.
const unaskedRest = time.Second

// mostChanges bounds how many limits are reported.
const mostChanges = 1000

const (
	// look is how often figures are drawn together and deadlines watched.
	look = 100 * time.Millisecond
	// interruptedGrace is how long calls may go on after Ctrl-C.
	interruptedGrace = 2 * time.Second
)

// run runs a phase. The end of ctx ends it early, and its measurements stay.
func (e *engine) run(ctx context.Context, ph phase) *measure {
	e.rearm()
	e.claims.Store(0)
	e.cut.Store(0)
	for len(e.workers) < ph.connections {
		e.workers = append(e.workers, e.newWorker(len(e.workers)))
	}
	active := e.workers[:ph.connections]
	m := newMeasure(e.clock.Now(), ph.duration)
	used := readCPU()
	e.began.Store(m.began)
	e.limits.Lock()
	e.limits.changes, e.limits.speeds = nil, nil
	e.limits.Unlock()
	if len(e.replicas) > 0 {
		for range len(e.replicas) + 1 {
			m.parts = append(m.parts, &part{latency: histogram.New()})
		}
	}
	if e.service != nil {
		for range e.service.Calls {
			m.calls = append(m.calls, &part{latency: histogram.New()})
		}
	}
	var done sync.WaitGroup
	if ph.open {
		p := e.startOpen(&done, active, ph, m.began)
		stages := newSchedule(ph.stages, ph.burst)
		m.asked = func(ns int64) float64 { return p.AskedAt(stages, ns) }
	} else {
		for _, w := range active {
			done.Go(func() { w.closed(ph) })
		}
	}
	if ph.begun != nil {
		ph.begun()
	}
	e.control.phase(e, ph)
	defer e.control.phase(nil, phase{})
	finished := make(chan struct{})
	go func() { done.Wait(); close(finished) }()
	e.attend(ctx, ph, active, m, finished)
	m.collect(active, e.clock.Now())
	if e.pacer != nil {
		m.unsent = e.pacer.Unsent(m.stopped - m.began)
	}
	m.cut, m.reason = e.cut.Load(), stopReason(e.reason.Load())
	m.cpu = readCPU().Since(used)
	m.finish(e.clock.Now())
	return m
}

// startOpen starts the pacer and the connections that it feeds.
func (e *engine) startOpen(done *sync.WaitGroup, active []*worker, ph phase, began int64) *pace.Pacer {
	p := pace.New(e.clock, newSchedule(ph.stages, ph.burst), len(active), ph.catchUp)
	p.Began, p.Most = began, ph.count
	if ph.duration > 0 {
		p.Until = int64(ph.duration)
	}
	e.pacer = p
	for _, w := range active {
		done.Go(func() { w.open(p, ph) })
	}
	done.Go(func() { p.Run(&e.stopped) })
	return p
}

// attend looks after a phase until its connections have finished: it collects,
// watches deadlines, and ends it.
func (e *engine) attend(ctx context.Context, ph phase, active []*worker, m *measure, finished chan struct{}) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	var over <-chan time.Time
	if ph.duration > 0 {
		timer := time.NewTimer(ph.duration)
		defer timer.Stop()
		over = timer.C
	}
	grace := e.end.Transport.Timeout + look
	if ph.grace > 0 {
		grace = ph.grace
	}
	interrupted, quit := ctx.Done(), e.quit
	var cut <-chan time.Time
	for {
		select {
		case <-finished:
			if m.stopped == 0 {
				m.stopped = e.clock.Now()
				if ph.count > 0 {
					e.stopFor(stopCount)
				}
			}
			return
		case <-over:
			e.stopFor(stopTime)
		case <-interrupted:
			interrupted, grace = nil, interruptedGrace
			e.stopFor(stopInterrupted)
			if quit == nil { // it was ending already, and shall end sooner
				cut = time.After(grace)
			}
		case <-quit:
			quit = nil
			m.stopped = e.clock.Now()
			cut = time.After(grace)
		case <-cut:
			e.cutting.Store(true)
			for _, w := range active {
				w.line.Interrupt()
			}
			<-finished
			e.cutting.Store(false)
			return
		case <-ticker.C:
			now := e.clock.Now()
			e.watch(active, now)
			m.collect(active, now)
			if ph.watch != nil {
				ph.watch(m, now)
			}
		}
	}
}

// watch breaks calls that take too long, and lets those look that have waited
// without.
func (e *engine) watch(active []*worker, now int64) {
	limit := int64(e.end.Transport.Timeout)
	for _, w := range active {
		s := w.started.Load()
		switch l, own := w.line.(*wire.Link); {
		case s <= 0:
		case now-s > limit:
			w.breaks.Lock()
			if w.started.CompareAndSwap(s, -1) {
				w.line.Interrupt()
			}
			w.breaks.Unlock()
		case own && now-s > wire.Trusted:
			l.Look()
		}
	}
}

// closed sends one batch after another.
func (w *worker) closed(ph phase) {
	for !w.e.stopped.Load() {
		if w.e.control != nil && !w.e.control.wait(w.e.quit) {
			return
		}
		if ph.count > 0 && w.e.claims.Add(1) > ph.count {
			return
		}
		if !w.sendNext(ph, 0, true) {
			return
		}
	}
}

// open sends what the pacer hands out.
func (w *worker) open(p *pace.Pacer, ph phase) {
	for {
		if !w.maySend() {
			return
		}
		intended, waited, ok := p.Take(w.wake)
		if !ok {
			return
		}
		if !w.sendNext(ph, intended, waited) {
			return
		}
	}
}

// sendNext sends what the connection has to send next.
func (w *worker) sendNext(ph phase, intended int64, waited bool) bool {
	if w.user != nil {
		return w.user.ask(ph, intended, waited)
	}
	return w.send(w.task(ph), intended, waited)
}

func (w *worker) task(ph phase) *task {
	if ph.only != nil {
		return ph.only
	}
	return w.choose()
}

// close ends all connections.
func (e *engine) close() {
	for _, w := range e.workers {
		w.line.Close()
	}
	for _, end := range append([]*wire.Endpoint{e.end}, e.replicas...) {
		if end.Shared != nil {
			end.Shared.(*http.Transport).CloseIdleConnections()
		}
	}
}
