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
	if c.Own || c.Level == Info {
		return false
	}
	if p == ProfileStrict {
		return true
	}
	if c.Level != Must {
		return false
	}
	return slices.ContainsFunc(c.Authority, func(a Authority) bool {
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
	gateFailed := r.count()
	o.staleWaivers(r, cat)
	r.harnessErrors(gateFailed)
	r.weigh(cat)
	if !gateFailed && !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Gating && c.Status != NotRun && c.Status != Inconclusive }) &&
		len(r.Problems) == 0 && len(r.Undecided) > 0 {
		r.Problems = append(r.Problems, Problem{Kind: "undecided", ExitStatus: 3, Message: "no MUST could be decided",
			Fix: "raise --timeout, or see why the checks were NOT_RUN"})
	}
	unknown := slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.ExitStatus == 3 })
	left := len(r.Residue.Refused) + len(r.Residue.Unknown)
	if o.RequireClean && left > 0 {
		r.Problems = append(r.Problems, Problem{Kind: "residue", ExitStatus: 5,
			Message: fmt.Sprintf("%s %s left behind, and --require-clean asks for none", quantity.Count(left, r.leftovers()), quantity.Verb(left, "is", "are"))})
	} else if n := r.Residue.Unverified; o.RequireClean && n > 0 {
		r.Problems = append(r.Problems, Problem{Kind: "residue", ExitStatus: 5,
			Message: fmt.Sprintf("%s deleted by acknowledgement only (not verified), and --require-clean asks for proof that nothing is left: %s", quantity.Count(n, r.leftovers()), r.Residue.UnverifiedReason),
			Fix:     "let a read-back hook show it"})
	}
	if o.RequireComplete && len(r.Undecided) > 0 {
		r.Problems = append(r.Problems, Problem{Kind: "undecided", ExitStatus: 6, Message: fmt.Sprintf("%s %s undecided, and --require-complete asks for none",
			quantity.Count(len(r.Undecided), "MUST"), quantity.Verb(len(r.Undecided), "stays", "stay"))})
	}
	switch {
	case gateFailed:
		r.Verdict = NonConformant
		r.Problems = append(r.Problems, Problem{Kind: "gate", ExitStatus: 1, Message: "gated checks failed: " + quantity.List(r.Failed)})
	case unknown:
		r.Verdict = Unknown
	case len(o.Select) > 0, len(o.Skip) > 0, len(r.Undecided) > 0 && !r.sawRecords():
		r.Verdict = ConformantInPart
	default:
		r.Verdict = Conformant
	}
	r.ExitStatus = exitStatus(r.Problems)
}

// sawRecords reports whether the run could look at records: at one that was accepted, at
// least. A judge of services makes all that it looks at.
func (r *Report) sawRecords() bool {
	return r.Suite == SuiteService || r.Settings.Passive && r.Tier != TierProtocol || slices.ContainsFunc(r.Checks, func(c CheckResult) bool {
		return c.Seen[SeenAccepted]+c.Seen[SeenStored] > 0
	})
}

// count fills in the counts; it reports whether a gate failed.
func (r *Report) count() (gateFailed bool) {
	for i := range r.Checks {
		c := &r.Checks[i]
		r.Counts[c.Status]++
		if !c.Gating {
			continue
		}
		if c.Level == Must || r.Profile == ProfileStrict {
			r.Musts++
		}
		switch c.Status {
		case Fail, Flaky:
			gateFailed = true
			r.Failed = append(r.Failed, c.ID)
		case NotRun, Inconclusive:
			if c.Level == Must {
				r.Undecided = append(r.Undecided, c.ID)
			}
		}
	}
	return gateFailed
}

// harnessErrors: where the judge or a hook failed in a check that gates, the
// verdict is unknown; in one that does not, the verdict is made from the rest.
func (r *Report) harnessErrors(gateFailed bool) {
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
		message := "the judge or a hook failed in " + quantity.List(gating)
		if !gateFailed {
			message += ": the verdict is unknown"
		}
		r.Problems = append(r.Problems, Problem{Kind: "harness", ExitStatus: 3, Message: message})
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

// exitStatus is the first of 2, 1, 3, 4, 5, 6 that any problem asks for.
func exitStatus(problems []Problem) int {
	for _, want := range []int{2, 1, 3, 4, 5, 6} {
		for _, p := range problems {
			if p.ExitStatus == want {
				return want
			}
		}
	}
	return 0
}
