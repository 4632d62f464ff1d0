package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/lists"
	pagestyle "github.com/destkit/destkit/internal/page"
	"github.com/destkit/destkit/internal/quantity"
)

// Outline puts a report into the order in which all formats show it.
func (o Options) Outline(r *c.Report) *pagestyle.Outline {
	out := &pagestyle.Outline{
		Tone: verdictTone(r), Summary: text(withoutVerdict(r)),
		Failures: o.outlined(r, failures(r.Checks)), Warnings: o.outlined(r, lists.Where(r.Checks, isWarning)), Waived: o.outlined(r, lists.Where(r.Checks, hasStatus(c.Waived))),
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

// withoutVerdict is the summary where the verdict is next to it.
func withoutVerdict(r *c.Report) string {
	return strings.TrimLeft(strings.TrimPrefix(r.Summary, string(r.Verdict)), ":; ")
}

func (o Options) outlined(of *c.Report, checks []c.CheckResult) (list []pagestyle.Check) {
	for _, r := range checks {
		result := pagestyle.Check{
			ID: line(r.ID), Title: line(r.Title), Status: word(r.Status), Tone: tone(r.Status), Rank: rank(r), Reason: line(r.Reason), Waiver: waiver(r.Waiver),
		}
		if len(r.Findings) > 0 {
			result.Again = o.again(of, r)
		}
		result.Causes = lists.Of(findingGroups(r, maxExamples, htmlExcerptRoom), func(g findingGroup) pagestyle.Cause { return outlinedGroup(g, r) })
		result.Findings = lists.Of(r.Findings, func(f c.Finding) pagestyle.Finding { return outlinedExample(f, place(f), 1) })
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
	return lists.Of(f.Exchanges, func(x c.Exchange) int { return x.ID })
}

// findingGroup is the findings of one check with one cause: the same defect, seen
// several times.
type findingGroup struct {
	First    c.Finding // what all have in common: rule, cause, fix; its command
	Examples []findingExample
	Excerpt  *excerpt // of the response that shows it
	More     int      // findings that are not among the examples
}

// findingExample is one finding, without what the one before it says already.
type findingExample struct {
	c.Finding
	Place string
	Times int // that the same was seen
}

// maxExamples is how many findings of one cause are shown.
const maxExamples = 2

// findingGroups groups the findings of a result. What the title or the reason says is
// taken out, and a response is shown once.
func findingGroups(r c.CheckResult, most int, size room) []findingGroup {
	var groups []findingGroup
	for _, f := range r.Findings {
		at := 0
		for at < len(groups) && !sameCause(groups[at].First, f) {
			at++
		}
		if at == len(groups) {
			first := f
			if strings.EqualFold(line(f.Rule), line(r.Title)) || f.Rule == r.Reason {
				first.Rule = ""
			}
			groups = append(groups, findingGroup{First: first})
		}
		groups[at].add(f, most)
	}
	shown := map[string]bool{}
	for i := range groups {
		groups[i].lay(shown, size)
	}
	return groups
}

// sameCause reports whether two findings of a check are of one defect. The rule of
// the first may have been taken out, and is that of the check in both.
func sameCause(a, b c.Finding) bool {
	return a.Cause == b.Cause && a.Observed == b.Observed && a.Fix == b.Fix
}

// add puts a finding among the examples, or counts it.
func (g *findingGroup) add(f c.Finding, most int) {
	for i, e := range g.Examples {
		if e.Place == place(f) && e.Expected == f.Expected && withoutIDs(e.Actual) == withoutIDs(f.Actual) {
			g.Examples[i].Times++
			return
		}
	}
	if len(g.Examples) == most {
		g.More++
		return
	}
	g.Examples = append(g.Examples, findingExample{Finding: f, Place: place(f), Times: 1})
}

// callID is the form of the ids that the judge gives its calls.
var callID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// withoutIDs makes texts equal that differ in the ids of calls only.
func withoutIDs(s string) string { return callID.ReplaceAllString(s, "") }

// lay takes out of the examples what is said already, and finds the response that
// shows the first. shown are the bodies that stand above.
func (g *findingGroup) lay(shown map[string]bool, size room) {
	if x := decisive(g.First, size); x != nil {
		// The text that quotes it is as good where it is shown already.
		g.Examples[0].Actual, _ = withoutBody(g.Examples[0].Actual, wire.Body{Text: x.source})
		if !shown[x.source] {
			shown[x.source], g.Excerpt = true, x
		}
	}
	for i := len(g.Examples) - 1; i > 0; i-- {
		e, before := &g.Examples[i], g.Examples[i-1]
		if e.Place == before.Place {
			e.Place = ""
		}
		if e.Expected == before.Expected {
			e.Expected = ""
		}
	}
}

// setting is one choice that decides what a verdict means.
type setting struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

// allNotes are what was noted of the run and, with its id, of each check.
func allNotes(r *c.Report) []setting {
	all := lists.Of(r.Notes, func(n string) setting { return setting{"", n} })
	for _, check := range r.Checks {
		for _, n := range check.Notes {
			all = append(all, setting{check.ID, n})
		}
	}
	return all
}

// settings lists every choice of a run in words: a verdict without them means
// nothing, so that they stand in every format that a person reads.
func settings(r *c.Report) []setting {
	s := r.Settings
	list := destinationSettings(r)
	if r.Suite == c.SuiteService {
		list = serviceSettings(r)
	}
	if len(s.Selected) > 0 {
		list = append(list, setting{"selected", orNone(s.Selected)})
	}
	if len(s.Skipped) > 0 {
		list = append(list, setting{"skipped", orNone(s.Skipped)})
	}
	return append(list, setting{"seed", fmt.Sprint(r.Seed)}, setting{"run", line(r.RunID)})
}

// serviceSettings are those of a judged service. A caller is judged by what it sends, and
// nothing is asked of it or set.
func serviceSettings(r *c.Report) []setting {
	s := r.Settings
	list := []setting{{"profile", line(string(r.Profile))}}
	if !s.Passive {
		list = append(list,
			setting{"dialect", line(s.Dialect)},
			setting{"clock", line(s.Clock)},
			setting{"simulators", line(s.Simulators)},
			setting{"source", line(s.Source)},
			setting{"deadline", "run " + duration(s.TimeoutMS)},
		)
	}
	return append(list, setting{"waivers", fmt.Sprint(s.WaiverCount)})
}

// destinationSettings are those of a judged destination.
func destinationSettings(r *c.Report) []setting {
	s := r.Settings
	list := []setting{
		{"profile", line(string(r.Profile))},
		{"write", writeScope(s)},
		{"read-back", readbackScope(s)},
		{"hooks", orNone(s.Hooks)},
		{"load", onOff(s.Load)},
		{"development", onOff(s.Development)},
		{"TLS roots", orWord(s.Roots, "none")},
		{"deadlines", fmt.Sprintf("planning %s, batch %s, run %s",
			duration(s.PlanningTimeoutMS), duration(s.BatchTimeoutMS), duration(s.TimeoutMS))},
		{"waivers", fmt.Sprint(s.WaiverCount)},
		{"skip convention", orWord(s.SkipConvention, "not declared")},
	}
	if s.DeclaredSpeed != "" {
		list = append(list, setting{"declared speed", line(s.DeclaredSpeed)})
	}
	if s.DeclaredRateLimit != 0 {
		list = append(list, setting{"declared limit", fmt.Sprintf("%d requests/s", s.DeclaredRateLimit)})
	}
	return list
}

// writeScope says what the run was allowed to write.
func writeScope(s c.Settings) string {
	if !s.Write {
		return "no"
	}
	return fmt.Sprintf("%s, at most %s", orNone(s.Objects), quantity.Count(s.MaxRecords, "record"))
}

// readbackScope reports whether values were looked up, and how late they might
// appear: a window weakens what DUR-001 proves.
func readbackScope(s c.Settings) string {
	switch {
	case !s.Readback:
		return "no"
	case s.ReadbackWindowMS > 0:
		return "yes, may lag " + duration(s.ReadbackWindowMS)
	}
	return "yes, at once"
}

// orNone writes a list in one line.
func orNone(list []string) string { return orWord(strings.Join(list, ", "), "none") }

// orWord is s in one line, or a word for its absence.
func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return line(s)
}

// onOff is a switch in a word.
func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
