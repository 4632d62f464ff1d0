package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// errTimeUp is the cause of a context whose run has used up Options.Timeout.
var errTimeUp = NotRun("--timeout", "the run's time was up: raise --timeout")

// overtimeOf says why the run ended before a check did.
func overtimeOf(ctx context.Context) *outcome {
	if o, timeUp := errors.AsType[*outcome](context.Cause(ctx)); timeUp {
		return o
	}
	return asOutcome(NotRun("", "the run was interrupted"))
}

// Suite is a side of the protocol as the engine judges it: selection, order, confirmation, gates, waivers, verdict and report are the
// same for all suites.
type Suite struct {
	Name      string // stands in the report
	Target    string // what is judged, without secrets
	Catalogue *conformance.Catalogue
	Steps     []Step
	Secrets   *wire.Redactor
	// Symptoms: the findings of the suite carry symptoms. What a failed check shows
	// beyond those of the checks that it builds on keeps it a failure of its own; without
	// symptoms every failure blocks what builds on it.
	Symptoms bool
	// Permitted says why a check cannot run with what there is, as an Outcome;
	// nil when it can. It may be nil.
	Permitted func(*conformance.Check) error
	// Needs are the ids of the checks that a check builds on in this run; nil: those of
	// the catalogue.
	Needs func(*conformance.Check) []string
	// Objects are what a check of each object looks at, one after the other. It may be nil.
	Objects func() []string
	// Known gives the name of a difference by which a failure of the check was to
	// be expected, which is then WAIVED; "" is none. It may be nil.
	Known func(*conformance.Check) string
	// Waits reports which checks mostly wait in this run, and disturb no other check: they
	// run side by side, also those that would else run alone. It may be nil.
	Waits func(*conformance.Check) bool
	Stages
}

// Stages are what a suite does at each stage of a run, in this order.
type Stages struct {
	// Open looks whether there is something to judge by the checks of the run. When it
	// is not ready no check runs; what stands against it goes into the problems of the
	// report.
	Open func(ctx context.Context, r *conformance.Report, checks []*conformance.Check) (ready bool, err error)
	// Before is called before each scenario, to journal what it will make; an error
	// is one of the judge. It may be nil.
	Before func(*conformance.Check) error
	// NewActor makes the actor of one scenario. The function that comes back undoes
	// what the scenario began, also when the run was interrupted. Its error takes the
	// place of a PASS, and an Outcome that of any other.
	NewActor func(ctx context.Context, found *Findings) (actor any, end func() error)
	// Settled gets the final result of each check, before those that are Last begin. It may
	// be nil.
	Settled func(*conformance.CheckResult)
	// Overall adds what the run as a whole shows against a check that has passed in its
	// own scenario; shown reports whether a failed check has a symptom already, or one that
	// warns where warnings count. It may be
	// nil.
	Overall func(ctx context.Context, found *Findings, shown func(symptom string, warnings bool) bool)
	// CleanUp removes what the run has made, before the run as a whole is judged; late
	// reports that the time of the run was up. It may be nil.
	CleanUp func(ctx context.Context, r *conformance.Report, late bool)
	// Finish cleans up and completes the report, before the verdict. late reports that
	// the time of the run was up.
	Finish func(ctx context.Context, r *conformance.Report, late bool)
}

// Run judges. An error means that the judge could not judge; a *UsageError is a mistake
// of the caller.
func (s *Suite) Run(ctx context.Context, opts conformance.Options) (*conformance.Report, error) {
	opts = opts.WithDefaults()
	checks, err := s.Select(&opts)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, opts.Timeout, errTimeUp)
	defer cancel()
	r := opts.NewReport(s.Name, s.Target, started)
	sched := newScheduler(s, &opts, checks)
	ready, err := s.Open(limited, r, checks)
	if err != nil {
		return nil, s.HideError(err)
	}
	if ready {
		sched.run(limited)
	}
	if s.CleanUp != nil {
		s.CleanUp(ctx, r, limited.Err() != nil)
	}
	if ready {
		sched.judgeOverall(limited)
		if s.Symptoms {
			sched.foldLate()
		}
	}
	sched.collect(r)
	s.Finish(ctx, r, limited.Err() != nil)
	interrupted(ctx, limited, &opts, r)
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	opts.Conclude(r, s.Catalogue)
	hide(s.Secrets, r)
	return r, nil
}

// Select chooses the checks of a run by its options; mistakes are *UsageError.
func (s *Suite) Select(opts *conformance.Options) ([]*conformance.Check, error) {
	checks, err := opts.SelectChecks(s.Catalogue)
	if err != nil {
		return nil, err
	}
	for _, c := range checks {
		if !c.Own {
			continue
		}
		if odd := undefinedSteps(c, s.Steps); len(odd) > 0 {
			return nil, &conformance.UsageError{Message: fmt.Sprintf("%s:%d: scenario %q has a step that is not known (or matches twice): %s; 'destkit checks --steps' lists the steps",
				c.File, c.Line, c.Title, odd[0])}
		}
	}
	return checks, nil
}

// Sentences lists what a feature file of the suite may say, as regular expressions.
func (s *Suite) Sentences() []string { return sentences(s.Steps) }

func sentences(known []Step) []string {
	return lists.Of(known, func(d Step) string { return d.pattern.String() })
}

// interrupted reports a run that did not reach its end.
func interrupted(ctx, limited context.Context, o *conformance.Options, r *conformance.Report) {
	switch {
	case ctx.Err() != nil:
		r.Problems = append(r.Problems, conformance.Problem{Kind: "interrupted", ExitStatus: 3, Message: "the run was interrupted before its end"})
	case limited.Err() != nil:
		r.Notes = append(r.Notes, fmt.Sprintf("the run reached its --timeout of %s: what was not reached is NOT_RUN", o.Timeout))
	}
}

// Try runs one check outside of a run, its scenario altered, or with one of its
// claims (without keyword) counting as its opposite: a test of the catalogue
// sees so that no claim is empty words. Open must have been called.
func (s *Suite) Try(ctx context.Context, id string, alter func(source string) string, negated string) *Result {
	check, ok := s.Catalogue.Check(id)
	if !ok {
		return &Result{CheckResult: conformance.CheckResult{ID: id, Status: conformance.HarnessError, Reason: "no such check"}}
	}
	altered := *check
	altered.Source = alter(check.Source)
	return s.judge(ctx, &altered, false, negated)
}

// Findings are those of a check before it has run: none.
func (s *Suite) Findings(c *conformance.Check) *Findings {
	return &Findings{check: c, secrets: s.Secrets}
}

// Judge judges one check, outside of a run's order: what it builds on is not looked at.
// Open must have been called.
func (s *Suite) Judge(ctx context.Context, c *conformance.Check) *Result {
	return s.judge(ctx, c, false, "")
}

// judge runs a check, for each object where it looks at one object. again: it has failed
// once, and runs alone. negated is a claim that counts as its opposite; "" is none.
func (s *Suite) judge(ctx context.Context, c *conformance.Check, again bool, negated string) *Result {
	if s.Permitted != nil {
		if err := s.Permitted(c); err != nil {
			return s.Findings(c).result(asOutcome(err), false)
		}
	}
	one := func(object string) *Result {
		found := s.Findings(c)
		found.object, found.again = object, again
		return s.runCheck(ctx, found, negated)
	}
	if !c.EachObject || s.Objects == nil {
		return one("")
	}
	var parts []*Result
	objects := s.Objects()
	for _, name := range objects {
		part := one(name)
		parts = append(parts, part)
		if c.FirstObject && part.Status != conformance.NotApplicable {
			break
		}
	}
	notes := notesOf(objects, parts)
	r := merge(c, parts)
	r.Notes = notes
	return r
}

// notesOf are the notes of a check that looked at several objects: what holds for all of
// them is said once, else with the names of those for which it does.
func notesOf(objects []string, parts []*Result) (notes []string) {
	about := map[string][]string{}
	var order []string
	looked := 0
	for i, p := range parts {
		if p.Status != conformance.NotApplicable {
			looked++
		}
		for _, n := range p.Notes {
			if about[n] == nil {
				order = append(order, n)
			}
			about[n] = append(about[n], objects[i])
		}
	}
	for _, n := range order {
		names := about[n]
		if len(names) < looked && !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(n, name) }) {
			n = quantity.List(names) + ": " + n
		}
		notes = append(notes, n)
	}
	return notes
}

// runCheck runs the scenario of a check once, for one object or none.
func (s *Suite) runCheck(ctx context.Context, found *Findings, negated string) *Result {
	if ctx.Err() != nil {
		return found.result(overtimeOf(ctx), true)
	}
	if s.Before != nil {
		if err := s.Before(found.check); err != nil {
			return found.result(asOutcome(err), false)
		}
	}
	actor, end := s.NewActor(ctx, found)
	out := runScenario(ctx, found.check, s.Steps, actor, negated)
	if err := end(); err != nil {
		if o, says := errors.AsType[*outcome](err); says || out.status == conformance.Pass {
			out = cmp.Or(o, asOutcome(err))
		}
	}
	if negated != "" {
		found.findings = nil // the opposite of the claim was asked for
	}
	return found.result(out, ctx.Err() != nil)
}

func (s *Suite) known(c *conformance.Check) string {
	if s.Known == nil {
		return ""
	}
	return s.Known(c)
}

// Plan says which checks a run would judge, and what keeps the others from it;
// nothing is sent.
func (s *Suite) Plan(opts conformance.Options) (*conformance.PlanReport, error) {
	opts = opts.WithDefaults()
	checks, err := s.Select(&opts)
	if err != nil {
		return nil, err
	}
	p := &conformance.PlanReport{Target: s.Target, Objects: []conformance.PlanObject{}, Keys: []string{}, Undecidable: []string{}, Notes: []string{}}
	for _, c := range checks {
		planned := conformance.PlannedCheck{ID: c.ID, Title: c.Title, Level: c.Level, Runs: true}
		if err := s.Permitted(c); err != nil {
			o := asOutcome(err)
			planned.Runs, planned.Reason, planned.Decider = false, o.reason, o.decider
			if c.Level == conformance.Must && c.Gates(opts.Profile) {
				p.Undecidable = append(p.Undecidable, c.ID)
			}
		}
		p.Checks = append(p.Checks, planned)
	}
	return p, nil
}

// attempt judges a check in a run.
func (s *Suite) attempt(ctx context.Context, c *conformance.Check, again bool) *Result {
	started := time.Now()
	r := s.judge(ctx, c, again, "")
	r.Attempts = 1
	if name := s.known(c); name != "" && r.Status == conformance.Fail {
		r.Status, r.Reason = conformance.Waived, "known difference: "+name
		r.Waiver = &conformance.Waiver{Check: c.ID, Reason: r.Reason}
	}
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	return r
}

// blocks reports whether the failure of a check leaves those that build on it without
// any evidence. Where symptoms tell defects apart, a check runs although another one that
// it builds on has failed: it looks for its evidence elsewhere, in what the defect leaves
// whole. Only calls that are not answered in time or without an end, which would use up
// the run, and certificates keep every answer away.
func (s *Suite) blocks(id string, r *Result) bool {
	return !s.Symptoms || strings.HasPrefix(id, "TLS-") || slices.ContainsFunc(r.Symptoms, func(symptom string) bool {
		return strings.HasSuffix(symptom, ": "+string(wire.KindTimeout)) || strings.HasSuffix(symptom, ": "+string(wire.KindTooLarge))
	})
}

// needs are the ids of the checks that c builds on in this run.
func (s *Suite) needs(c *conformance.Check) []string {
	if s.Needs == nil {
		return c.Needs
	}
	return s.Needs(c)
}

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
