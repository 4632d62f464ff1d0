// Package engine runs the checks of a suite: selection, order, parallelism, confirmation and
// folding are the same for destinations and services. godog, which this package alone imports,
// executes each scenario. Package conformance defines checks and reports; the suites define the
// steps.
package engine

import (
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

// Suite is a side of the protocol as the engine judges it. Its functions may be nil, but for
// Open, NewActor and Finish, and Permitted of a suite that is planned.
type Suite struct {
	Name      string // in the report
	Target    string // the judged endpoint or service, without secrets
	Catalogue *conformance.Catalogue
	Steps     []Step
	Secrets   *wire.Redactor
	// Symptoms: the findings of the suite carry symptoms, which distinguish defects; without them
	// every failure blocks what builds on it.
	Symptoms  bool
	Permitted func(*conformance.Check) error    // why a check cannot run in this run, as an Outcome
	Needs     func(*conformance.Check) []string // what a check builds on; nil: as the catalogue has it
	Objects   func() []string                   // what a check of each object looks at, one after the other
	Known     func(*conformance.Check) string   // a difference for which a failure is WAIVED; "" is none
	// Waits reports which checks mostly wait in this run, and disturb no other check: they run in
	// parallel, also those that would else run alone.
	Waits func(*conformance.Check) bool
	Stages
}

// Stages are what a suite does at each stage of a run, in this order. late reports that the
// time of the run was up.
type Stages struct {
	// Open looks whether there is something to judge. When it is not ready no check runs, and the
	// problems of the report explain why.
	Open   func(ctx context.Context, r *conformance.Report, checks []*conformance.Check) (ready bool, err error)
	Before func(*conformance.Check) error // journals what a scenario will make; an error is one of the judge
	// NewActor makes the actor of one scenario. end undoes what the scenario began, also when
	// the run was interrupted; its error takes the place of a PASS, and an Outcome of any other.
	NewActor func(ctx context.Context, found *Findings) (actor any, end func() error)
	Settled  func(*conformance.CheckResult) // gets each final result, before the checks that are Last begin
	// Overall adds what the run as a whole shows against a check whose own scenario has not
	// failed; shown reports whether a failed check, or one that warns, has a symptom already.
	Overall func(ctx context.Context, found *Findings, shown func(symptom string, warnings bool) bool)
	// CleanUp removes what the run has made, and the run as a whole is judged; Finish cleans up
	// and completes the report, and the verdict follows.
	CleanUp func(ctx context.Context, r *conformance.Report, late bool)
	Finish  func(ctx context.Context, r *conformance.Report, late bool)
}

// Run judges. Its error is one of the judge, or a *UsageError: a mistake of the caller.
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
	if ctx.Err() != nil {
		r.Problems = append(r.Problems, conformance.Problem{Kind: "interrupted", ExitStatus: 3, Message: "the run was interrupted before its end"})
	} else if limited.Err() != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("the run reached its --timeout of %s: what was not reached is NOT_RUN", opts.Timeout))
	}
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
	for _, c := range lists.Where(checks, func(c *conformance.Check) bool { return c.Own }) {
		if odd := undefinedSteps(c, s.Steps); len(odd) > 0 {
			return nil, conformance.Usage("%s:%d: scenario %q has a step that is not known (or matches twice): %s; 'destkit checks --steps' lists the steps",
				c.File, c.Line, c.Title, odd[0])
		}
	}
	return checks, nil
}

// Sentences lists the sentences that a feature file of the suite can use, as regular expressions.
func (s *Suite) Sentences() []string {
	return lists.Of(s.Steps, func(d Step) string { return d.pattern.String() })
}

// Try is Judge with the scenario altered, or one of its claims counting as its opposite: so a
// test sees that no claim is empty words.
func (s *Suite) Try(ctx context.Context, id string, alter func(source string) string, negated string) *Result {
	check, _ := s.Catalogue.Check(id)
	altered := *check
	altered.Source = alter(check.Source)
	return s.judge(ctx, &altered, false, negated)
}

// Findings are those of a check before it has run: none.
func (s *Suite) Findings(c *conformance.Check) *Findings {
	return &Findings{check: c, secrets: s.Secrets}
}

// Judge judges one check, whatever becomes of those that it builds on. Open must have been called.
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
		parts = append(parts, one(name))
		if c.FirstObject && parts[len(parts)-1].Status != conformance.NotApplicable {
			break
		}
	}
	notes := notesOf(objects, parts)
	r := merge(c, parts)
	r.Notes = notes
	return r
}

// notesOf are the notes of a check of several objects, with the names of those that they do not all hold for.
func notesOf(objects []string, parts []*Result) (notes []string) {
	about := map[string][]string{}
	looked := 0
	for i, p := range parts {
		if p.Status != conformance.NotApplicable {
			looked++
		}
		for _, n := range p.Notes {
			if about[n] == nil {
				notes = append(notes, n)
			}
			about[n] = append(about[n], objects[i])
		}
	}
	for i, n := range notes {
		names := about[n]
		if len(names) < looked && !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(n, name) }) {
			notes[i] = quantity.List(names) + ": " + n
		}
	}
	return notes
}

// runCheck runs the scenario of a check once, for one object or none.
func (s *Suite) runCheck(ctx context.Context, found *Findings, negated string) *Result {
	if ctx.Err() != nil {
		out, timeUp := errors.AsType[*outcome](context.Cause(ctx))
		if !timeUp {
			out = &outcome{status: conformance.NotRun, reason: "the run was interrupted"}
		}
		return found.result(out, true)
	}
	if s.Before != nil {
		if err := s.Before(found.check); err != nil {
			return found.result(asOutcome(err), false)
		}
	}
	actor, end := s.NewActor(ctx, found)
	out := runScenario(ctx, found.check, s.Steps, actor, negated)
	if err := end(); err != nil {
		if _, says := errors.AsType[*outcome](err); says || out.status == conformance.Pass {
			out = asOutcome(err)
		}
	}
	if negated != "" {
		found.findings = nil // the scenario expects the opposite of the claim
	}
	return found.result(out, ctx.Err() != nil)
}

// Plan reports which checks a run would judge, and what keeps the others from it; it sends nothing.
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
	if r.Status == conformance.Fail && s.Known != nil {
		if name := s.Known(c); name != "" {
			r.Status, r.Reason = conformance.Waived, "known difference: "+name
			r.Waiver = &conformance.Waiver{Check: c.ID, Reason: r.Reason}
		}
	}
	r.DurationMS = float64(time.Since(started).Microseconds()) / 1000
	return r
}

// blocks reports whether the failure of a check leaves those that build on it without any evidence.
// Where symptoms distinguish defects, only certificates keep every answer away, and calls that are
// not answered in time or without an end, which would use up the run.
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

// Undefined lists the steps that no sentence, or more than one, understands, as "ID: step".
func (s *Suite) Undefined() []string {
	var out []string
	for _, c := range s.Catalogue.Checks {
		for _, step := range undefinedSteps(c, s.Steps) {
			out = append(out, c.ID+": "+step)
		}
	}
	return out
}
