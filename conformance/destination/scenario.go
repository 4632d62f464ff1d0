package destination

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// scenario is the state of one scenario on its way: what was sent, what came
// back, and what was found.
type scenario struct {
	*session
	*engine.Findings
	ctx context.Context
	// object is the destination object under judgement, nil in checks that
	// look at no single object.
	object *object

	replies     []*reply                      // of the latest When and of all before it
	batches     []*batch                      // sync_batch calls with their records, in order
	latest      []*batch                      // those of the latest When
	waves       [][]*batch                    // those of every When
	sets        []set                         // what the latest When sent
	history     []set                         // what every When sent
	bad         []*record                     // the records that must not be accepted
	badSure     bool                          // the author says that they are bad
	model       *view                         // what the destination must hold now
	before      map[place]observed            // what a read-back showed before the latest When
	disagreeing []disagreeing                 // records with identifiers of two records
	unmet       unmet                         // what was reported, for the search for its cause
	twins       []*record                     // records of another object with keys that were sent
	purposes    []purpose                     // what each of the sets is for
	leastPlan   bool                          // an update with nothing to change may be refused
	keysTooWide string                        // all records with integer keys were refused: how
	endings     []func(context.Context) error // hooks to end
	parallel    parallelWrites                // what steps have written in parallel
	measured    measuredPace                  // how fast the latest calls went
	handshaken  *rules.Handshake              // what the handshake showed; nil without one
	altered     map[string]json.RawMessage    // what the hook alter_schema answered

	reserved int64 // of the session's room for the bodies of wide answers, in bytes

	wrote atomic.Int64 // when the latest batch was answered, in Unix nanoseconds

	run     int64 // the sync_run_id of the scenario
	runOnce sync.Once
	// hookAsked reports whether the read-back hook was asked about the object.
	hookAsked bool
}

// unmet is what was acknowledged and is not as it must be.
type unmet struct {
	lost        []*expected  // records that are not there
	unwitnessed []*record    // records that an update did not find
	stale       []difference // fields with their old values
	altered     []place      // records with values that were neither sent nor there before
	outpaced    []*record    // records that a witness sent at once did not find
	left        []*record    // records that are there after their delete
}

// parallelWrites is what steps that write in parallel leave for the claims.
type parallelWrites struct {
	copies  [][]*record // the same keys, with other values in each batch
	rounds  []dueBatch  // batches that are due, of all operations
	lanes   []lane      // records that were created and witnessed at once
	witness string      // the operation that witnesses the lanes
}

// dueBatch is one batch of several rounds.
type dueBatch struct {
	operation string
	records   []*record
}

// measuredPace is what steps have measured of time.
type measuredPace struct {
	reached *float64      // the share of the intended rate; nil when none was measured
	single  time.Duration // the median latency of calls one by one
	atOnce  time.Duration // that of calls at once, in the fastest round
	width   int           // the number of calls at once
}

// newScenario is a scenario of a check for an object, or for none.
func (s *session) newScenario(ctx context.Context, c *conformance.Check, o *object) *scenario {
	return &scenario{session: s, Findings: (&engine.Suite{Secrets: s.redactor}).Findings(c), ctx: ctx, object: o}
}

// scenarioOf is the scenario whose findings the engine looks at.
func (s *session) scenarioOf(ctx context.Context, found *engine.Findings) *scenario {
	sc := &scenario{session: s, Findings: found, ctx: ctx}
	if found.Object() != "" {
		sc.object = s.catalog.object(found.Object())
	}
	return sc
}

// broken adds a finding: what was expected, what was seen, in which replies.
func (sc *scenario) broken(expected, actual string, where ...*reply) {
	sc.brokenFor("", expected, actual, where...)
}

// brokenFor is broken for one operation.
func (sc *scenario) brokenFor(operation, expected, actual string, where ...*reply) {
	sc.brokenAs("", operation, expected, actual, where...)
}

// brokenAs is brokenFor with a word for what was observed. Without one it is the
// kind of the first reply, where that is no ordinary result.
func (sc *scenario) brokenAs(symptom, operation, expected, actual string, where ...*reply) {
	// What the judge itself could not hold shows nothing of the endpoint: incomplete says so.
	if slices.ContainsFunc(where, func(r *reply) bool { return r != nil && r.Kind == wire.KindUnread }) {
		return
	}
	if symptom == "" && len(where) > 0 && where[0] != nil {
		symptom = where[0].Symptom()
	}
	f := conformance.Finding{Expected: expected, Actual: actual, Operation: operation, Replica: sc.replicas.shown(where)}
	if sc.object != nil {
		f.Object = sc.object.APIName
	}
	var exchanges []conformance.Exchange
	for _, r := range where {
		if r == nil {
			continue
		}
		exchanges = append(exchanges, r.Exchange())
		if f.Object == "" && r.Object != "" {
			f.Object = r.Object
		}
	}
	replica := sc.replicas.describe(sc.replies)
	if replica != "" {
		f.Actual += "; " + replica
	}
	if sc.quote(&f, where); f.Cause == "" {
		sc.readReply(&f, symptom, where)
	}
	if replica != "" && (f.Quote == nil || !f.Quote.Cause) {
		f.Cause = cmp.Or(f.Cause, sc.Check().Cause) + " Or a process keeps for itself what the next call, to another one, needs."
	}
	before := len(sc.All())
	sc.Add(f, symptom, exchanges)
	if i := slices.IndexFunc(where, func(r *reply) bool { return r != nil && r.InPlace() }); i >= 0 && len(sc.All()) > before && sc.aboutParallel() {
		added := &sc.All()[before]
		added.Cause = fmt.Sprintf("what stands before the endpoint, such as a balancer, answered HTTP %d in its place: this says nothing of what its calls share.", where[i].Status)
		added.Fix = "find out why it had no answer (workers that are full or restart, timeouts, a limit); judge once more when every call reaches the endpoint."
	}
}

// aboutParallel reports whether the check is about calls at the same time (spec 4.2).
func (sc *scenario) aboutParallel() bool { return slices.Contains(sc.Check().Sections, "4.2.3") }

// prompt are the checks that a write must not keep waiting.
var prompt = []string{"SEM-001", "SEM-006", "DUR-001", "DUR-002"}

// awaitWrites waits for writes that are known to arrive late.
func (sc *scenario) awaitWrites() error {
	wrote := sc.wrote.Load()
	if sc.late == 0 || wrote == 0 || slices.Contains(prompt, sc.Check().ID) {
		return nil
	}
	return elapse(sc.ctx, time.Until(time.Unix(0, wrote).Add(sc.late)))
}

// elapse lets time pass; the error says why the run is over before.
func elapse(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return overtime(ctx)
	}
}

// incomplete says which replies of the scenario began, or were waited for, and never
// came to their end. Nothing is known of what they would have been, so that no rule
// about them has been seen to hold. "" when there is none.
func (sc *scenario) incomplete() string {
	n := 0
	var first *reply
	for _, r := range sc.replies {
		if r.OK() || r.Kind == wire.KindCut || r.Kind == wire.KindCanceled || r.Received == 0 && r.Kind != wire.KindTimeout {
			continue
		}
		if n++; first == nil {
			first = r
		}
	}
	if n == 0 {
		return ""
	}
	return sc.redactor.String(fmt.Sprintf("%d of %s got no complete reply (%s: %s)", n, quantity.Count(len(sc.replies), "call"), first.What(), foreign.Clip(first.Failure(), 200)))
}

// count adds up the evidence that every scenario has: what came back.
func (sc *scenario) count() {
	sc.Saw(conformance.SeenAttempts, len(sc.replies))
	sc.Incomplete(sc.incomplete())
	for _, r := range sc.replies {
		sawReply(sc.Findings, r)
	}
	for _, b := range sc.batches {
		sc.Saw(conformance.SeenResults, len(b.List))
		for _, r := range b.records {
			switch {
			case b.succeeded(r) && (len(sc.latest) == 0 || slices.Contains(sc.latest, b)):
				sc.Saw(conformance.SeenAccepted, 1) // what counts is the last batch, the others prepare it
			case b.refused(r):
				sc.Saw(conformance.SeenRefused, 1)
			}
		}
	}
	if p, is := sc.unseenPurpose(); is {
		sc.Note("%s: every record was refused, so that nothing was seen of it", p)
		sc.Unsaw(conformance.SeenAccepted)
	}
	if f := sc.handshaken; f != nil && (f.Err == nil || sc.url.Scheme != "https") {
		sc.Saw(conformance.SeenHandshakes, 1)
	}
}

// sawReply adds a reply to the evidence.
func sawReply(found *engine.Findings, r *reply) {
	if r.OK() {
		found.Saw(conformance.SeenResponses, 1)
	}
	switch {
	case r.IsError():
		found.Saw(conformance.SeenErrors, 1)
		found.Saw(conformance.SeenEnvelopes, 1)
	case r.Result() != nil:
		found.Saw(conformance.SeenAnswers, 1)
		found.Saw(conformance.SeenEnvelopes, 1)
	}
}

// need asks for a read-back hook where nothing else can decide.
func (sc *scenario) needReadback() error {
	if sc.readback == nil {
		return notRun("readback", "needs the read-back hook: give --readback-url or --readback-command")
	}
	return nil
}
