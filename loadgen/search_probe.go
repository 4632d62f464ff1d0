package loadgen

import (
	"context"
	"fmt"
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
	step.Why = p.why(m, rate)
	step.Held = step.Why == ""
	return step, nil
}

// why returns the goal that an attempt has missed, "" for none.
func (p *prober) why(m *measure, rate float64) string {
	r := &Result{}
	r.Load.Rate = rate
	if err := r.take(m); err != nil {
		return err.Error()
	}
	for _, g := range p.goals {
		if g.Check(r); g.Unmeasured {
			return g.Text + ", but no request was answered with results"
		} else if g.Failed {
			return fmt.Sprintf("%s, but it was %.6g", g.Text, g.Got*map[bool]float64{true: 100, false: 1}[g.Share])
		}
	}
	// A request may be under way at the end, on every connection.
	asked := rate*m.seconds() - float64(len(p.s.e.workers))/10
	if rate > 0 && float64(m.requests) < reachedShare*asked {
		return fmt.Sprintf("the rate was not reached: %.6g requests/s", r.RequestsPerSecond)
	}
	return ""
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
