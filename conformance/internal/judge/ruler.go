package judge

import (
	"sync"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/exchange"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/conformance/internal/write"
	"github.com/destkit/destkit/destsim/rpc"
)

// Ruler puts each exchange to the rules that traffic can decide, and keeps the findings. A
// live run, a proxy and a recording have the same. One goroutine at a time may use it.
type Ruler struct {
	S       *Judge // with what the exchanges have shown of the endpoint
	Suite   *engine.Suite
	Traffic *rules.Traffic
	Checks  []*passiveCheck
	ByID    map[string]*passiveCheck
}

// passiveCheck is one check with what was seen of it.
type passiveCheck struct {
	check  *conformance.Check
	sc     *Scenario        // used again for each exchange
	Found  *engine.Findings // of all exchanges
	Looked int
	Reason string // why the latest exchange decided nothing
}

// NewRuler has the rules of the checks that are selected.
func NewRuler(s *Judge, suite *engine.Suite, selected []*conformance.Check) (r *Ruler, err error) {
	s.Catalog = &write.Catalog{}
	r = &Ruler{S: s, Suite: suite, ByID: map[string]*passiveCheck{}}
	if r.Traffic, err = rules.New(s.terms(), selected); err != nil {
		return nil, err
	}
	for _, c := range selected {
		pc := &passiveCheck{check: c, Found: suite.Findings(c), sc: s.NewScenario(nil, c, nil)} //nolint:staticcheck // nothing is sent
		r.Checks, r.ByID[c.ID] = append(r.Checks, pc), pc
	}
	return r, nil
}

// See judges an exchange; the ids are those of the checks that it breaks.
func (r *Ruler) See(c *rules.Call) (broken []string) {
	for _, v := range r.Traffic.See(c) {
		if r.ByID[v.Check.ID].take(v) {
			broken = append(broken, v.Check.ID)
		}
	}
	r.learn(c)
	return broken
}

// Conclude judges what only the whole shows; it may be called again.
func (r *Ruler) Conclude(pc *passiveCheck) {
	if !rules.Concludes(pc.check.ID) {
		return
	}
	pc.Found, pc.Looked, pc.Reason = r.Suite.Findings(pc.check), 0, ""
	for _, v := range r.Traffic.Conclude(pc.check.ID) {
		pc.take(v)
	}
}

// take adds a verdict; it reports whether the rule is broken.
func (pc *passiveCheck) take(v rules.Verdict) bool {
	sc := pc.sc
	sc.Reset()
	sc.Replies = v.Look.Replies
	pc.Looked += v.Looked
	if v.Undecided != "" {
		if pc.Reason = v.Undecided; len(v.Look.Breaches) == 0 {
			return false
		}
	}
	broken := sc.takes(v.Look, nil) != nil
	sc.Replies = nil // large ones live no longer than they are looked at
	pc.Found.Take(sc.Findings)
	switch {
	case v.Look.Handshake != nil:
		pc.Found.Saw(conformance.SeenHandshakes, 1)
	case v.Answers > 0:
		pc.Found.Saw(conformance.SeenAnswers, v.Answers)
	case !broken && v.Call != nil:
		pc.Found.Saw(conformance.SeenAttempts, 1)
		write.SawReply(pc.Found, v.Call.Reply())
		if b := v.Call.Batch; b != nil {
			pc.Found.Saw(conformance.SeenResults, len(b.List))
			accepted, refused := b.Statuses()
			pc.Found.Saw(conformance.SeenAccepted, accepted)
			pc.Found.Saw(conformance.SeenRefused, refused)
		}
	}
	return broken
}

// learn keeps what an exchange shows about the endpoint, for reports.
func (r *Ruler) learn(c *rules.Call) {
	if !c.Good() || c.Result() == nil {
		return
	}
	known := r.S.Catalog
	switch o := known.Object(c.Object); {
	case c.Method == rpc.MethodListObjects:
		now := write.ReadObjects(c.Reply())
		for _, o := range now {
			if was := known.Object(o.APIName); was != nil {
				o.Fields = was.Fields
			}
		}
		known.Objects, known.Listed = now, true
	case c.Method == rpc.MethodListFields && o != nil:
		o.Fields = c.Fields()
	case c.Method == rpc.MethodGetSyncSpeed:
		known.Speed = c.Speed()
	}
	known.RateLimit = r.Traffic.RateLimit()
}

// overall puts the exchanges of a live run to the rules, as a proxy does with those of others.
type overall struct {
	Mu    sync.Mutex
	Rules *Ruler
	Calls int
	Lost  []*exchange.Reply // good calls that got no response
}

// batchIsProcessed is the rule with a separate step, batchesProcessed.
const batchIsProcessed = "every batch is processed"
