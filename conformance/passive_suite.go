package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/plural"
)

// Watched is one check of a suite that is judged by what others do. One goroutine at a
// time may use it.
type Watched struct {
	passiveCheck
	suite *Suite
	state *Findings // of the actor
	bound []func() error
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
	w := &Watched{suite: s, state: &Findings{check: check, secrets: s.Secrets}}
	w.check, w.found = check, Findings{check: check, secrets: s.Secrets}
	actor := newActor(w.state)
	if len(claims) == 0 {
		return w, nil
	}
	read := parsed(check, s.Steps, actor)
	if read.odd != nil {
		return nil, fmt.Errorf("watch %s: %s", id, read.odd.reason)
	}
	for _, b := range read.steps {
		if slices.Contains(claims, b.text) {
			w.bound = append(w.bound, direct(b, actor))
		}
	}
	if len(w.bound) < len(claims) {
		return nil, fmt.Errorf("watch %s: %d of %s are known", id, len(w.bound), plural.Count(len(claims), "claim"))
	}
	return w, nil
}

// Judge puts the claims to the actor as it is now; it reports whether one is broken.
func (w *Watched) Judge() bool { return w.JudgeBy(w.bound...) }

// JudgeBy does the same with claims of the caller, which are methods of the actor.
func (w *Watched) JudgeBy(claims ...func() error) bool {
	*w.state = Findings{check: w.check, secrets: w.suite.Secrets}
	w.looked++
	decided := 0
	for _, claim := range claims {
		// A claim that the evidence does not decide leaves the others to be judged.
		if err := claim(); err != nil && asOutcome(err).status != Fail {
			w.reason = asOutcome(err).reason
			continue
		}
		decided = 1
	}
	w.decided += decided
	broken := len(w.state.findings) > 0
	w.take(w.state)
	return broken
}

// ID is that of the check.
func (w *Watched) ID() string { return w.check.ID }

// WatchedReport sums up checks that were judged by what others did.
func (s *Suite) WatchedReport(watched []*Watched, opts Options, started time.Time, spent time.Duration, calls, records int) (*Report, error) {
	opts = opts.withDefaults()
	if len(opts.Select) == 0 { // a suite has hundreds of checks that traffic shows nothing of
		for _, w := range watched {
			opts.Select = append(opts.Select, w.check.ID)
		}
	}
	checks, err := s.Select(&opts)
	if err != nil {
		return nil, err
	}
	r := opts.newReport(s.Name, s.Target, started)
	r.Settings.Passive, r.Tier = true, TierProtocol
	sched := newScheduler(s, &opts, checks)
	for _, c := range checks {
		at := slices.IndexFunc(watched, func(w *Watched) bool { return w.check.ID == c.ID })
		var res *CheckResult
		switch {
		case at < 0:
			res = c.result(NotRun, "needs active judging: traffic alone does not show it")
			res.Decider = activeServiceJudging
		case watched[at].looked == 0:
			res = c.result(Inconclusive, "no call went by that shows it")
			res.Decider = activeServiceJudging
		case watched[at].decided == 0:
			res = c.result(Inconclusive, watched[at].reason)
			res.Decider = activeServiceJudging
		default:
			found := watched[at].found
			found.Proof("%s looked at", plural.Count(watched[at].decided, "time"))
			res = found.result(&outcome{status: Pass}, false)
			res.Attempts = watched[at].looked
		}
		sched.settle(c, res)
	}
	sched.collect(r)
	r.Calls, r.Records = calls, records
	if calls == 0 {
		r.Problems = append(r.Problems, noTraffic)
	}
	opts.decide(r, s.Catalogue)
	r.DurationMS = float64(spent.Microseconds()) / 1000
	r.Summary = summary(r)
	hide(s.Secrets, r)
	return r, nil
}

// activeServiceJudging decides what the traffic of a service cannot.
const activeServiceJudging = "active judging (destkit conform service)"
