package executor

import (
	"slices"
	"sync"

	"github.com/destkit/destkit/server/internal/sync/pace"
)

// runGate is what all parts of a run pass that are sent by this process, and the run
// itself where it was cut. Those of other processes have another one, and share the
// records per second with it (spec 8).
type runGate struct {
	gate
	users int
}

// join gives the gate of a run that is cut, until leave.
func (e *Executor) join(run, connection, perSecond int64) *gate {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := e.gates[run]
	if g == nil {
		g = &runGate{gate: gate{clock: e.options.Clock, limiter: e.options.Limiter(connection)}}
		if e.options.Records != nil {
			g.records.Share = pace.NewShare(perSecond, pace.ShareOptions{
				Source: e.options.Records(run), Now: e.options.Clock.Now, Runs: e.options.Clock.Runs,
			})
		}
		if e.gates == nil {
			e.gates = map[int64]*runGate{}
		}
		e.gates[run] = g
	}
	g.users++
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.records.Rate = perSecond; g.records.Share != nil {
		g.records.Share.Announce(perSecond)
	}
	return &g.gate
}

// leave forgets the gate that nobody passes any more. What it has sent is told to the
// other processes nevertheless, and what it holds is given back.
func (e *Executor) leave(run int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.gates[run]; g != nil {
		if g.users--; g.users == 0 {
			delete(e.gates, run)
		}
	}
}

// join has the run pass the gate of its parts, which others may have sent a moment
// ago: also where it goes on as a whole.
func (r *run) join() {
	if r.e.options.Parts == nil || r.joined {
		return
	}
	r.joined = true
	r.gate = r.e.join(r.job.Run, r.job.Connection, r.speed.MaximumRecordsPerSecond)
}

func (r *run) leave() {
	if r.joined {
		r.e.leave(r.job.Run)
	}
}

// places is how many batches of a part may be on their way at once while these parts
// work, each of which has an equal share. A share never becomes smaller when a part
// ends. So the shares are together within the limit also where one part has heard
// of the end of another and the next one has not.
func (p *PartJob) places(working []int) int {
	all, n, before := int(p.Speed.MaximumParallelBatches), 1, 0
	for _, number := range working {
		if number != p.Number {
			n++
		}
		if number < p.Number {
			before++
		}
	}
	if before < all%n {
		return all/n + 1
	}
	return all / n
}

// Beside tells a part which parts of its step still work: what the others leave of
// the batches at once is for those. The zero value is ready for use by one part.
type Beside struct {
	mu      sync.Mutex
	working []int
	heard   func(working []int)
}

// Tell hands on the numbers of the parts that have not ended, its own among them. What
// is told may be old, and told again, but not wrong: a part that has ended never
// works again in this step.
func (b *Beside) Tell(working []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working = working
	if b.heard != nil {
		b.heard(working)
	}
}

// hear calls heard for what was told and what will be, until stop.
func (b *Beside) hear(heard func(working []int)) (stop func()) {
	if b == nil {
		return func() {}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.heard = heard; b.working != nil {
		heard(b.working)
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.heard = nil
	}
}

// siblings are the parts of a step that work in one process.
type siblings struct {
	mu      sync.Mutex
	working []int
	each    map[int]*Beside
}

func newSiblings(jobs []PartJob) *siblings {
	s := &siblings{each: map[int]*Beside{}}
	for i := range jobs {
		s.working = append(s.working, jobs[i].Number)
		s.each[jobs[i].Number] = new(Beside)
	}
	return s
}

func (s *siblings) of(number int) *Beside { return s.each[number] }

// ended tells the others.
func (s *siblings) ended(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.working = slices.DeleteFunc(slices.Clone(s.working), func(n int) bool { return n == number })
	for _, n := range s.working {
		s.each[n].Tell(s.working)
	}
}
