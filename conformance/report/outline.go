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
	summary := strings.TrimLeft(strings.TrimPrefix(r.Summary, string(r.Verdict)), ":; ") // the verdict is next to it
	out := &pagestyle.Outline{
		Tone: verdictTone(r), Summary: text(summary),
		Failures: o.outlined(r, failures(r.Checks)), Warnings: o.outlined(r, lists.Where(r.Checks, isWarning)), Waived: o.outlined(r, lists.Where(r.Checks, hasStatus(c.Waived))),
		Problems: lists.Of(problems(r), func(p c.Problem) pagestyle.Problem {
			return pagestyle.Problem{Message: line(p.Message), Fix: line(p.Fix)}
		}),
		Undecided: lists.Of(openGroups(r), func(g openGroup) pagestyle.Undecided {
			return pagestyle.Undecided{What: g.What, How: g.How, Checks: o.outlined(r, g.Checks), Musts: g.Musts()}
		}),
	}
	all := area{Checks: r.Checks}
	for _, s := range statusOrder {
		if n := all.Count(s); n > 0 {
			out.Counts = append(out.Counts, pagestyle.Count{Status: word(s), Tone: tone(s), Checks: n})
		}
	}
	return out
}

func (o Options) outlined(of *c.Report, checks []c.CheckResult) []pagestyle.Check {
	return lists.Of(checks, func(r c.CheckResult) pagestyle.Check {
		out := pagestyle.Check{
			ID: line(r.ID), Title: line(r.Title), Status: word(r.Status), Tone: tone(r.Status), Rank: rank(r), Reason: line(r.Reason), Waiver: waiver(r.Waiver),
			Causes:   lists.Of(findingGroups(r, maxExamples, htmlExcerptRoom), outlinedGroup),
			Findings: lists.Of(r.Findings, func(f c.Finding) pagestyle.Finding { return outlinedExample(findingExample{f, place(f), 1}) }),
		}
		if len(r.Findings) > 0 {
			out.Again = o.again(of, r)
		}
		return out
	})
}

func outlinedGroup(g findingGroup) pagestyle.Cause {
	out := pagestyle.Cause{Rule: line(g.First.Rule), Cause: line(g.First.Cause), Fix: line(g.First.Fix), Curl: text(limit(g.First.Curl, maxField)),
		Examples: lists.Of(g.Examples, outlinedExample), More: g.More}
	if out.Cause != "" {
		out.CauseLabel = g.First.CauseLabel()
	}
	numbers := slices.Concat(lists.Of(g.All, numbersOf)...)
	out.Exchanges = slices.Compact(slices.Sorted(slices.Values(numbers)))
	return out
}

func outlinedExample(e findingExample) pagestyle.Finding {
	return pagestyle.Finding{
		Place: e.Place, Expected: text(limit(e.Expected, maxField)), Actual: text(limit(e.Actual, maxField)), Times: e.Times, Exchanges: numbersOf(e.Finding),
	}
}

func numbersOf(f c.Finding) []int {
	return lists.Of(f.Exchanges, func(x c.Exchange) int { return x.ID })
}

// findingGroup is the findings of one check with one cause.
type findingGroup struct {
	First    c.Finding // what all have in common: rule, cause, fix; its command
	All      []c.Finding
	Examples []findingExample
	Excerpt  *excerpt // of the response that shows it
	More     int      // findings that are not among the examples
}

// findingExample is one finding, without what the one before it has already.
type findingExample struct {
	c.Finding
	Place string
	Times int // that the same was seen
}

// findingGroups groups findings, without what title or reason repeat; a response is shown once.
func findingGroups(r c.CheckResult, most int, size room) []findingGroup {
	order, findings := grouped(r.Findings, causeOf)
	shown := map[string]bool{}
	return lists.Of(order, func(is cause) findingGroup {
		g := findingGroup{First: findings[is][0], All: findings[is]}
		if ruleIsSaid(r, g.First) {
			g.First.Rule = ""
		}
		for _, f := range g.All {
			g.add(f, most)
		}
		g.lay(shown, size)
		return g
	})
}

// ruleIsSaid reports whether the title or the reason of a result is the rule of its finding.
func ruleIsSaid(r c.CheckResult, f c.Finding) bool {
	return strings.EqualFold(line(f.Rule), line(r.Title)) || f.Rule == r.Reason
}

// cause is what findings of one defect have in common.
type cause struct {
	text, fix string
	observed  bool
}

func causeOf(f c.Finding) cause { return cause{line(f.Cause), line(f.Fix), f.Observed} }

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

// lay removes repetitions, and finds the response to show; shown are the bodies shown above.
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
		all = append(all, lists.Of(check.Notes, func(n string) setting { return setting{check.ID, n} })...)
	}
	return all
}

// settings lists every choice of a run in words, without which a verdict means nothing.
func settings(r *c.Report) []setting {
	s := r.Settings
	list := []setting{{"profile", string(r.Profile)}}
	switch {
	case r.Suite != c.SuiteService:
		list = append(list, destinationSettings(s)...)
	case s.Passive: // a caller is judged by what it sends: it gets no calls and no settings
		list = append(list, setting{"waivers", fmt.Sprint(s.WaiverCount)})
	default:
		list = append(list, setting{"dialect", s.Dialect}, setting{"clock", s.Clock}, setting{"simulators", s.Simulators}, setting{"source", s.Source},
			setting{"deadline", "run " + duration(s.TimeoutMS)}, setting{"waivers", fmt.Sprint(s.WaiverCount)})
	}
	list = append(list, setting{"selected", strings.Join(s.Selected, ", ")}, setting{"skipped", strings.Join(s.Skipped, ", ")},
		setting{"seed", fmt.Sprint(r.Seed)}, setting{"run", r.RunID})
	for i := range list {
		list[i].Value = line(list[i].Value)
	}
	optional := []string{"selected", "skipped", "declared speed", "declared limit"}
	return slices.DeleteFunc(list, func(s setting) bool { return s.Value == "" && slices.Contains(optional, s.Name) })
}

// destinationSettings are those of a judged destination alone.
func destinationSettings(s c.Settings) []setting {
	onOff := map[bool]string{true: "on", false: "off"}
	write, readback, rateLimit := "no", "no", ""
	if s.Write {
		write = fmt.Sprintf("%s, at most %s", orWord(strings.Join(s.Objects, ", "), "none"), quantity.Count(s.MaxRecords, "record"))
	}
	switch {
	case s.Readback && s.ReadbackWindowMS > 0: // a window weakens what DUR-001 proves
		readback = "yes, may lag " + duration(s.ReadbackWindowMS)
	case s.Readback:
		readback = "yes, at once"
	}
	if s.DeclaredRateLimit != 0 {
		rateLimit = fmt.Sprintf("%d requests/s", s.DeclaredRateLimit)
	}
	return []setting{
		{"write", write}, {"read-back", readback}, {"hooks", orWord(strings.Join(s.Hooks, ", "), "none")},
		{"load", onOff[s.Load]}, {"development", onOff[s.Development]}, {"TLS roots", orWord(s.Roots, "none")},
		{"deadlines", fmt.Sprintf("planning %s, batch %s, run %s",
			duration(s.PlanningTimeoutMS), duration(s.BatchTimeoutMS), duration(s.TimeoutMS))},
		{"waivers", fmt.Sprint(s.WaiverCount)}, {"skip convention", orWord(s.SkipConvention, "not declared")},
		{"declared speed", s.DeclaredSpeed}, {"declared limit", rateLimit},
	}
}

// orWord is s in one line, or a word for its absence.
func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return line(s)
}
