package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/plural"
	"github.com/destkit/destkit/loadgen/internal/cpu"
	"github.com/destkit/destkit/loadgen/internal/failure"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/planning"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// Moment is how a run stands, for a live view.
type Moment struct {
	// Phase is prepare, warm-up, load, settle, search, verify or clean-up; Of how long it lasts, 0
	// where nobody knows.
	Phase       string
	Elapsed, Of time.Duration
	// Latest is the last whole interval; zero before its end.
	Latest            Point
	Requests, Records int64
	Errors            int64
	InFlight          int
	Asked             float64 // requests per second, 0 in a closed loop
	// CPUs is how many processors the generator kept busy since the moment before.
	CPUs float64
	// Service: of a load on a service, where every request counts as one record.
	Service bool
	// ErrorsByKind and Paused are for those who control the run; nil without Control.
	ErrorsByKind map[string]int64
	Paused       bool
	// Target and Load are what was asked for. Limits are Options.Limits as they stand,
	// nil before the first second is over and between phases that are measured.
	Target TargetInfo
	Load   LoadInfo
	Limits []Threshold
}

// session is one run.
type session struct {
	o      Options
	e      *engine
	result *Result
	// journal is told before keys are used; nil: none.
	journal           *journalFile
	later             later // what is to be told by the goroutine that attends
	chosenConnections bool  // by the options, not by what is declared
	// prepared is how the records went that updates and deletes work on; nil: none.
	prepared *measure
}

// Run loads a target. It returns a Result also when it was interrupted or
// aborted; what was measured until then is in it. The error is a *UsageError
// where nothing was sent because of the options, any other where the target
// could not be asked or a file not be written.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	if o.Service != nil {
		return runService(ctx, o)
	}
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, err
	}
	// What of the result came from outside was redacted when it came; this is for
	// the names that stand in other places.
	defer func() { s.e.end.Hidden.Value(s.result) }()
	defer s.e.close()
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

// newSession checks the options, asks the target what it has, and prepares
// everything that is sent.
func newSession(ctx context.Context, o Options) (_ *session, err error) {
	if o.Service != nil {
		return nil, failure.Usagef("single batches are sent to a destination, not to a service")
	}
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	keys, err := records.NewKeys(o.KeyTemplate, o.RunID, o.KeyFrom, o.KeyTo)
	if err != nil {
		return nil, err
	}
	end, err := wire.NewEndpoint(wire.Target(o.Target), wire.Transport(o.Transport))
	if err != nil {
		return nil, err
	}
	defer func() { err = end.Hide(err) }()
	if o.Work.Data != nil {
		if err := o.Work.Data.load(ctx); err != nil {
			return nil, err
		}
	}
	d, err := planning.Discover(ctx, end, o.Target.Token, o.Target.Headers, names(o.Work.Objects))
	if err != nil {
		return nil, err
	}
	// What came from the target and what the caller cancels are different things:
	// calls under way outlive ctx for a moment.
	e := &engine{ctx: context.WithoutCancel(ctx), end: end, clock: pace.NewClock(), seed: o.Seed, work: o.Work, declared: *d, control: o.Control, budget: budget{most: o.MaxRecords}}
	if e.plan, err = newPlan(o.Work, d, keys, o.Seed, syncRun(o.Seed)); err != nil {
		return nil, err
	}
	if end.Transport.Standard {
		end.Shared, _ = end.RoundTripper()
	}
	if e.replicas, err = end.Replicas(wire.Target(o.Target)); err != nil {
		return nil, err
	}
	if o.Search != nil && e.plan.primed {
		o.Search.FixedBatch = true // the records that were written first are in batches of one size
		if slices.ContainsFunc(e.plan.tasks, func(t *task) bool { return t.shape.Operation == rpc.OperationDelete }) {
			return nil, failure.Usagef("a search cannot delete alone: it would run out of records; add upsert to the mix")
		}
	}
	if v := o.Verify; v != nil {
		if u, err := url.Parse(v.Hook.URL); err == nil && v.Hook.URL != "" {
			end.SeedURL(u, "$DESTKIT_READBACK_URL")
		}
		if e.acks = newAcks(v.Share); v.Share == 0 {
			e.acks = newAcks(1) // which of them is chosen when all are known
		}
	}
	s := &session{o: o, e: e}
	s.settle()
	size := e.plan.size
	if o.Search != nil { // it tries other sizes
		size = int(min(max(int64(size), d.Speed.MaximumBatchSize), mostBatch))
	}
	end.Bound(size, s.o.Connections, o.Transport.MaxReply)
	for _, r := range e.replicas {
		r.Transport.MaxReply = end.Transport.MaxReply
	}
	if o.Journal != "" {
		s.journal = &journalFile{path: o.Journal, run: o.RunID, target: end.Shown()}
	}
	return s, nil
}

// syncRun is a number for the plans of a run.
func syncRun(seed uint64) int64 { return int64(seed%1_000_000_000) + 1 }

// settle chooses what depends on the target's words, and begins the result.
func (s *session) settle() {
	o, d, size := &s.o, s.e.declared, s.e.plan.size
	s.chosenConnections = o.Connections > 0
	parallel := int(min(d.Speed.MaximumParallelBatches, planning.ServiceParallel))
	mode := "open"
	switch {
	case o.Closed:
		mode = "closed"
	case o.AsDeclared:
		mode = "as-declared"
		o.Stages = constant(declaredRate(d, d.Limit, size))
		s.e.follow = true
		s.e.limit.Store(d.Limit)
		s.e.limits.speed = d.Speed
	case o.Search != nil:
		mode = "search"
	case o.InRecords:
		o.Stages = slices.Clone(o.Stages)
		for i := range o.Stages {
			o.Stages[i].From /= float64(size)
			o.Stages[i].To /= float64(size)
		}
	}
	if o.Connections == 0 {
		if o.Connections = parallel; mode == "open" || mode == "search" {
			o.Connections = openConnections
		}
	}
	s.e.connections = o.Connections
	if s.e.work.Repeats > 0 || slices.ContainsFunc(s.e.plan.tasks, func(t *task) bool { return !t.creates() }) {
		s.e.remembered = rememberedForMixes
	}
	s.begin(mode)
	s.exceeds(mode)
}

func (s *session) begin(mode string) {
	o, d := s.o, s.e.declared
	objects, _ := normalised("object", o.Work.Objects, "")
	operations, _ := normalised("operation", o.Work.Operations, rpc.OperationUpsert)
	r := &Result{
		SchemaVersion: SchemaVersion, Tool: "destkit " + o.Version, Started: time.Now().UTC(), ErrorsByKind: map[string]int64{}, ErrorMessages: []ErrorMessage{},
		Target: TargetInfo{Address: s.e.end.Shown(), Objects: objects},
		Load: LoadInfo{
			Mode: mode, Stages: o.Stages, Rate: meanRate(o.Stages, o.Burst, o.Duration), Connections: o.Connections,
			BatchSize: s.e.plan.size, Operations: operations, Records: "generated", Client: "own", Seed: o.Seed, Run: o.RunID,
		},
		Declared: &DeclaredInfo{
			BatchSize: d.Speed.MaximumBatchSize, Parallel: d.Speed.MaximumParallelBatches, RecordsPerSecond: d.Speed.MaximumRecordsPerSecond,
			RateLimit: d.Limit, RateLimitStated: d.Stated,
		},
		Keys: []WrittenKeys{}, Series: []Point{},
	}
	if o.Burst.Size > 0 {
		r.Load.Burst = &o.Burst
	}
	for _, end := range s.e.replicas {
		r.Target.Replicas = append(r.Target.Replicas, end.Shown())
	}
	switch {
	case o.Work.Data != nil:
		r.Load.Records = "data file"
	case len(o.Work.Template) > 0:
		r.Load.Records = "template"
	}
	if s.e.end.Transport.Standard {
		r.Load.Client = "net/http"
	}
	s.result = r
}

// wait lets the agreed time come.
func (s *session) wait(ctx context.Context) error {
	if s.o.StartAt.IsZero() {
		return nil
	}
	until := time.Until(s.o.StartAt)
	if until < -time.Second {
		return failure.Usagef("the start time %s is over", s.o.StartAt.Format(time.RFC3339))
	}
	timer := time.NewTimer(until)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return errors.New("interrupted before the start")
	}
}

// phase is the load as asked for.
func (s *session) phase(name string, duration time.Duration) phase {
	o := s.o
	ph := phase{open: !o.Closed, stages: o.Stages, burst: o.Burst, duration: duration, connections: o.Connections, catchUp: o.CatchUp}
	ph.watch = s.watcher(name, duration, ph)
	return ph
}

// watcher shows the figures of every new interval and aborts on errors.
func (s *session) watcher(name string, of time.Duration, ph phase) func(*measure, int64) {
	shown := -1
	var marks []tide
	before := cpu.Read()
	live := s.newStanding(name, ph)
	return func(m *measure, now int64) {
		s.journal.advance(s.e.plan)
		s.tell()
		if s.o.AbortShare > 0 && len(m.points) != shown {
			marks = append(marks, tide{now, m.records, m.good})
			for len(marks) > 2 && now-marks[1].at >= int64(abortWindow) {
				marks = marks[1:]
			}
			sent, good := m.records-marks[0].records, m.good-marks[0].good
			if now-m.began >= int64(time.Second) && sent >= abortAtLeast && float64(sent-good) > s.o.AbortShare*float64(sent) {
				s.e.stopFor(stopErrors)
			}
		}
		if s.o.Progress == nil || !live.due(m, now, len(m.points) != shown) {
			return
		}
		shown = len(m.points)
		moment := Moment{
			Phase: name, Elapsed: time.Duration(now - m.began), Of: of,
			Requests: m.requests, Records: m.records, Errors: m.errors(), InFlight: m.active, Service: s.e.service != nil,
			Target: live.target, Load: live.load, Limits: live.limits(m, now),
		}
		if shown > 0 {
			moment.Latest = m.points[shown-1]
		}
		if m.asked != nil {
			moment.Asked = m.asked(now - m.began)
		}
		latest := cpu.Read()
		if wall := latest.At.Sub(before.At).Seconds(); wall > 0 {
			moment.CPUs = latest.Since(before).Own.Seconds() / wall
		}
		before = latest
		if s.o.Control != nil {
			moment.Paused, moment.ErrorsByKind = s.o.Control.Paused(), map[string]int64{}
			for _, t := range m.tallies {
				moment.ErrorsByKind[t.Kind] += t.Count
			}
		}
		s.o.Progress(moment)
	}
}

// tide is how many records were sent and acknowledged at a moment.
type tide struct{ at, records, good int64 }

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
		batches := max(int64((s.o.Work.Prime+p.size-1)/p.size), int64(s.o.Connections))
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
		s.note("%s of %s %s written first, to be worked on", plural.Count(m.good, "record"), g.object.APIName, plural.Verb(m.good, "was", "were"))
	}
	return nil
}

// unmeasured ends a run that was interrupted before its load: what it has written is
// named, and deleted when that was asked for.
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

// measured runs the load; as declared, get_sync_speed is asked again meanwhile.
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
