package loadgen

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Run loads a target. It returns a Result also when it was interrupted or
// aborted; it holds the measurements until then. The error is a *UsageError
// where nothing was sent because of the options, any other where the target
// could not be reached or a file not be written.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if o.Service != nil {
		return runService(ctx, o)
	}
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, err
	}
	// Text from outside was redacted on arrival; this is for the names in other
	// places.
	defer func() { s.e.end.Hidden.Value(s.result) }()
	defer s.e.close()
	if most := s.e.declared.Speed.MaximumBatchSize; s.e.follow && int64(s.o.Work.BatchSize) > most {
		return nil, wire.Usagef("batch size %d: as declared it is at most %d, the maximum_batch_size; a closed loop or a rate can exceed it", s.o.Work.BatchSize, most)
	}
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	if err := s.journal.begin(s.written(), s.e.plan); err != nil {
		return nil, err
	}
	if err := s.prime(ctx); err != nil {
		return s.result, err
	}
	if err := s.wait(ctx); err != nil && s.prepared == nil {
		return s.result, err
	}
	switch {
	case s.prepared != nil && (ctx.Err() != nil || s.prepared.reason == stopAsked):
		err = s.unmeasured()
	case s.o.Search != nil:
		err = s.search(ctx)
	default:
		err = s.load(ctx)
	}
	if err != nil {
		return s.result, err
	}
	s.result.Keys = s.written()
	if s.o.Verify != nil {
		s.verify(ctx)
	}
	if s.o.Cleanup {
		s.result.Cleanup = s.cleanup(ctx)
	}
	return s.result, s.journal.end(s.result)
}

// phase is the requested load.
func (s *session) phase(name string, duration time.Duration) phase {
	o := s.o
	ph := phase{open: !o.Closed, stages: o.Stages, burst: o.Burst, duration: duration, connections: o.Connections, catchUp: o.CatchUp}
	ph.watch = s.watcher(name, duration, ph)
	return ph
}

// primingBatches is how many whole batches an object gets before updates and deletes.
func (s *session) primingBatches() int64 {
	size := int64(s.e.plan.size)
	return (int64(s.o.Work.Prime) + size - 1) / size
}

// fits refuses a bound of the records that the records written first use up.
func (s *session) fits() error {
	if !s.e.plan.primed || s.o.MaxRecords == 0 {
		return nil
	}
	first := s.primingBatches() * int64(s.e.plan.size) * int64(len(s.e.plan.grounds))
	if s.o.MaxRecords > first {
		return nil
	}
	return wire.Usagef("max-records %d: nothing would be left to %s, since %s are written first, in whole batches of %s",
		s.o.MaxRecords, names(s.result.Load.Operations)[0], quantity.Count(first, "record"), quantity.Count(s.e.plan.size, "record"))
}

// prime writes the records that a mix of updates and deletes works on.
func (s *session) prime(ctx context.Context) error {
	p := s.e.plan
	if !p.primed {
		return nil
	}
	for _, g := range p.grounds {
		t, err := p.primer(s.o.Work, g, s.o.Seed)
		if err != nil {
			return err
		}
		batches := s.primingBatches()
		s.e.remembered = int(batches)
		m := s.e.run(ctx, phase{count: batches, connections: s.o.Connections, only: t, watch: s.watcher("prepare", 0, phase{})})
		if s.prepared = m; ctx.Err() != nil || m.reason == stopAsked {
			return nil
		}
		if m.good == 0 {
			why := "no record was acknowledged"
			if all := m.sortedTallies(); len(all) > 0 {
				why = all[0].Message
			}
			return fmt.Errorf("prepare records of %s to %s: %s", g.object.APIName, names(s.result.Load.Operations)[0], why)
		}
		for _, w := range s.e.workers {
			s.e.pool.known = append(s.e.pool.known, w.known...)
			w.known = nil
		}
		s.note("%s of %s %s written first, to be worked on", quantity.Count(m.good, "record"), g.object.APIName, quantity.Verb(m.good, "was", "were"))
	}
	return nil
}

// unmeasured ends a run that was interrupted before its load: its written records
// are named, and deleted when that was requested.
func (s *session) unmeasured() error {
	s.remark("interrupted before the load: the figures are those of the records that were written first, to be worked on")
	err := s.result.take(s.prepared)
	s.result.Ended = stopInterrupted.String()
	return err
}

// load warms up, and measures.
func (s *session) load(ctx context.Context) error {
	if s.o.WarmUp > 0 {
		m := s.e.run(ctx, s.phase("warm-up", s.o.WarmUp))
		s.followRuns(ctx, m)
		s.result.WarmUp = &WarmUpInfo{Seconds: m.seconds(), Requests: m.requests, Records: m.records, Errors: m.errors()}
		if m.reason != stopTime {
			s.result.Ended = m.reason.String()
			return s.result.take(m)
		}
		if s.e.service != nil {
			s.e.service.Found.Reset()
		}
	}
	ph := s.phase("load", s.o.Duration)
	ph.count = s.o.Count
	s.result.Started = time.Now().UTC()
	m := s.measured(ctx, ph)
	s.followRuns(ctx, m)
	if err := s.result.take(m); err != nil {
		return err
	}
	if s.e.service != nil {
		var err error
		if s.result.Service, err = serviceFigures(s.e.service, m); err != nil {
			return err
		}
	}
	var err error
	if s.result.Replicas, err = s.perReplica(m); err != nil {
		return err
	}
	s.comment(m, ph)
	return nil
}

// measured runs the load; as declared, get_sync_speed is called again meanwhile.
func (s *session) measured(ctx context.Context, ph phase) *measure {
	if !s.e.follow || s.o.AskSpeed < 0 {
		return s.e.run(ctx, ph)
	}
	asking, end := context.WithCancel(ctx)
	var done sync.WaitGroup
	ph.begun = func() { done.Go(func() { s.askSpeed(asking) }) }
	m := s.e.run(ctx, ph)
	end()
	done.Wait()
	s.tell()
	return m
}
