package destination

import (
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/conformance/internal/rules"
	"github.com/destkit/destkit/destsim/rpc"
)

// ruler puts each exchange to the rules that traffic can decide, and keeps the findings. A
// live run, a proxy and a recording have the same. One goroutine at a time may use it.
type ruler struct {
	s       *session // with what the exchanges have shown of the endpoint
	suite   *engine.Suite
	traffic *rules.Traffic
	checks  []*passiveCheck
	byID    map[string]*passiveCheck
}

// passiveCheck is one check with what was seen of it.
type passiveCheck struct {
	check  *conformance.Check
	sc     *scenario        // used again for each exchange
	found  *engine.Findings // of all exchanges
	looked int
	reason string // why the latest exchange decided nothing
}

// newRuler has the rules of the checks that are selected.
func newRuler(s *session, suite *engine.Suite, selected []*conformance.Check) (r *ruler, err error) {
	s.catalog = &catalog{}
	r = &ruler{s: s, suite: suite, byID: map[string]*passiveCheck{}}
	if r.traffic, err = rules.New(s.terms(), selected); err != nil {
		return nil, err
	}
	for _, c := range selected {
		pc := &passiveCheck{check: c, found: suite.Findings(c), sc: s.newScenario(nil, c, nil)} //nolint:staticcheck // nothing is sent
		r.checks, r.byID[c.ID] = append(r.checks, pc), pc
	}
	return r, nil
}

// see judges an exchange; the ids are those of the checks that it breaks.
func (r *ruler) see(c *rules.Call) (broken []string) {
	for _, v := range r.traffic.See(c) {
		if r.byID[v.Check.ID].take(v) {
			broken = append(broken, v.Check.ID)
		}
	}
	r.learn(c)
	return broken
}

// conclude judges what only the whole shows; it may be called again.
func (r *ruler) conclude(pc *passiveCheck) {
	if !rules.Concludes(pc.check.ID) {
		return
	}
	pc.found, pc.looked, pc.reason = r.suite.Findings(pc.check), 0, ""
	for _, v := range r.traffic.Conclude(pc.check.ID) {
		pc.take(v)
	}
}

// take adds a verdict; it reports whether the rule is broken.
func (pc *passiveCheck) take(v rules.Verdict) bool {
	sc := pc.sc
	sc.Reset()
	sc.replies = v.Look.Replies
	pc.looked += v.Looked
	if v.Undecided != "" {
		if pc.reason = v.Undecided; len(v.Look.Breaches) == 0 {
			return false
		}
	}
	broken := sc.takes(v.Look, nil) != nil
	sc.replies = nil // large ones live no longer than they are looked at
	pc.found.Take(sc.Findings)
	switch {
	case v.Look.Handshake != nil:
		pc.found.Saw(conformance.SeenHandshakes, 1)
	case v.Answers > 0:
		pc.found.Saw(conformance.SeenAnswers, v.Answers)
	case !broken && v.Call != nil:
		pc.count(v.Call)
	}
	return broken
}

// count adds the evidence of an exchange that breaks no claim.
func (pc *passiveCheck) count(c *rules.Call) {
	pc.found.Saw(conformance.SeenAttempts, 1)
	sawReply(pc.found, c.Reply())
	if c.Batch == nil {
		return
	}
	pc.found.Saw(conformance.SeenResults, len(c.Batch.List))
	accepted, refused := c.Batch.Statuses()
	pc.found.Saw(conformance.SeenAccepted, accepted)
	pc.found.Saw(conformance.SeenRefused, refused)
}

// learn keeps what an exchange says of the endpoint, for reports.
func (r *ruler) learn(c *rules.Call) {
	if !c.Good() || c.Result() == nil {
		return
	}
	known := r.s.catalog
	switch o := known.object(c.Object); {
	case c.Method == rpc.MethodListObjects:
		now := readObjects(c.Reply())
		for _, o := range now {
			if was := known.object(o.APIName); was != nil {
				o.Fields = was.Fields
			}
		}
		known.objects, known.listed = now, true
	case c.Method == rpc.MethodListFields && o != nil:
		o.Fields = c.Fields()
	case c.Method == rpc.MethodGetSyncSpeed:
		known.speed = c.Speed()
	}
	known.rateLimit = r.traffic.RateLimit()
}
