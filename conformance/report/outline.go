package report

import (
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// Outline is a report as all formats order it, for a page that shows it among other
// things: findings grouped by their cause, and undecided checks by what would decide
// them. Its texts are those of the HTML report: without control characters, and bounded.
type Outline struct {
	// Tone is the colour of the verdict: good, part, bad or open.
	Tone    string
	Summary string // without the verdict, which it begins with in the report
	Counts  []OutlineCount
	// Failures gate, Warnings do not, Waived are known and accepted.
	Failures, Warnings, Waived []OutlineResult
	Undecided                  []OutlineOpen
	Problems                   []c.Problem // those that the failures do not say themselves
}

// OutlineCount is how many checks have a status.
type OutlineCount struct {
	Status, Tone string
	Checks       int
}

// OutlineResult is a check with its findings.
type OutlineResult struct {
	ID, Title, Status, Tone string
	Rank                    string // "MUST · spec 7.2.4"
	Reason, Waiver          string
	Groups                  []OutlineGroup
	Findings                []OutlineExample // each by itself, in the order of the report
	Again                   string           // the command that judges it again, "" without one
}

// OutlineGroup is the findings of one cause.
type OutlineGroup struct {
	Rule, CauseLabel, Cause, Fix, Curl string // "": said already, or not known
	Examples                           []OutlineExample
	More                               int   // findings that are not among the examples
	Exchanges                          []int // the numbers of those that show it, in order
}

// OutlineExample is what was expected and what was seen. Place and Expected are "" where
// they are those of the example before.
type OutlineExample struct {
	Place, Expected, Actual string
	Times                   int   // that the same was seen
	Exchanges               []int // the numbers of those that show it
}

// OutlineOpen is a set of undecided checks that the same thing would decide.
type OutlineOpen struct {
	What   string // "decided by a read-back hook", "blocked by RES-002"
	How    string // the flag that grants it, "" when there is none
	Checks []OutlineResult
	Musts  int // of them
}

// Outline puts a report into the order in which all formats show it.
func (o Options) Outline(r *c.Report) *Outline {
	out := &Outline{
		Tone: verdictTone(r), Summary: text(strings.TrimPrefix(r.Summary, string(r.Verdict)+": ")), Problems: problems(r),
		Failures: o.outlined(r, failures(r.Checks)), Warnings: o.outlined(r, filter(r.Checks, isWarning)), Waived: o.outlined(r, filter(r.Checks, hasStatus(c.Waived))),
	}
	all := area{Checks: r.Checks}
	for _, s := range statusOrder {
		if n := all.Count(s); n > 0 {
			out.Counts = append(out.Counts, OutlineCount{word(s), tone(s), n})
		}
	}
	for _, g := range openGroups(r) {
		out.Undecided = append(out.Undecided, OutlineOpen{What: g.What, How: g.How, Checks: o.outlined(r, g.Checks), Musts: g.Musts()})
	}
	return out
}

func (o Options) outlined(of *c.Report, checks []c.CheckResult) (list []OutlineResult) {
	for _, r := range checks {
		result := OutlineResult{
			ID: line(r.ID), Title: line(r.Title), Status: word(r.Status), Tone: tone(r.Status), Rank: rank(r), Reason: line(r.Reason), Waiver: waiver(r.Waiver),
		}
		if len(r.Findings) > 0 {
			result.Again = o.again(of, r)
		}
		for _, g := range findingGroups(r, maxExamples, htmlExcerptRoom) {
			result.Groups = append(result.Groups, outlinedGroup(g, r))
		}
		for _, f := range r.Findings {
			result.Findings = append(result.Findings, outlinedExample(f, place(f), 1))
		}
		list = append(list, result)
	}
	return list
}

func outlinedGroup(g findingGroup, r c.CheckResult) OutlineGroup {
	out := OutlineGroup{Rule: line(g.First.Rule), Cause: line(g.First.Cause), Fix: line(g.First.Fix), Curl: text(limit(g.First.Curl, maxField)), More: g.More}
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

func outlinedExample(f c.Finding, place string, times int) OutlineExample {
	return OutlineExample{place, text(limit(f.Expected, maxField)), text(limit(f.Actual, maxField)), times, numbersOf(f)}
}

func numbersOf(f c.Finding) (numbers []int) {
	for _, x := range f.Exchanges {
		numbers = append(numbers, x.ID)
	}
	return numbers
}

// Curl is the command for a POSIX shell that sends an exchange again, with its body as a
// whole, and with secrets as variables such as $DESTKIT_TOKEN. It is "" when only a part
// of the request is known, or its body is no text.
func Curl(e c.Exchange) string { return wire.CurlWhole(e) }
