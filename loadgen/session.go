package loadgen

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/loadgen/internal/pace"
	"github.com/destkit/destkit/loadgen/internal/records"
	"github.com/destkit/destkit/loadgen/internal/wire"
)

// session is one run.
type session struct {
	o      Options
	e      *engine
	result *Result
	// journal records keys before they are used; nil: none.
	journal           *journalFile
	later             later // notes for the goroutine that attends
	chosenConnections bool  // by the options, not by the declared speed
	// prepared is how the records went that updates and deletes work on; nil: none.
	prepared *measure
}

// newSession checks the options, discovers the target, and prepares
// everything that is sent.
func newSession(ctx context.Context, o Options) (_ *session, err error) {
	if o.Service != nil {
		return nil, wire.Usagef("single batches are sent to a destination, not to a service")
	}
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	keys, err := records.NewKeys(o.KeyTemplate, o.RunID, o.KeyFrom, o.KeyTo)
	if err != nil {
		return nil, err
	}
	end, err := wire.NewEndpoint(o.Target, o.Transport)
	if err != nil {
		return nil, err
	}
	defer func() { err = end.Hide(err) }()
	if o.Work.Data != nil {
		if err := o.Work.Data.load(ctx); err != nil {
			return nil, err
		}
	}
	d, err := discover(ctx, end, o.Target.Token, o.Target.Headers, names(o.Work.Objects))
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
	if e.replicas, err = end.Replicas(o.Target); err != nil {
		return nil, err
	}
	if o.Search != nil && e.plan.primed {
		o.Search.FixedBatch = true // the records that were written first are in batches of one size
		if slices.ContainsFunc(e.plan.tasks, func(t *task) bool { return t.shape.Operation == rpc.OperationDelete }) {
			return nil, wire.Usagef("a search cannot delete alone: it would run out of records; add upsert to the mix")
		}
	}
	if v := o.Verify; v != nil {
		if u, err := url.Parse(v.Hook.URL); err == nil && v.Hook.URL != "" {
			end.Hidden.AddURL(u, "$DESTKIT_READBACK_")
		}
		if e.acks = newAcks(v.Share, o.Seed); v.Share == 0 {
			e.acks = newAcks(1, o.Seed) // which of them is chosen when all are known
		}
	}
	s := &session{o: o, e: e}
	s.settle()
	if err := s.fits(); err != nil {
		return nil, err
	}
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
	parallel := int(min(d.Speed.MaximumParallelBatches, ServiceParallel))
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
		SchemaVersion: schemaVersion, Tool: "destkit " + o.Version, Started: time.Now().UTC(), ErrorsByKind: map[string]int64{}, ErrorMessages: []ErrorMessage{},
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
		return wire.Usagef("the start time %s is over", s.o.StartAt.Format(time.RFC3339))
	}
	if pause.For(ctx, until) != nil {
		return errors.New("interrupted before the start")
	}
	return nil
}
