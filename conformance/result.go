package conformance

import "slices"

// result makes an empty result of a check.
func (c *Check) result(status Status, reason string) *CheckResult {
	return &CheckResult{
		ID: c.ID, Title: c.Title, Level: c.Level, Authority: c.Authority, Sections: c.Sections, Area: c.Area,
		Status: status, Reason: reason, Findings: []Finding{},
	}
}

// mergeOrder says which status of several objects speaks for the check: a pass
// on one object must not hide that another one stays undecided.
var mergeOrder = []Status{Fail, HarnessError, Inconclusive, NotRun, Pass, NotApplicable}

// merge sums up the results of one check over several objects.
func merge(c *Check, parts []*CheckResult) *CheckResult {
	if len(parts) == 0 {
		r := c.result(NotRun, "looks at one object: name it with --object NAME")
		r.Decider = "--object"
		return r
	}
	slices.SortStableFunc(parts, func(a, b *CheckResult) int {
		return slices.Index(mergeOrder, a.Status) - slices.Index(mergeOrder, b.Status)
	})
	out := *parts[0]
	for _, p := range parts[1:] {
		out.Findings = append(out.Findings, p.Findings...)
		out.symptoms = append(slices.Clone(out.symptoms), p.symptoms...)
		out.away = out.away || p.away
		out.Notes = append(out.Notes, p.Notes...)
		if p.Evidence != "" && out.Evidence != "" {
			out.Evidence += "; " + p.Evidence
		}
	}
	return &out
}
