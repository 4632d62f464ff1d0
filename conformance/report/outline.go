package report

import (
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
	pagestyle "github.com/destkit/destkit/internal/page"
)

// Outline puts a report into the order in which all formats show it.
func (o Options) Outline(r *c.Report) *pagestyle.Outline {
	out := &pagestyle.Outline{
		Tone: verdictTone(r), Summary: text(strings.TrimPrefix(r.Summary, string(r.Verdict)+": ")),
		Failures: o.outlined(r, failures(r.Checks)), Warnings: o.outlined(r, filter(r.Checks, isWarning)), Waived: o.outlined(r, filter(r.Checks, hasStatus(c.Waived))),
	}
	all := area{Checks: r.Checks}
	for _, s := range statusOrder {
		if n := all.Count(s); n > 0 {
			out.Counts = append(out.Counts, pagestyle.Count{Status: word(s), Tone: tone(s), Checks: n})
		}
	}
	for _, p := range problems(r) {
		out.Problems = append(out.Problems, pagestyle.Problem{Message: line(p.Message), Fix: line(p.Fix)})
	}
	for _, g := range openGroups(r) {
		out.Undecided = append(out.Undecided, pagestyle.Undecided{What: g.What, How: g.How, Checks: o.outlined(r, g.Checks), Musts: g.Musts()})
	}
	return out
}

func (o Options) outlined(of *c.Report, checks []c.CheckResult) (list []pagestyle.Check) {
	for _, r := range checks {
		result := pagestyle.Check{
			ID: line(r.ID), Title: line(r.Title), Status: word(r.Status), Tone: tone(r.Status), Rank: rank(r), Reason: line(r.Reason), Waiver: waiver(r.Waiver),
		}
		if len(r.Findings) > 0 {
			result.Again = o.again(of, r)
		}
		for _, g := range findingGroups(r, maxExamples, htmlExcerptRoom) {
			result.Causes = append(result.Causes, outlinedGroup(g, r))
		}
		for _, f := range r.Findings {
			result.Findings = append(result.Findings, outlinedExample(f, place(f), 1))
		}
		list = append(list, result)
	}
	return list
}

func outlinedGroup(g findingGroup, r c.CheckResult) pagestyle.Cause {
	out := pagestyle.Cause{Rule: line(g.First.Rule), Cause: line(g.First.Cause), Fix: line(g.First.Fix), Curl: text(limit(g.First.Curl, maxField)), More: g.More}
	if out.Cause != "" {
		out.CauseLabel = g.First.CauseLabel()
	}
	for _, e := range g.Examples {
		out.Examples = append(out.Examples, outlinedExample(e.Finding, e.Place, e.Times))
	}
	for _, f := range r.Findings {
		if !sameCause(f, g.First) {
			continue
		}
		out.Exchanges = append(out.Exchanges, numbersOf(f)...)
	}
	slices.Sort(out.Exchanges)
	out.Exchanges = slices.Compact(out.Exchanges)
	return out
}

func outlinedExample(f c.Finding, place string, times int) pagestyle.Finding {
	return pagestyle.Finding{
		Place: place, Expected: text(limit(f.Expected, maxField)), Actual: text(limit(f.Actual, maxField)), Times: times, Exchanges: numbersOf(f),
	}
}

func numbersOf(f c.Finding) (numbers []int) {
	for _, x := range f.Exchanges {
		numbers = append(numbers, x.ID)
	}
	return numbers
}
