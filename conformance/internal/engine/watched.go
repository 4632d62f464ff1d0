package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/quantity"
)

// Watched is one check of a suite that is judged by what others do. One goroutine at a
// time may use it.
type Watched struct {
	check  *conformance.Check
	found  *Findings // of all exchanges
	state  *Findings // of the actor
	bound  []func() error
	looked int
	reason string // why the latest exchange decided nothing
	// decided counts the judgements of which one claim at least had enough to tell.
	decided int
}

// Watch prepares a check. newActor makes the actor that its claims look at, for the
// findings that they add to; claims are those that can be decided (none: they are given
// to JudgeBy).
func (s *Suite) Watch(id string, newActor func(*Findings) any, claims ...string) (*Watched, error) {
	check, ok := s.Catalogue.Check(id)
	if !ok {
		return nil, fmt.Errorf("watch %s: no such check", id)
	}
	w := &Watched{check: check, found: s.Findings(check), state: s.Findings(check)}
	actor := newActor(w.state)
	if len(claims) > 0 {
		var err error
		if w.bound, err = s.Claims(check, actor, claims...); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Claims are claims of a check, tied to an actor: each returns what its step returns. The
// texts are those of Check.Claims.
func (s *Suite) Claims(c *conformance.Check, actor any, texts ...string) ([]func() error, error) {
	out := claimsOf(c, s.Steps, actor, texts)
	if len(out) < len(texts) {
		return nil, fmt.Errorf("read %s: %d of its %s are known", c.ID, len(out), quantity.Count(len(texts), "claim"))
	}
	return out, nil
}

// Judge puts the claims to the actor as it is now; it reports whether one is broken.
func (w *Watched) Judge() bool { return w.JudgeBy(w.bound...) }

// JudgeBy does the same with claims of the caller, which are methods of the actor.
func (w *Watched) JudgeBy(claims ...func() error) bool {
	w.state.Reset()
	w.looked++
	decided := 0
	for _, claim := range claims {
		// A claim that the evidence does not decide leaves the others to be judged.
		if err := claim(); err != nil && asOutcome(err).status != conformance.Fail {
			w.reason = asOutcome(err).reason
			continue
		}
		decided = 1
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
	found := *w.found // a report may be asked for again
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

// Observed sums up a judgement of what others did. result gives what each of the selected
// checks comes to, complete adds what was seen besides: calls, records, the time.
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
	byID := map[string]*conformance.Check{}
	for _, c := range checks {
		byID[c.ID] = c
	}
	var out []*conformance.Check
	done := map[string]bool{}
	var visit func(c *conformance.Check)
	visit = func(c *conformance.Check) {
		if c == nil || done[c.ID] {
			return
		}
		done[c.ID] = true
		for _, id := range c.Needs {
			visit(byID[id])
		}
		out = append(out, c)
	}
	for _, c := range checks {
		visit(c)
	}
	return out
}

// activeServiceJudging decides what the traffic of a service cannot.
const activeServiceJudging = "active judging (destkit conform service)"
