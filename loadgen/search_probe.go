package loadgen

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// prober is the trial that sends for real.
type prober struct {
	s       *session
	ctx     context.Context
	goals   []Threshold
	measure *measure // of the last try
}

func (p *prober) closed(batch, connections int, d time.Duration) (SearchStep, error) {
	return p.try("closed", 0, batch, connections, d)
}

func (p *prober) rate(rate float64, batch, connections int, d time.Duration, kind string) (SearchStep, error) {
	return p.try(kind, rate, batch, connections, d)
}

func (p *prober) try(kind string, rate float64, batch, connections int, d time.Duration) (SearchStep, error) {
	if err := p.s.resize(batch); err != nil {
		return SearchStep{}, err
	}
	ph := phase{open: rate > 0, stages: constant(rate), duration: d, connections: connections, catchUp: p.s.o.CatchUp}
	ph.watch = p.s.watcher("search", 0, ph)
	m := p.s.e.run(p.ctx, ph)
	p.measure = m
	step := SearchStep{
		Kind: kind, Rate: rate, BatchSize: batch, Connections: connections, Errors: m.errors(),
		Reached: float64(m.inside.requests) / m.seconds(), P99: times(m.latency).P99,
	}
	if m.reason != stopTime {
		return step, fmt.Errorf("search ended: %s", m.reason)
	}
	if m.records > 0 {
		step.taken = step.Reached * float64(m.inside.good) / float64(max(m.inside.records, 1))
	}
	step.busy = m.service.Mean() * float64(m.service.TotalCount()) / 1e9 / m.seconds()
	step.Why, step.refused = p.why(m, rate)
	step.Held = step.Why == ""
	return step, nil
}

// why returns the goal that an attempt has missed, "" for none; refused, where it is about
// errors.
func (p *prober) why(m *measure, rate float64) (text string, refused bool) {
	r := &Result{}
	r.Load.Rate = rate
	if err := r.take(m); err != nil {
		return err.Error(), false
	}
	for _, g := range p.goals {
		if g.Check(r); g.Unmeasured {
			return g.Text + ", but no request was answered with results", true
		} else if g.Failed {
			return fmt.Sprintf("%s, but it was %.6g", g.Text, g.Got*map[bool]float64{true: 100, false: 1}[g.Share]), g.Metric == "errors"
		}
	}
	if rate == 0 {
		return "", false
	}
	first, last := m.quarters()
	// What was sent within the latency that the first requests had may end after the try.
	if due := rate * (m.seconds() - first/1000); float64(m.inside.requests) < reachedShare*due-1 {
		return fmt.Sprintf("the rate was not reached: %.6g requests/s were completed", r.RequestsPerSecond), false
	}
	if last-first > leastRise && (last-first)/1000 > (1-reachedShare)/2*m.seconds()*0.75 {
		return fmt.Sprintf("the latency rose through the try, p50 from %.3g to %.3g ms: requests queue up", first, last), false
	}
	return "", false
}

// leastRise is how many milliseconds of latency no hiccup explains.
const leastRise = 5

// quarters are the medians of the latency, in milliseconds, in the first and the last quarter
// of a measurement, whose middles are three quarters of it apart. A stall that is shorter
// than half a quarter changes neither.
func (m *measure) quarters() (first, last float64) {
	var all []float64
	for _, p := range m.points {
		if p.Max > 0 && p.At <= m.seconds()+1e-9 {
			all = append(all, p.P50)
		}
	}
	quarter := len(all) / 4
	if quarter == 0 {
		return 0, 0
	}
	median := func(list []float64) float64 { return slices.Sorted(slices.Values(list))[len(list)/2] }
	return median(all[:quarter]), median(all[len(all)-quarter:])
}

// resize changes the batches of a run; its keys go on.
func (s *session) resize(size int) error {
	e := s.e
	if e.plan.size == size {
		return nil
	}
	work := s.o.Work
	work.BatchSize = size
	d := e.declared
	p, err := newPlan(work, &d, e.plan.keys, s.o.Seed, syncRun(s.o.Seed))
	if err != nil {
		return err
	}
	for i, g := range p.grounds {
		for _, t := range p.tasks {
			if t.keyspace == g {
				t.keyspace = e.plan.grounds[i]
			}
		}
	}
	p.grounds = e.plan.grounds
	e.plan = p
	for _, w := range e.workers {
		w.known, w.stocks, w.latest = nil, map[*task]*stock{}, nil
	}
	return nil
}

// search runs a search; its result has the figures of the confirming run.
func (s *session) search(ctx context.Context) error {
	o := s.o.Search
	p := &prober{s: s, ctx: ctx, goals: o.Goals}
	most := int(min(s.e.declared.Speed.MaximumBatchSize, 10_000))
	found, err := o.find(p, s.e.plan.size, max(most, s.e.plan.size), s.o.Connections)
	s.result.Search = found
	if p.measure != nil {
		if takeErr := s.result.take(p.measure); takeErr != nil {
			return takeErr
		}
	}
	s.result.Load.BatchSize, s.result.Load.Connections, s.result.Load.Rate = found.BatchSize, found.Connections, found.Rate
	if err != nil {
		s.remark("%v; what was found until then is in the result", err)
	}
	if !found.Confirmed {
		s.remark("no rate was confirmed")
	}
	return nil
}
