package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/destkit/destkit/internal/quantity"
)

// Gates reports whether a failure of the check decides the verdict of a profile.
func (c *Check) Gates(p Profile) bool {
	switch {
	case c.Own, c.Level == Info:
		return false
	case p == ProfileStrict:
		return true
	}
	return c.Level == Must && slices.ContainsFunc(c.Authority, func(a Authority) bool {
		return a == AuthoritySpec || a == AuthorityJSONRPC || a == AuthorityPublished && p == ProfileV1
	})
}

// NewReport is an empty report of a suite.
func (o *Options) NewReport(suite, target string, started time.Time) *Report {
	span := ""
	if o.KeyFrom != 0 || o.KeyTo != 0 {
		span = fmt.Sprintf("%d:%d", o.KeyFrom, o.KeyTo)
	}
	return &Report{
		SchemaVersion: SchemaVersion, Tool: Tool{Name: "destkit", Version: cmp.Or(o.Version, "dev")}, Suite: suite,
		Target: target, RunID: o.RunID, Seed: o.Seed, Started: started.UTC().Truncate(time.Millisecond),
		Profile: o.Profile, Counts: map[Status]int{}, Failed: []string{}, Undecided: []string{},
		Problems: []Problem{}, Notes: []string{}, Checks: []CheckResult{},
		Residue: Residue{Refused: []Leftover{}, Unknown: []Leftover{}},
		Settings: Settings{
			Write: o.Write, Objects: append([]string{}, o.Objects...), Hooks: []string{}, Load: o.Load, Roots: "none",
			PlanningTimeoutMS: ms(o.PlanningTimeout), BatchTimeoutMS: ms(o.BatchTimeout), TimeoutMS: ms(o.Timeout),
			ReadbackWindowMS: ms(o.ReadbackWindow), MaxRecords: o.MaxRecords, SkipConvention: o.SkipConvention,
			KeyTemplate: o.KeyTemplate, KeyRange: span,
			Selected: o.Select, Skipped: o.Skip, WaiverCount: len(o.Waivers),
		},
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Conclude sums up: counts, verdict, exit status, the summary.
func (o *Options) Conclude(r *Report, cat *Catalogue) {
	o.decide(r, cat)
	r.Summary = summary(r)
}

func (o *Options) decide(r *Report, cat *Catalogue) {
	r.count()
	o.staleWaivers(r, cat)
	r.harnessErrors()
	r.weigh(cat)
	if !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Gating && c.Status != NotRun && c.Status != Inconclusive }) &&
		len(r.Problems) == 0 && len(r.Undecided) > 0 {
		r.problem("undecided", 3, "raise --timeout, or see why the checks were NOT_RUN", "no MUST could be decided")
	}
	unknown := slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.ExitStatus == 3 })
	left := len(r.Residue.Refused) + len(r.Residue.Unknown)
	if o.RequireClean && left > 0 {
		r.problem("residue", 5, "", "%s %s left behind, and --require-clean asks for none",
			quantity.Count(left, r.leftovers()), quantity.Verb(left, "is", "are"))
	} else if n := r.Residue.Unverified; o.RequireClean && n > 0 {
		r.problem("residue", 5, "let a read-back hook show it", "%s deleted by acknowledgement only (not verified), and --require-clean asks for proof that nothing is left: %s",
			quantity.Count(n, r.leftovers()), r.Residue.UnverifiedReason)
	}
	if n := len(r.Undecided); o.RequireComplete && n > 0 {
		r.problem("undecided", 6, "", "%s %s undecided, and --require-complete asks for none",
			quantity.Count(n, "MUST"), quantity.Verb(n, "stays", "stay"))
	}
	switch {
	case len(r.Failed) > 0:
		r.Verdict = NonConformant
		r.problem("gate", 1, "", "gated checks failed: %s", quantity.List(r.Failed))
	case unknown:
		r.Verdict = Unknown
	case len(o.Select) > 0, len(o.Skip) > 0, len(r.Undecided) > 0 && !r.sawRecords():
		r.Verdict = ConformantInPart
	default:
		r.Verdict = Conformant
	}
	r.ExitStatus = exitStatus(r.Problems)
}

func (r *Report) problem(kind string, exitStatus int, fix, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Kind: kind, ExitStatus: exitStatus, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// sawRecords reports whether an accepted record could be looked at; a judge of services makes all.
func (r *Report) sawRecords() bool {
	return r.Suite == SuiteService || r.Settings.Passive && r.Tier != TierProtocol || slices.ContainsFunc(r.Checks, func(c CheckResult) bool {
		return c.Seen[SeenAccepted]+c.Seen[SeenStored] > 0
	})
}

// count fills in the counts, and what failed and stays undecided.
func (r *Report) count() {
	for _, c := range r.Checks {
		r.Counts[c.Status]++
		if !c.Gating {
			continue
		}
		if c.Level == Must || r.Profile == ProfileStrict {
			r.Musts++
		}
		switch c.Status {
		case Fail, Flaky:
			r.Failed = append(r.Failed, c.ID)
		case NotRun, Inconclusive:
			if c.Level == Must {
				r.Undecided = append(r.Undecided, c.ID)
			}
		}
	}
}

// harnessErrors make the verdict unknown where the judge or a hook failed in a check that gates.
func (r *Report) harnessErrors() {
	var gating, others []string
	rest := false
	for _, c := range r.Checks {
		switch {
		case c.Status != HarnessError:
			rest = rest || c.Status != NotRun && c.Status != Inconclusive && c.Status != NotApplicable
		case c.Gating:
			gating = append(gating, c.ID)
		default:
			others = append(others, c.ID)
		}
	}
	if !rest {
		gating, others = append(gating, others...), nil // there is nothing to make a verdict from
	}
	if len(gating) > 0 {
		outcome := ""
		if len(r.Failed) == 0 {
			outcome = ": the verdict is unknown"
		}
		r.problem("harness", 3, "", "the judge or a hook failed in %s%s", quantity.List(gating), outcome)
	}
	if len(others) > 0 {
		r.Notes = append(r.Notes, "the judge or a hook failed in "+quantity.List(others)+
			", below the gate of profile "+string(r.Profile)+": the verdict is made from the other checks")
	}
}

// leftovers is what a run of the suite may leave behind, in the singular.
func (r *Report) leftovers() string {
	if r.Suite == SuiteService {
		return "thing"
	}
	return "record"
}

// exitStatus is the first of 2, 1, 3, 4, 5, 6 that any problem requires.
func exitStatus(problems []Problem) int {
	for _, want := range []int{2, 1, 3, 4, 5, 6} {
		if slices.ContainsFunc(problems, func(p Problem) bool { return p.ExitStatus == want }) {
			return want
		}
	}
	return 0
}

// checkWaivers refuses incomplete waivers; a stale one is a problem of the report.
func (o *Options) checkWaivers() error {
	for i, w := range o.Waivers {
		if w.Check == "" || w.Reason == "" {
			return Usage("%swaiver %d needs a check and a reason", w.place(), i+1)
		}
		if _, err := time.Parse(time.DateOnly, w.Until); w.Until != "" && err != nil {
			return Usage("%swaiver of %s: until %q is no date: use YYYY-MM-DD", w.place(), w.Check, w.Until)
		}
	}
	return nil
}

// place begins a message about the waiver.
func (w Waiver) place() string {
	if w.Source == "" {
		return ""
	}
	return w.Source + ": "
}

func (w Waiver) expired(now time.Time) bool {
	last, err := time.Parse(time.DateOnly, w.Until)
	return err == nil && !now.Before(last.AddDate(0, 0, 1))
}

// covers reports whether the waiver speaks of the finding.
func (w Waiver) covers(f Finding) bool {
	return (w.Object == "" || w.Object == f.Object) && (w.Operation == "" || w.Operation == f.Operation)
}

// Waive turns a failure whose every finding is accepted into WAIVED.
func (o *Options) Waive(c *Check, r *CheckResult) {
	if !r.failed() || len(r.Findings) == 0 || slices.ContainsFunc(r.Findings, func(f Finding) bool { return o.waiverFor(c.ID, f) == nil }) {
		return
	}
	w := o.waiverFor(c.ID, r.Findings[0])
	r.Status, r.Waiver = Waived, w
	r.Reason = "waived: " + w.Reason
}

func (o *Options) waiverFor(id string, f Finding) *Waiver {
	for i := range o.Waivers {
		w := &o.Waivers[i]
		if w.Check == id && w.covers(f) && !w.expired(time.Now()) {
			return w
		}
	}
	return nil
}

// staleWaivers reports waivers that no longer waive anything.
func (o *Options) staleWaivers(r *Report, cat *Catalogue) {
	problem := func(format string, args ...any) {
		r.problem("waiver", 4, "remove or correct the waiver", format, args...)
	}
	for _, w := range o.Waivers {
		if _, ok := cat.Check(w.Check); !ok {
			meant := meantCheck(cat, w.Check)
			if meant != "" {
				meant = "; did you mean " + meant + "?"
			}
			problem("%sthe waiver of %s names no check of the catalogue%s", w.place(), w.Check, meant)
			continue
		}
		if w.expired(time.Now()) {
			problem("%sthe waiver of %s expired on %s", w.place(), w.Check, w.Until)
			continue
		}
		for _, c := range r.Checks {
			if c.ID == w.Check && !slices.ContainsFunc(c.Findings, w.covers) && (c.Status == Pass || c.failed() || c.Status == Waived) {
				problem("%sthe waiver of %s is stale: nothing that it covers failed", w.place(), w.Check)
			}
		}
	}
}
