package engine

import (
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
)

// Result is the outcome of one check, with what the other results are compared by.
type Result struct {
	conformance.CheckResult
	marks    []mark  // of the findings, in their order
	away     bool    // the endpoint went away in the middle of it
	unsteady bool    // it failed beside other calls and passed alone
	original *Result // what was folded under another check
}

// mark is what is known of a finding beyond the report.
type mark struct {
	symptom   string
	diagnosed bool   // a second run has looked for the cause
	rule      string // of the check that the finding is about, where that is another one
}

// newResult makes an empty result of a check.
func newResult(c *conformance.Check, status conformance.Status, reason string) *Result {
	return &Result{CheckResult: conformance.CheckResult{
		ID: c.ID, Title: c.Title, Level: c.Level, Authority: c.Authority, Sections: c.Sections, Area: c.Area,
		Status: status, Reason: reason, Findings: []conformance.Finding{},
	}}
}

// blocked is the result of a check that shows nothing beyond the failure of others.
func blocked(c *conformance.Check, by []string) *Result {
	r := newResult(c, conformance.NotRun, "blocked by "+strings.Join(by, ", "))
	r.BlockedBy = by
	return r
}

// mergeOrder says which status of several objects speaks for the check: a pass
// on one object must not hide that another one stays undecided.
var mergeOrder = []conformance.Status{conformance.Fail, conformance.HarnessError, conformance.Inconclusive, conformance.NotRun, conformance.Pass, conformance.NotApplicable}

// merge sums up the results of one check over several objects.
func merge(c *conformance.Check, parts []*Result) *Result {
	if len(parts) == 0 {
		r := newResult(c, conformance.NotRun, "looks at one object: name it with --object NAME")
		r.Decider = "--object"
		return r
	}
	slices.SortStableFunc(parts, func(a, b *Result) int {
		return slices.Index(mergeOrder, a.Status) - slices.Index(mergeOrder, b.Status)
	})
	out := *parts[0]
	for _, p := range parts[1:] {
		out.Findings = append(out.Findings, p.Findings...)
		out.marks = append(slices.Clone(out.marks), p.marks...)
		out.Symptoms = append(slices.Clone(out.Symptoms), p.Symptoms...)
		out.away = out.away || p.away
		out.Notes = append(out.Notes, p.Notes...)
		if p.Evidence != "" && out.Evidence != "" {
			out.Evidence += "; " + p.Evidence
		}
	}
	return &out
}

// takeCauses takes over what the second run has observed, and the one cause that it has
// seen where the first says what the check says of all endpoints: nothing ran beside it.
func (r *Result) takeCauses(c *conformance.Check, again *Result) {
	for i, known := range r.marks {
		f := &r.Findings[i]
		alike := map[string]int{}
		for k, m := range again.marks {
			general := m.rule != "" && again.Findings[k].Observed && !slices.ContainsFunc(again.marks, func(o mark) bool { return o.symptom == known.symptom })
			if m.symptom != known.symptom && !general || again.Findings[k].Object != f.Object {
				continue
			}
			if alike[again.Findings[k].Cause] = k; m.diagnosed {
				r.marks[i].rule = m.rule
				f.Cause, f.Observed, f.Fix = again.Findings[k].Cause, again.Findings[k].Observed, again.Findings[k].Fix
			}
		}
		for cause, k := range alike {
			if len(alike) == 1 && strings.HasPrefix(f.Cause, c.Cause) && !strings.HasPrefix(cause, c.Cause) {
				f.Cause, f.Fix = cause, again.Findings[k].Fix
			}
		}
	}
}
