package write

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// Scenario is the state of one scenario: what was sent, what came back, and what was found.
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
	// HookAsked reports whether the read-back hook was queried about the object.
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
	Purposes []Purpose         // the purpose of each set
	Wrote    atomic.Int64      // when the latest batch was answered, in Unix nanoseconds
}

// Unmet holds acknowledged records that are not as they must be.
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
	rounds  []Set       // batches that are due, of all operations
	Lanes   []lane      // records that were created and witnessed at once
	Witness string      // the operation that witnesses the lanes
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

// BrokenFor adds a finding about an operation: what was expected, what was seen, in which replies.
func (sc *Scenario) BrokenFor(operation, expected, actual string, where ...*exchange.Reply) {
	sc.BrokenAs("", operation, expected, actual, where...)
}

// BrokenAs is BrokenFor with a word for what was observed; "": the kind of the first reply.
func (sc *Scenario) BrokenAs(symptom, operation, expected, actual string, where ...*exchange.Reply) {
	where = slices.DeleteFunc(slices.Clone(where), func(r *exchange.Reply) bool { return r == nil })
	// A reply that the judge could not hold shows nothing about the endpoint: Count reports it.
	if slices.ContainsFunc(where, func(r *exchange.Reply) bool { return r.Kind == wire.KindUnread }) {
		return
	}
	if symptom == "" && len(where) > 0 {
		symptom = where[0].Symptom()
	}
	f := conformance.Finding{Expected: expected, Actual: actual, Operation: operation, Replica: sc.Replicas.Shown(where)}
	f.Object = cmp.Or(lists.Of(where, func(r *exchange.Reply) string { return r.Object })...)
	if sc.Object != nil {
		f.Object = sc.Object.APIName
	}
	replica := sc.Replicas.Describe(sc.Replies)
	if replica != "" {
		f.Actual += "; " + replica
	}
	if sc.quote(&f, where); f.Cause == "" && len(where) > 0 {
		sc.readReply(&f, symptom, where[0])
	}
	if replica != "" && (f.Quote == nil || !f.Quote.Cause) {
		f.Cause = cmp.Or(f.Cause, sc.Check().Cause) + " Or a process keeps for itself what the next call, to another one, needs."
	}
	parallel := slices.Contains(sc.Check().Sections, "4.2.3") // calls at the same time
	if i := slices.IndexFunc(where, (*exchange.Reply).InPlace); i >= 0 && parallel {
		f.Cause = fmt.Sprintf("a proxy before the endpoint, such as a balancer, answered HTTP %d in its place: this says nothing of what its calls share.", where[i].Status)
		f.Fix = "find out why it had no answer (workers that are full or restart, timeouts, a limit); judge once more when every call reaches the endpoint."
	}
	sc.Add(f, symptom, lists.Of(where, func(r *exchange.Reply) conformance.Exchange { return r.Exchange() }))
}

// AwaitWrites waits for writes that are known to arrive late.
func (sc *Scenario) AwaitWrites() error {
	prompt := []string{"SEM-001", "SEM-006", "DUR-001", "DUR-002"} // that a write must not keep waiting
	wrote := sc.Wrote.Load()
	if sc.Late == 0 || wrote == 0 || slices.Contains(prompt, sc.Check().ID) {
		return nil
	}
	return line.Elapse(sc.Ctx, time.Until(time.Unix(0, wrote).Add(sc.Late)))
}

// Count adds up the evidence that every scenario has: what came back.
func (sc *Scenario) Count() {
	sc.Saw(conformance.SeenAttempts, len(sc.Replies))
	// No rule about replies that never came to their end has been seen to hold.
	cut := lists.Where(sc.Replies, func(r *exchange.Reply) bool {
		return !r.OK() && r.Kind != wire.KindCut && r.Kind != wire.KindCanceled && (r.Received > 0 || r.Kind == wire.KindTimeout)
	})
	if len(cut) > 0 {
		sc.Incomplete(sc.Redactor.String(fmt.Sprintf("%d of %s got no complete reply (%s: %s)",
			len(cut), quantity.Count(len(sc.Replies), "call"), cut[0].What(), foreign.Clip(cut[0].Failure(), 200))))
	}
	for _, r := range sc.Replies {
		SawReply(sc.Findings, r)
	}
	for _, b := range sc.Batches {
		sc.Saw(conformance.SeenResults, len(b.List))
	}
	for b, r := range Each(sc.Batches) {
		switch {
		case b.Succeeded(r) && (len(sc.Latest) == 0 || slices.Contains(sc.Latest, b)):
			sc.Saw(conformance.SeenAccepted, 1) // the last batch counts, the others prepare it
		case b.Refused(r):
			sc.Saw(conformance.SeenRefused, 1)
		}
	}
	for i, p := range sc.Purposes {
		if len(sc.Sets) != len(sc.Purposes) {
			break // the scenario ended before they were sent
		}
		if yes, no, _, _ := sc.Accepted(sc.Sets[i]); yes == 0 && no > 0 && (!sc.LeastPlan || !p.Existing || !sc.ChangesNothing(sc.Sets[i])) {
			sc.Note("%s: every record was refused, so that nothing was seen of it", p)
			sc.Unsaw(conformance.SeenAccepted) // the others are no evidence of it
			break
		}
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

// NeedReadback requires a read-back hook where nothing else can decide.
func (sc *Scenario) NeedReadback() error {
	if sc.Readback == nil {
		return engine.NotRun("readback", "needs the read-back hook: give --readback-url or --readback-command")
	}
	return nil
}

// Send makes a call. An error means that the judge failed or the run is over; the reply has what the endpoint does.
func (sc *Scenario) Send(req line.Request) (*exchange.Reply, error) {
	r, err := sc.Session.Send(sc.Ctx, sc.Check().ID, req)
	if r != nil {
		sc.Replies = append(sc.Replies, r)
	}
	return r, err
}

// Reserve waits for room for the answers about these objects, twice each: some calls are made again.
func (sc *Scenario) Reserve(calls []line.Request) error {
	size := 0
	for _, c := range calls {
		if o := sc.Catalog.Object(c.Object); o != nil {
			size += 2 * o.size
		}
	}
	if size < line.FewBytes || sc.reserved > 0 {
		return nil
	}
	n := int64(min(size, line.KeptBodies))
	if err := sc.Wide.Acquire(sc.Ctx, n); err != nil {
		return line.Overtime(sc.Ctx)
	}
	sc.reserved = n
	return nil
}

// Release gives the room to others.
func (sc *Scenario) Release() {
	if sc.reserved > 0 {
		sc.Wide.Release(sc.reserved)
	}
	sc.reserved = 0
}

// AnsweredFirst judges the disturbances of the run.
func (sc *Scenario) AnsweredFirst() error {
	sc.Disturbed.Mu.Lock()
	defer sc.Disturbed.Mu.Unlock()
	count := map[string]int{}
	lost, inPlace := 0, true
	for _, r := range sc.Disturbed.Replies {
		what := fmt.Sprintf("HTTP %d", r.Status)
		if r.Status == 0 {
			what = "a lost connection"
			lost++
		}
		count[what]++
		inPlace = inPlace && r.InPlace()
	}
	n := len(sc.Disturbed.Replies)
	if n == lost && lost < line.FewLostAnswer {
		return sc.Held()
	}
	kinds := slices.Sorted(maps.Keys(count))
	parts := lists.Of(kinds, func(what string) string { return fmt.Sprintf("%s (%s)", what, quantity.Count(count[what], "time")) })
	sc.BrokenAs(line.SymptomDisturbed, "", "an answer to each call when it is made",
		fmt.Sprintf("%s of %d had none at first, and were answered when they were made again: %s; the first was %s",
			quantity.Count(n, "call"), sc.Replicas.Calls(), strings.Join(parts, ", "), cmp.Or(sc.Disturbed.Replies[0].What(), "a call")),
		sc.Disturbed.Replies[:min(n, 4)]...)
	if inPlace {
		sc.Explain(func(s string) bool { return s == line.SymptomDisturbed },
			"a platform, gateway or balancer answers "+quantity.List(kinds)+" in place of the endpoint now and then: its workers are full or restart, or it has a limit below the one that is declared.", "", false)
	}
	return sc.Held()
}

// ServesOneConnection is the finding about an endpoint that serves one connection at a time.
func (sc *Scenario) ServesOneConnection() error {
	sc.Add(conformance.Finding{
		Expected: "calls over several connections at once are answered",
		Actual:   line.OneConnection + ": " + sc.Queued.Method + " had no answer within " + exchange.Round(sc.Queued.Total).String() + ", and was answered at once when the other connection was closed",
		Fix:      line.OneConnectionFix,
	}, line.SymptomOneConnection, []conformance.Exchange{sc.Queued.Exchange()})
	sc.Explain(func(s string) bool { return s == line.SymptomOneConnection },
		"one worker serves a connection until its end: a connection that is kept for the next call keeps out all others.", "", true)
	return sc.Held()
}

// NeedsSecondConnection ends a check of what happens at the same time where nothing does.
func (sc *Scenario) NeedsSecondConnection() error {
	if sc.Queued == nil {
		return nil
	}
	return engine.NotRun("", "%s (PAR-001)", line.OneConnection)
}
