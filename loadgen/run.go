package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
)

// Moment is how a run stands, for a live view.
type Moment struct {
	// Phase is prepare, warm-up, load, search or clean-up; Of how long it lasts, 0
	// where nobody knows.
	Phase       string
	Elapsed, Of time.Duration
	// Latest is the last whole interval.
	Latest            Point
	Requests, Records int64
	Errors            int64
	InFlight          int
	Asked             float64 // requests per second, 0 in a closed loop
}

// session is one run.
type session struct {
	o      Options
	e      *engine
	result *Result
	// journal is told before keys are used; nil: none.
	journal *journalFile
}

// Run loads a target. It returns a Result also when it was interrupted or
// aborted; what was measured until then is in it. The error is a *UsageError
// where nothing was sent because of the options, any other where the target
// could not be asked or a file not be written.
func Run(ctx context.Context, o Options) (*Result, error) {
	s, err := newSession(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.e.close()
	if err := s.journal.begin(s.written(), s.e.plan); err != nil {
		return nil, err
	}
	if err := s.prime(ctx); err != nil {
		return s.result, err
	}
	if err := s.wait(ctx); err != nil {
		return s.result, err
	}
	if s.o.Search != nil {
		err = s.search(ctx)
	} else {
		err = s.load(ctx)
	}
	if err != nil {
		return s.result, err
	}
	s.result.Keys = s.written()
	if s.o.Cleanup {
		s.result.Cleanup = s.cleanup(ctx)
	}
	return s.result, s.journal.end(s.result)
}

// newSession checks the options, asks the target what it has, and prepares
// everything that is sent.
func newSession(ctx context.Context, o Options) (*session, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	keys, err := newKeys(o.KeyTemplate, o.RunID, o.KeyFrom, o.KeyTo)
	if err != nil {
		return nil, err
	}
	end, err := newEndpoint(o.Target, o.Transport)
	if err != nil {
		return nil, err
	}
	if o.Work.Data != nil {
		if err := o.Work.Data.Load(ctx); err != nil {
			return nil, err
		}
	}
	d, err := end.discover(ctx, o.Target, names(o.Work.Objects))
	if err != nil {
		return nil, err
	}
	// What came from the target and what the caller cancels are different things:
	// calls under way outlive ctx for a moment.
	e := &engine{ctx: context.WithoutCancel(ctx), end: end, clock: newClock(), seed: o.Seed, work: o.Work, declared: *d, budget: budget{most: o.MaxRecords}}
	if e.plan, err = newPlan(o.Work, d, keys, o.Seed, syncRun(o.Seed)); err != nil {
		return nil, err
	}
	if end.transport.Standard {
		e.shared, _ = end.roundTripper()
	}
	if o.Search != nil && e.plan.primed {
		o.Search.FixedBatch = true // the records that were written first are in batches of one size
		if slices.ContainsFunc(e.plan.tasks, func(t *task) bool { return t.shape.operation == rpc.OperationDelete }) {
			return nil, usagef("a search cannot delete alone: it would run out of records; add upsert to the mix")
		}
	}
	s := &session{o: o, e: e}
	s.settle()
	if o.Journal != "" {
		s.journal = &journalFile{path: o.Journal, run: o.RunID, target: end.shown()}
	}
	return s, nil
}

// syncRun is a number for the plans of a run (facts A3).
func syncRun(seed uint64) int64 { return int64(seed%1_000_000_000) + 1 }

// settle chooses what depends on the target's words, and begins the result.
func (s *session) settle() {
	o, d, size := &s.o, s.e.declared, s.e.plan.size
	parallel := int(min(d.speed.MaximumParallelBatches, serviceParallel))
	mode := "open"
	switch {
	case o.Closed:
		mode = "closed"
	case o.AsDeclared:
		mode = "as-declared"
		o.Stages = constant(declaredRate(d, d.limit, size))
		s.e.follow = true
		s.e.limit.Store(d.limit)
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
		Target: TargetInfo{Address: s.e.end.shown(), Objects: objects},
		Load: LoadInfo{
			Mode: mode, Stages: o.Stages, Rate: meanRate(o.Stages, o.Burst, o.Duration), Connections: o.Connections,
			BatchSize: s.e.plan.size, Operations: operations, Records: "generated", Client: "own", Seed: o.Seed, Run: o.RunID,
		},
		Declared: &DeclaredInfo{
			BatchSize: d.speed.MaximumBatchSize, Parallel: d.speed.MaximumParallelBatches, RecordsPerSecond: d.speed.MaximumRecordsPerSecond,
			RateLimit: d.limit, RateLimitStated: d.stated,
		},
		Keys: []WrittenKeys{}, Series: []Point{},
	}
	if o.Burst.Size > 0 {
		r.Load.Burst = &o.Burst
	}
	switch {
	case o.Work.Data != nil:
		r.Load.Records = "data file"
	case len(o.Work.Template) > 0:
		r.Load.Records = "template"
	}
	if s.e.end.transport.Standard {
		r.Load.Client = "net/http"
	}
	s.result = r
}

// meanRate is the mean of the requests per second that a schedule asks for.
func meanRate(stages []Stage, burst Burst, duration time.Duration) float64 {
	if duration == 0 {
		duration = length(stages)
	}
	total, left := 0.0, duration.Seconds()
	for i, st := range stages {
		d := st.Duration.Seconds()
		if i == len(stages)-1 && left > d {
			total += (st.From+st.To)/2*d + st.To*(left-d)
			break
		}
		part := min(d, left)
		total += st.From*part + (st.To-st.From)*part*part/(2*d)
		if left -= part; left <= 0 {
			break
		}
	}
	if burst.Size > 0 && duration > 0 {
		total += float64(burst.Size) * math.Ceil(duration.Seconds()/burst.Every.Seconds())
	}
	if duration <= 0 {
		return 0
	}
	return total / duration.Seconds()
}

// exceeds says where the load goes beyond what the target allows: only as
// declared it is held back.
func (s *session) exceeds(mode string) {
	d, o := s.e.declared, s.o
	switch mode {
	case "as-declared":
		return
	case "search":
		s.note("a search goes beyond what the destination declares")
		return
	}
	if int64(s.e.plan.size) > d.speed.MaximumBatchSize {
		s.note("batches of %d records exceed the declared maximum_batch_size of %d", s.e.plan.size, d.speed.MaximumBatchSize)
	}
	if int64(o.Connections) > min(d.speed.MaximumParallelBatches, serviceParallel) {
		s.note("%d connections exceed the declared maximum_parallel_batches of %d", o.Connections, d.speed.MaximumParallelBatches)
	}
	peak := 0.0
	for _, st := range o.Stages {
		peak = max(peak, st.From, st.To)
	}
	if allowed := declaredRate(d, d.limit, s.e.plan.size); peak > allowed {
		s.note("%.6g requests/s exceed the declared speed, which allows %.6g", peak, allowed)
	}
}

func (s *session) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.result.Notes = append(s.result.Notes, text)
	if s.o.Note != nil {
		s.o.Note(text)
	}
}

// wait lets the agreed time come.
func (s *session) wait(ctx context.Context) error {
	if s.o.StartAt.IsZero() {
		return nil
	}
	until := time.Until(s.o.StartAt)
	if until < -time.Second {
		return usagef("the start time %s is over", s.o.StartAt.Format(time.RFC3339))
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
	var marks []mark3
	rates := newSchedule(ph.stages, ph.burst)
	return func(m *measure, now int64) {
		s.journal.advance(s.e.plan)
		if s.o.AbortShare > 0 && len(m.points) != shown {
			marks = append(marks, mark3{now, m.records, m.good})
			for len(marks) > 2 && now-marks[1].at >= int64(abortWindow) {
				marks = marks[1:]
			}
			sent, good := m.records-marks[0].records, m.good-marks[0].good
			if now-m.began >= int64(time.Second) && sent >= abortAtLeast && float64(sent-good) > s.o.AbortShare*float64(sent) {
				s.e.stopFor(stopErrors)
			}
		}
		if s.o.Progress == nil || len(m.points) == 0 || len(m.points) == shown {
			return
		}
		shown = len(m.points)
		moment := Moment{
			Phase: name, Elapsed: time.Duration(now - m.began), Of: of, Latest: m.points[shown-1],
			Requests: m.requests, Records: m.records, Errors: m.errors(), InFlight: m.active,
		}
		if ph.open {
			moment.Asked = rates.rateAt(now - m.began)
		}
		s.o.Progress(moment)
	}
}

// mark3 is how many records were sent and acknowledged at a moment.
type mark3 struct{ at, records, good int64 }

// prime writes the records that a mix of updates and deletes works on.
func (s *session) prime(ctx context.Context) error {
	p := s.e.plan
	if !p.primed {
		return nil
	}
	for _, g := range p.grounds {
		t, err := p.primer(s.o.Work, g, s.o.Seed, syncRun(s.o.Seed))
		if err != nil {
			return err
		}
		batches := max(int64((s.o.Work.Prime+p.size-1)/p.size), int64(s.o.Connections))
		s.e.remembered = int(batches)
		m := s.e.run(ctx, phase{count: batches, connections: s.o.Connections, only: t, watch: s.watcher("prepare", 0, phase{})})
		if ctx.Err() != nil {
			return errors.New("interrupted while records were prepared")
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
		s.note("%d records of %s were written first, to be worked on", m.good, g.object.APIName)
	}
	return nil
}

// load warms up, and measures.
func (s *session) load(ctx context.Context) error {
	if s.o.WarmUp > 0 {
		m := s.e.run(ctx, s.phase("warm-up", s.o.WarmUp))
		s.result.WarmUp = &WarmUpInfo{Seconds: m.seconds(), Requests: m.requests, Records: m.records, Errors: m.errors()}
		if m.reason != stopTime {
			s.result.Ended = m.reason.String()
			return s.result.take(m)
		}
	}
	ph := s.phase("load", s.o.Duration)
	ph.count = s.o.Count
	s.result.Started = time.Now().UTC()
	m := s.e.run(ctx, ph)
	if err := s.result.take(m); err != nil {
		return err
	}
	s.comment(m, ph)
	return nil
}

// comment says in words what the figures alone would hide.
func (s *session) comment(m *measure, ph phase) {
	r := s.result
	if r.Generator.Limited {
		for _, reason := range r.Generator.Reasons {
			s.note("the generator was a limit: %s", reason)
		}
	}
	if !ph.open {
		return
	}
	asked := meanRate(ph.stages, ph.burst, time.Duration(m.stopped-m.began))
	if s.e.follow {
		kept := r.Errors == 0 && r.RequestsPerSecond >= 0.99*asked
		r.Declared.Kept = &kept
		return
	}
	if r.RequestsPerSecond < 0.99*asked && m.reason == stopTime && m.requests > 10 {
		what := "the target did not take more"
		if m.queued*2 > m.requests {
			what = fmt.Sprintf("all %d connections were busy: the target is slower, or more --connections are needed", ph.connections)
		}
		s.note("the rate was not reached: %.6g of %.6g requests/s; %s", r.RequestsPerSecond, asked, what)
	}
}
