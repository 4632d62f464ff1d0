package conformance

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// Suite is a side of the protocol beside the destination, as the engine judges
// it: selection, order, confirmation, gates, waivers, verdict and report are the
// same for all suites.
type Suite struct {
	Name      string // stands in the report
	Target    string // what is judged, without secrets
	Catalogue *Catalogue
	Steps     []Step
	Secrets   *wire.Redactor
	// Permitted says why a check cannot run with what there is, as an Outcome;
	// nil when it can.
	Permitted func(*Check) error
	// Before is called before each scenario, to journal what it will make; an error
	// is one of the judge. It may be nil.
	Before func(*Check) error
	// Known gives the name of a difference by which a failure of the check was to
	// be expected, which is then WAIVED; "" is none. It may be nil.
	Known func(*Check) string
	// Waits reports which checks mostly wait in this run, and disturb no other check: they
	// run side by side, also those that would else run alone. It may be nil.
	Waits func(*Check) bool
	// NewActor makes the actor of one scenario. The function that comes back undoes
	// what the scenario began, also when the run was interrupted.
	NewActor func(ctx context.Context, found *Findings) (actor any, end func() error)
	// Open looks whether there is something to judge; what stands against it
	// goes into the problems of the report, and then no check runs.
	Open func(ctx context.Context, r *Report) error
	// Finish cleans up and completes the report, before the verdict.
	Finish func(ctx context.Context, r *Report)
}

// Run judges. As with Run for a destination, an error means that the judge could
// not judge; a *UsageError is a mistake of the caller.
func (s *Suite) Run(ctx context.Context, opts Options) (*Report, error) {
	opts = opts.withDefaults()
	checks, err := s.Select(&opts)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, opts.Timeout, errRunTimeout)
	defer cancel()
	r := opts.newReport(s.Name, s.Target, started)
	each := &suiteRunner{s, &opts}
	sched := newScheduler(each, &opts, checks)
	sched.waits = s.Waits
	if err := s.Open(limited, r); err != nil {
		return nil, hideError(s.Secrets, err)
	}
	if len(r.Problems) == 0 {
		sched.run(limited)
	}
	sched.collect(r)
	s.Finish(ctx, r)
	opts.interrupted(ctx, limited, r)
	opts.decide(r, s.Catalogue)
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	r.Summary = summary(r)
	hide(s.Secrets, r)
	return r, nil
}

// Select chooses the checks of a run by its options; mistakes are *UsageError.
func (s *Suite) Select(opts *Options) ([]*Check, error) {
	if err := opts.checkWaivers(); err != nil {
		return nil, err
	}
	checks, err := opts.selectChecks(s.Catalogue)
	if err != nil {
		return nil, err
	}
	own, err := opts.ownChecks(s.Steps)
	if err != nil {
		return nil, err
	}
	return append(checks, own...), nil
}

// Sentences lists what a feature file of the suite may say, as regular expressions.
func (s *Suite) Sentences() []string { return sentences(s.Steps) }

// Try runs one check outside of a run, its scenario altered, or with one of its
// claims (without keyword) counting as its opposite: a test of the catalogue
// sees so that no claim is empty words. Open must have been called.
func (s *Suite) Try(ctx context.Context, id string, alter func(source string) string, negated string) *CheckResult {
	check, ok := s.Catalogue.Check(id)
	if !ok {
		return &CheckResult{ID: id, Status: HarnessError, Reason: "no such check"}
	}
	altered := *check
	altered.source = []byte(alter(string(check.source)))
	return s.runCheck(ctx, &altered, negated)
}

func (s *Suite) runCheck(ctx context.Context, c *Check, negated string) *CheckResult {
	found := &Findings{check: c, secrets: s.Secrets}
	if ctx.Err() != nil {
		return found.result(asOutcome(overtime(ctx)), true)
	}
	if s.Permitted != nil {
		if err := s.Permitted(c); err != nil {
			return found.result(asOutcome(err), false)
		}
	}
	if s.Before != nil {
		if err := s.Before(c); err != nil {
			return found.result(asOutcome(err), false)
		}
	}
	actor, end := s.NewActor(ctx, found)
	out := runScenario(c, s.Steps, actor, negated)
	if err := end(); err != nil && out.status == Pass {
		out = asOutcome(err)
	}
	if negated != "" {
		found.findings = nil // the opposite of the claim was asked for
	}
	return found.result(out, ctx.Err() != nil)
}

func (s *Suite) known(c *Check) string {
	if s.Known == nil {
		return ""
	}
	return s.Known(c)
}

// Plan says which checks a run would judge, and what keeps the others from it;
// nothing is sent.
func (s *Suite) Plan(opts Options) (*PlanReport, error) {
	opts = opts.withDefaults()
	checks, err := s.Select(&opts)
	if err != nil {
		return nil, err
	}
	p := &PlanReport{Target: s.Target, Objects: []PlanObject{}, Keys: []string{}, Undecidable: []string{}, Notes: []string{}}
	for _, c := range checks {
		planned := PlannedCheck{ID: c.ID, Title: c.Title, Level: c.Level, Runs: true}
		if err := s.Permitted(c); err != nil {
			o := asOutcome(err)
			planned.Runs, planned.Reason, planned.Decider = false, o.reason, o.decider
			if c.Level == Must && gates(c, opts.Profile) {
				p.Undecidable = append(p.Undecidable, c.ID)
			}
		}
		p.Checks = append(p.Checks, planned)
	}
	return p, nil
}

// suiteRunner is a suite in a run.
type suiteRunner struct {
	suite *Suite
	opts  *Options
}

func (c *suiteRunner) judge(ctx context.Context, check *Check, _ *scheduler) *CheckResult {
	started := time.Now()
	r := c.suite.runCheck(ctx, check, "")
	r.Attempts = 1
	if name := c.suite.known(check); name != "" && r.Status == Fail {
		r.Status, r.Reason = Waived, "known difference: "+name
		r.Waiver = &Waiver{Check: check.ID, Reason: r.Reason}
	}
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	return r
}

// blocks: the findings of these suites carry no symptoms to compare, so every
// failure blocks.
func (c *suiteRunner) blocks(string, *CheckResult) bool { return true }

// Undefined lists the steps of the catalogue that no sentence, or more than one,
// understands, as "ID: step".
func (s *Suite) Undefined() []string {
	var out []string
	for _, c := range s.Catalogue.Checks {
		for _, step := range undefinedSteps(c, s.Steps) {
			out = append(out, c.ID+": "+step)
		}
	}
	return out
}

// Claims are the Then lines of a check without their keywords.
func (c *Check) Claims() []string {
	var out []string
	claims := false
	for _, step := range c.Steps {
		keyword, text, _ := strings.Cut(step, " ")
		claims = keyword == "Then" || keyword == "And" && claims
		if claims && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}
