package loadgen

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// SpeedChange is what get_sync_speed said when it was asked again, and from when on it
// was followed, in seconds from the start of the measurement.
type SpeedChange struct {
	At               float64 `json:"at_seconds"`
	BatchSize        int64   `json:"maximum_batch_size"`
	Parallel         int64   `json:"maximum_parallel_batches"`
	RecordsPerSecond int64   `json:"maximum_records_per_second"`
	// NotFollowed is what of it the load could not follow, and why; "": nothing.
	NotFollowed string `json:"not_followed,omitempty"`
}

const (
	// askSpeedEvery is how often get_sync_speed is called again: a service calls it for
	// every run, and a long load represents several.
	askSpeedEvery = 30 * time.Second
	// heldBack is how often a connection that may not send looks whether it may.
	heldBack = 20 * time.Millisecond
)

// current is the plan that new batches are of.
func (e *engine) current() *plan {
	if p := e.resized.Load(); p != nil {
		return p
	}
	return e.plan
}

// allowed is the rate that the target's latest words allow, in requests per second.
// limits is held.
func (e *engine) allowed() float64 {
	d := e.declared
	d.Speed = e.limits.speed
	return declaredRate(d, e.limit.Load(), e.current().size)
}

// maySend waits until a connection is one of those that the target takes at once; false:
// the phase has ended.
func (w *worker) maySend() bool {
	for {
		if most := w.e.parallel.Load(); most == 0 || int64(w.number) < most {
			return true
		}
		timer := time.NewTimer(heldBack)
		select {
		case <-timer.C:
		case <-w.e.quit:
			timer.Stop()
			return false
		}
	}
}

// askSpeed calls get_sync_speed again and again until ctx ends, and follows it.
func (s *session) askSpeed(ctx context.Context) {
	client, watch, done := planningClient(s.e.end, s.o.Target.Token, s.o.Target.Headers)
	defer done()
	ticker := time.NewTicker(s.o.AskSpeed)
	defer ticker.Stop()
	failed := false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		speed, err := client.GetSyncSpeed(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && (speed.MaximumBatchSize < 1 || speed.MaximumParallelBatches < 1 || speed.MaximumRecordsPerSecond < 1):
			err = wire.Newf(wire.KindResults, "the three numbers must be 1 or more")
		case err != nil:
			err = explainPlanning(s.e.end, err)
		}
		if err != nil {
			if !failed {
				s.later.say("get_sync_speed was asked again, and the speed from before is kept: " + wire.MessageOf(err))
			}
			failed = true
			continue
		}
		if watch.Limit > 0 {
			s.e.limited(watch.Limit)
		}
		s.sped(speed)
	}
}

// sped follows the present result of get_sync_speed.
func (s *session) sped(speed rpc.Speed) {
	e := s.e
	e.limits.Lock()
	defer e.limits.Unlock()
	if speed == e.limits.speed || e.control.fixed() {
		return
	}
	change := SpeedChange{
		At: float64(e.clock.Now()-e.began.Load()) / 1e9, BatchSize: speed.MaximumBatchSize, Parallel: speed.MaximumParallelBatches,
		RecordsPerSecond: speed.MaximumRecordsPerSecond,
	}
	var not []string
	e.parallel.Store(speed.MaximumParallelBatches)
	if why := s.followSize(speed.MaximumBatchSize); why != "" {
		not = append(not, why)
	}
	if speed.MaximumParallelBatches > e.limits.speed.MaximumParallelBatches &&
		min(speed.MaximumParallelBatches, ServiceParallel) > int64(s.o.Connections) && !s.chosenConnections {
		not = append(not, "maximum_parallel_batches: the load has made as many connections as were declared before")
	}
	e.limits.speed = speed
	change.NotFollowed = strings.Join(not, "; ")
	if len(e.limits.speeds) < mostChanges {
		e.limits.speeds = append(e.limits.speeds, change)
	}
	if p := e.pacer; p != nil {
		p.Limit(e.allowed())
	}
	s.later.say(change.text())
}

// later holds the notes of other goroutines: only one calls Note.
type later struct {
	mu    sync.Mutex
	lines []string
}

func (l *later) say(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// tell passes the notes on.
func (s *session) tell() {
	s.later.mu.Lock()
	lines := s.later.lines
	s.later.lines = nil
	s.later.mu.Unlock()
	for _, line := range lines {
		if s.o.Note != nil {
			s.o.Note(line)
		}
	}
}

// text is the change in a line.
func (c SpeedChange) text() string {
	text := "from " + seconds1(c.At) + " s on " + quantity.Grouped(c.RecordsPerSecond) + " records/s in " + quantity.Counted(c.Parallel, "batch") + " of " + quantity.Grouped(c.BatchSize) + " at once"
	if c.NotFollowed != "" {
		text += " (not followed: " + c.NotFollowed + ")"
	}
	return "get_sync_speed says another speed: " + text
}

// followSize makes batches of another size; it returns why not, "" where it does.
func (s *session) followSize(most int64) (why string) {
	e := s.e
	size := int(min(most, 10_000))
	if asked := s.o.Work.BatchSize; asked > 0 {
		size = min(asked, int(min(most, mostBatch)))
	}
	if size == e.current().size {
		return ""
	}
	if e.remembered > 0 || e.acks != nil || s.o.Work.Data != nil {
		return "maximum_batch_size: mixes, repeated keys, data files and verified loads keep their batches"
	}
	work, d := s.o.Work, e.declared
	work.BatchSize = size
	p, err := newPlan(work, &d, e.plan.keys, s.o.Seed, syncRun(s.o.Seed))
	if err != nil {
		return "maximum_batch_size: " + err.Error()
	}
	for _, t := range p.tasks { // the keys go on
		t.keyspace = e.plan.grounds[slices.Index(p.grounds, t.keyspace)]
	}
	p.grounds = e.plan.grounds
	e.resized.Store(p)
	return ""
}

// seconds1 writes seconds with one digit behind the point.
func seconds1(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) }
