package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/quantity"
)

// Watched is one check that is judged by what others do, by one goroutine at a time.
type Watched struct {
	check   *conformance.Check
	found   *Findings // of all exchanges
	state   *Findings // of the actor
	bound   []func() error
	looked  int
	decided int    // of these, by one claim at least
	reason  string // why the latest exchange decided nothing
}

// Watch prepares a check. newActor makes the actor that its claims look at; claims are those
// that can be decided (none: they are given to JudgeBy).
func (s *Suite) Watch(id string, newActor func(*Findings) any, claims ...string) (*Watched, error) {
	check, ok := s.Catalogue.Check(id)
	if !ok {
		return nil, fmt.Errorf("watch %s: no such check", id)
	}
	w := &Watched{check: check, found: s.Findings(check), state: s.Findings(check)}
	if actor := newActor(w.state); len(claims) > 0 {
		w.bound = claimsOf(check, s.Steps, actor, claims)
	}
	if len(w.bound) < len(claims) {
		return nil, fmt.Errorf("read %s: %d of its %s are known", id, len(w.bound), quantity.Count(len(claims), "claim"))
	}
	return w, nil
}

// Judge puts the claims to the actor as it is now; it reports whether one is broken.
func (w *Watched) Judge() bool { return w.JudgeBy(w.bound...) }

// JudgeBy does the same with claims of the caller, which are methods of the actor.
func (w *Watched) JudgeBy(claims ...func() error) bool {
	w.state.Reset()
	w.looked++
	decided := 0
	for _, claim := range claims {
		switch o := asOutcome(claim()); o.status {
		case conformance.Pass, conformance.Fail:
			decided = 1
		default: // leaves the other claims to be judged
			w.reason = o.reason
		}
	}
	w.decided += decided
	w.found.Take(w.state)
	return w.state.Held() != nil
}

// ID is that of the check.
func (w *Watched) ID() string { return w.check.ID }

// WatchedReport sums up checks that were judged by what others did.
func (s *Suite) WatchedReport(watched []*Watched, opts conformance.Options, started time.Time, spent time.Duration, calls, records int) (*conformance.Report, error) {
	opts = opts.WithDefaults()
	if len(opts.Select) == 0 { // a suite has hundreds of checks that traffic shows nothing of
		for _, w := range watched {
			opts.Select = append(opts.Select, w.check.ID)
		}
	}
	checks, err := s.Select(&opts)
	if err != nil {
		return nil, err
	}
	result := func(c *conformance.Check) *Result {
		at := slices.IndexFunc(watched, func(w *Watched) bool { return w.check.ID == c.ID })
		if at < 0 {
			return s.Findings(c).Result(NotRun(activeServiceJudging, "needs active judging: traffic alone does not show it"))
		}
		return watched[at].result()
	}
	return s.Observed(opts, checks, started, result, func(r *conformance.Report) {
		r.Tier, r.Calls, r.Records = conformance.TierProtocol, calls, records
		r.DurationMS = float64(spent.Microseconds()) / 1000
	}), nil
}

// result is what the check comes to.
func (w *Watched) result() *Result {
	found := *w.found // a report can be requested again
	switch {
	case w.looked == 0:
		return found.Result(Inconclusive(activeServiceJudging, "no call went by that shows it"))
	case w.decided == 0:
		return found.Result(Inconclusive(activeServiceJudging, "%s", w.reason))
	}
	found.Proof("%s looked at", quantity.Count(w.decided, "time"))
	r := found.Result(nil)
	r.Attempts = w.looked
	return r
}

// Observed sums up a judgement of what others did. result gives what each of the selected checks
// comes to, complete adds what else was seen: calls, records, the time.
func (s *Suite) Observed(opts conformance.Options, checks []*conformance.Check, started time.Time, result func(*conformance.Check) *Result, complete func(*conformance.Report)) *conformance.Report {
	r := opts.NewReport(s.Name, s.Target, started)
	r.Settings.Passive = true
	sched := newScheduler(s, &opts, checks)
	for _, c := range needsFirst(checks) {
		sched.settle(c, result(c))
	}
	if s.Symptoms {
		sched.foldFields()
	}
	sched.collect(r)
	complete(r)
	if r.Calls == 0 {
		r.Problems = append(r.Problems, conformance.Problem{
			Kind: "undecided", ExitStatus: 3, Message: "no call went by",
			Fix: "send the calls of the service to the address of the proxy",
		})
	}
	opts.Conclude(r, s.Catalogue)
	hide(s.Secrets, r)
	return r
}

// needsFirst are the checks with those that others build on before them.
func needsFirst(checks []*conformance.Check) []*conformance.Check {
	waiting := map[string]*conformance.Check{}
	for _, c := range checks {
		waiting[c.ID] = c
	}
	var out []*conformance.Check
	var visit func(id string)
	visit = func(id string) {
		if c := waiting[id]; c != nil {
			delete(waiting, id)
			for _, need := range c.Needs {
				visit(need)
			}
			out = append(out, c)
		}
	}
	for _, c := range checks {
		visit(c.ID)
	}
	return out
}

// activeServiceJudging decides what the traffic of a service cannot.
const activeServiceJudging = "active judging (destkit conform service)"
