package destination

import (
	"slices"
	"sync/atomic"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/destsim/rpc"
)

// ruler puts each exchange to the rules that traffic can decide. A live run, a proxy and
// a recording have the same. One goroutine at a time may use it.
type ruler struct {
	s         *session // with what the exchanges have shown of the endpoint
	suite     *engine.Suite
	checks    []*passiveCheck
	byID      map[string]*passiveCheck
	seen      traffic
	handshake atomic.Pointer[tlsFacts] // the latest
}

// passiveCheck is one check with what was seen of it.
type passiveCheck struct {
	check  *conformance.Check
	rule   *passiveRule // nil: traffic alone does not decide it
	sc     *scenario    // used again for each exchange
	claims []func() error
	found  *engine.Findings // of all exchanges
	looked int
	reason string // why the latest exchange decided nothing
}

// newRuler has the rules of the checks that are selected.
func newRuler(s *session, suite *engine.Suite, selected []*conformance.Check) (*ruler, error) {
	s.catalog = &catalog{}
	p := &ruler{s: s, suite: suite, seen: newTraffic(), byID: map[string]*passiveCheck{}}
	for _, c := range selected {
		pc := &passiveCheck{check: c, rule: passiveRules[c.ID], found: suite.Findings(c)}
		if pc.rule != nil {
			if err := p.bind(pc); err != nil {
				return nil, err
			}
		}
		p.checks, p.byID[c.ID] = append(p.checks, pc), pc
	}
	return p, nil
}

// see judges an exchange; the ids are those of the checks that it breaks.
func (p *ruler) see(c *sighted) (broken []string) {
	for _, pc := range p.checks {
		if pc.rule != nil && pc.rule.takes(p, c) && p.judge(pc, c) {
			broken = append(broken, pc.check.ID)
		}
	}
	p.seen.keep(p, c)
	return broken
}

// bind finds the claims of a check and ties them to a scenario of its own.
func (p *ruler) bind(pc *passiveCheck) (err error) {
	pc.sc = p.s.newScenario(nil, pc.check, nil) //nolint:staticcheck // nothing is sent
	wanted := pc.check.Claims()
	if pc.rule.claims != nil {
		wanted = pc.rule.claims
	}
	pc.claims, err = p.suite.Claims(pc.check, pc.sc, wanted...)
	return err
}

// judge puts an exchange to the claims of a check; it reports whether one is broken.
func (p *ruler) judge(pc *passiveCheck, c *sighted) bool {
	sc := pc.sc
	sc.Reset()
	sc.notArrived, sc.object = nil, nil
	sc.replies, sc.batches = append(sc.replies[:0], c.reply), sc.batches[:0]
	if c.batch != nil {
		sc.batches, sc.object = append(sc.batches, c.batch), c.batch.object
	}
	if pc.rule.with != nil {
		pc.rule.with(p, c, sc)
	}
	sc.latest = sc.batches
	defer func() {
		sc.target.Token = "" // a claim may look for it in a reply
		clear(sc.replies)    // large ones live no longer than they are looked at
		clear(sc.batches)
		sc.latest, sc.object = nil, nil
	}()
	pc.looked++
	for _, claim := range pc.claims {
		err := claim()
		if err == nil {
			continue
		}
		if statusOf(err) != conformance.Fail {
			pc.reason = reasonOf(err)
			if sc.Held() == nil {
				return false
			}
		}
		break
	}
	broken := sc.Held() != nil
	pc.found.Take(sc.Findings)
	if !broken {
		pc.count(c)
	}
	return broken
}

// count adds the evidence of an exchange that breaks no claim.
func (pc *passiveCheck) count(c *sighted) {
	found := pc.found
	found.Saw(conformance.SeenAttempts, 1)
	if c.OK() {
		found.Saw(conformance.SeenResponses, 1)
	}
	switch {
	case c.IsError():
		found.Saw(conformance.SeenErrors, 1)
		found.Saw(conformance.SeenEnvelopes, 1)
	case c.Result() != nil:
		found.Saw(conformance.SeenAnswers, 1)
		found.Saw(conformance.SeenEnvelopes, 1)
	}
	if c.batch == nil {
		return
	}
	found.Saw(conformance.SeenResults, len(c.batch.List))
	for _, r := range c.batch.List {
		if r.Success != nil && *r.Success {
			found.Saw(conformance.SeenAccepted, 1)
		} else if r.Success != nil {
			found.Saw(conformance.SeenRefused, 1)
		}
	}
}

// known reports whether the method is one of the protocol.
func (c *sighted) known() bool { return slices.Contains(rpc.Methods(), c.Method) }

// judgeTLS puts the latest handshake to the TLS checks.
func (p *ruler) judgeTLS(pc *passiveCheck) {
	f := p.handshake.Load()
	switch {
	case !p.s.tlsJudged():
		return
	case p.s.url.Scheme != "https" && pc.check.ID == "TLS-001":
		f = &tlsFacts{}
	case f == nil:
		return
	}
	sc := pc.sc
	sc.Reset()
	sc.handshaken, sc.replies, sc.object = f, nil, nil
	pc.looked++
	for _, claim := range pc.claims {
		if claim() != nil {
			break
		}
	}
	pc.found.Take(sc.Findings)
	pc.found.Saw(conformance.SeenHandshakes, 1)
}
