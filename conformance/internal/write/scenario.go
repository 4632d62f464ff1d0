package write

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/line"
	"github.com/destkit/destkit/conformance/internal/model"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// Scenario is the state of one scenario on its way: what was sent, what came back, and
// what was found.
type Scenario struct {
	*Session
	*engine.Findings
	Ctx context.Context
	// Object is the destination object under judgement, nil in checks that look at no
	// single object.
	Object *Object
	Sent
	Model      *view                    // what the destination must hold now
	Before     map[model.Place]Observed // what a read-back showed before the latest When
	LeastPlan  bool                     // an update with nothing to change may be refused
	Parallel   parallelWrites           // what steps have written in parallel
	Measured   measuredPace             // how fast the latest calls went
	Handshaken *rules.Handshake         // what the handshake showed; nil without one
	// HookAsked reports whether the read-back hook was asked about the object.
	HookAsked bool

	reserved int64 // of the session's room for the bodies of wide answers, in bytes
	run      int64 // the sync_run_id of the scenario
	runOnce  sync.Once
}

// Sent is what the steps of a scenario have sent, and what came back.
type Sent struct {
	Replies  []*exchange.Reply // of the latest When and of all before it
	Batches  []*Batch          // sync_batch calls with their records, in order
	Latest   []*Batch          // those of the latest When
	Waves    [][]*Batch        // those of every When
	Sets     []Set             // what the latest When sent
	History  []Set             // what every When sent
	Purposes []Purpose         // what each of the sets is for
	Wrote    atomic.Int64      // when the latest batch was answered, in Unix nanoseconds
}

// Unmet is what was acknowledged and is not as it must be.
type Unmet struct {
	Lost        []*Expected   // records that are not there
	Unwitnessed []*Record     // records that an update did not find
	Stale       []Difference  // fields with their old values
	Altered     []model.Place // records with values that were neither sent nor there before
	Outpaced    []*Record     // records that a witness sent at once did not find
	Left        []*Record     // records that are there after their delete
}

// parallelWrites is what steps that write in parallel leave for the claims.
type parallelWrites struct {
	Copies  [][]*Record // the same keys, with other values in each batch
	rounds  []dueBatch  // batches that are due, of all operations
	Lanes   []lane      // records that were created and witnessed at once
	Witness string      // the operation that witnesses the lanes
}

// dueBatch is one batch of several rounds.
type dueBatch struct {
	operation string
	records   []*Record
}

// measuredPace is what steps have measured of time.
type measuredPace struct {
	Reached *float64      // the share of the intended rate; nil when none was measured
	Single  time.Duration // the median latency of calls one by one
	AtOnce  time.Duration // that of calls at once, in the fastest round
	Width   int           // the number of calls at once
}

// NewScenario is a scenario of a check for an object, or for none.
func (s *Session) NewScenario(ctx context.Context, c *conformance.Check, o *Object) *Scenario {
	return &Scenario{Session: s, Findings: (&engine.Suite{Secrets: s.Redactor}).Findings(c), Ctx: ctx, Object: o}
}

// Broken adds a finding: what was expected, what was seen, in which replies.
func (sc *Scenario) Broken(expected, actual string, where ...*exchange.Reply) {
	sc.BrokenFor("", expected, actual, where...)
}

// BrokenFor is broken for one operation.
func (sc *Scenario) BrokenFor(operation, expected, actual string, where ...*exchange.Reply) {
	sc.BrokenAs("", operation, expected, actual, where...)
}

// BrokenAs is brokenFor with a word for what was observed. Without one it is the
// kind of the first reply, where that is no ordinary result.
func (sc *Scenario) BrokenAs(symptom, operation, expected, actual string, where ...*exchange.Reply) {
	// What the judge itself could not hold shows nothing of the endpoint: incomplete says so.
	if slices.ContainsFunc(where, func(r *exchange.Reply) bool { return r != nil && r.Kind == wire.KindUnread }) {
		return
	}
	if symptom == "" && len(where) > 0 && where[0] != nil {
		symptom = where[0].Symptom()
	}
	f := conformance.Finding{Expected: expected, Actual: actual, Operation: operation, Replica: sc.Replicas.Shown(where)}
	if sc.Object != nil {
		f.Object = sc.Object.APIName
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
	replica := sc.Replicas.Describe(sc.Replies)
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
	if i := slices.IndexFunc(where, func(r *exchange.Reply) bool { return r != nil && r.InPlace() }); i >= 0 && len(sc.All()) > before && sc.aboutParallel() {
		added := &sc.All()[before]
		added.Cause = fmt.Sprintf("what stands before the endpoint, such as a balancer, answered HTTP %d in its place: this says nothing of what its calls share.", where[i].Status)
		added.Fix = "find out why it had no answer (workers that are full or restart, timeouts, a limit); judge once more when every call reaches the endpoint."
	}
}

// aboutParallel reports whether the check is about calls at the same time (spec 4.2).
func (sc *Scenario) aboutParallel() bool { return slices.Contains(sc.Check().Sections, "4.2.3") }

// prompt are the checks that a write must not keep waiting.
var prompt = []string{"SEM-001", "SEM-006", "DUR-001", "DUR-002"}

// AwaitWrites waits for writes that are known to arrive late.
func (sc *Scenario) AwaitWrites() error {
	wrote := sc.Wrote.Load()
	if sc.Late == 0 || wrote == 0 || slices.Contains(prompt, sc.Check().ID) {
		return nil
	}
	return line.Elapse(sc.Ctx, time.Until(time.Unix(0, wrote).Add(sc.Late)))
}

// incomplete says which replies of the scenario began, or were waited for, and never
// came to their end. Nothing is known of what they would have been, so that no rule
// about them has been seen to hold. "" when there is none.
func (sc *Scenario) incomplete() string {
	n := 0
	var first *exchange.Reply
	for _, r := range sc.Replies {
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
	return sc.Redactor.String(fmt.Sprintf("%d of %s got no complete reply (%s: %s)", n, quantity.Count(len(sc.Replies), "call"), first.What(), foreign.Clip(first.Failure(), 200)))
}

// Count adds up the evidence that every scenario has: what came back.
func (sc *Scenario) Count() {
	sc.Saw(conformance.SeenAttempts, len(sc.Replies))
	sc.Incomplete(sc.incomplete())
	for _, r := range sc.Replies {
		SawReply(sc.Findings, r)
	}
	for _, b := range sc.Batches {
		sc.Saw(conformance.SeenResults, len(b.List))
		for _, r := range b.Records {
			switch {
			case b.Succeeded(r) && (len(sc.Latest) == 0 || slices.Contains(sc.Latest, b)):
				sc.Saw(conformance.SeenAccepted, 1) // what counts is the last batch, the others prepare it
			case b.Refused(r):
				sc.Saw(conformance.SeenRefused, 1)
			}
		}
	}
	if p, is := sc.unseenPurpose(); is {
		sc.Note("%s: every record was refused, so that nothing was seen of it", p)
		sc.Unsaw(conformance.SeenAccepted)
	}
	if f := sc.Handshaken; f != nil && (f.Err == nil || sc.URL.Scheme != "https") {
		sc.Saw(conformance.SeenHandshakes, 1)
	}
}

// SawReply adds a reply to the evidence.
func SawReply(found *engine.Findings, r *exchange.Reply) {
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
func (sc *Scenario) NeedReadback() error {
	if sc.Readback == nil {
		return engine.NotRun("readback", "needs the read-back hook: give --readback-url or --readback-command")
	}
	return nil
}
