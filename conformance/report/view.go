package report

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/features"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// The statuses in the order in which people want to read them.
var statusOrder = []c.Status{
	c.Fail, c.Flaky, c.HarnessError, c.Warn, c.Waived, c.Inconclusive, c.NotRun, c.NotApplicable, c.Pass,
}

// stopsGate tells results that are shown as failures. A FAIL that does not
// gate is one of the author's own checks; FLAKY and HARNESS_ERROR below the gate
// are warnings.
func stopsGate(r c.CheckResult) bool {
	return r.Status == c.Fail || (r.Status == c.Flaky || r.Status == c.HarnessError) && r.Gating
}

// isWarning tells what does not decide the verdict and is shown whole.
func isWarning(r c.CheckResult) bool {
	return r.Status == c.Warn || (r.Status == c.Flaky || r.Status == c.HarnessError) && !r.Gating
}

// isUndecided tells the two statuses that keep a verdict from being whole. A
// check that does not apply is not among them.
func isUndecided(r c.CheckResult) bool {
	return r.Status == c.Inconclusive || r.Status == c.NotRun
}

// hasStatus makes a condition for filter.
func hasStatus(s c.Status) func(c.CheckResult) bool {
	return func(r c.CheckResult) bool { return r.Status == s }
}

// problems leaves out what the failures say themselves: that a gate failed.
func problems(r *c.Report) []c.Problem {
	return lists.Where(r.Problems, func(p c.Problem) bool { return p.Kind != "gate" || len(failures(r.Checks)) == 0 })
}

// notJudged is the problem for which no check could look at anything, nil when
// some did.
func notJudged(r *c.Report) *c.Problem {
	for i, p := range r.Problems {
		if p.ExitStatus == 3 && !r.Looked() {
			return &r.Problems[i]
		}
	}
	return nil
}

// none reports whether there is nothing to say of records.
func none(res c.Residue) bool {
	return res.Cleaned+res.Unverified+len(res.Refused)+len(res.Unknown) == 0
}

// residueLine counts what became of the records, and how it was seen.
func residueLine(res c.Residue) string {
	said := fmt.Sprintf("%d cleaned", res.Cleaned)
	if len(res.VerifiedBy) > 0 {
		words := map[string]string{"readback": "read-back", "witness": "updates that were skipped"}
		by := lists.Of(res.VerifiedBy, func(b string) string { return orWord(words[b], b) })
		said += " (shown by " + strings.Join(by, " and ") + ")"
	}
	if res.Unverified > 0 {
		said += fmt.Sprintf(", %d by acknowledgement only (not verified)", res.Unverified)
	}
	return said + fmt.Sprintf(", %d refused, %d unknown", len(res.Refused), len(res.Unknown))
}

// terse copies the findings of a result without what its title, its reason or
// the finding before says already: the twelve findings of one rule mostly have
// one cause. SARIF and the JSON report keep everything.
func terse(r c.CheckResult) []c.Finding {
	out := slices.Clone(r.Findings)
	said := c.Finding{}
	for i, f := range r.Findings {
		if f.Rule == said.Rule || strings.EqualFold(line(f.Rule), line(r.Title)) || f.Rule == r.Reason {
			out[i].Rule = ""
		}
		if f.Cause == said.Cause {
			out[i].Cause = ""
		}
		if f.Fix == said.Fix {
			out[i].Fix = ""
		}
		said = f
	}
	return out
}

// sent counts what the judge has sent, with something between the two; the judge
// of services sends no records.
func sent(calls, records int, between string) string {
	if records == 0 {
		return quantity.Count(calls, "call")
	}
	return quantity.Count(calls, "call") + between + quantity.Count(records, "record")
}

// judged is what a suite judges, in words.
func judged(suite string) string {
	if suite == c.SuiteService {
		return "a service"
	}
	return "a custom destination"
}

// elsewhere reports whether ERR-006, which is judged over the whole run, has found what
// happened beside the calls of other checks: only these show it again, one at a time.
func elsewhere(check c.CheckResult) bool {
	return check.ID == "ERR-006" && len(check.Findings) > 0 && !slices.ContainsFunc(check.Findings, func(f c.Finding) bool {
		return slices.ContainsFunc(f.Exchanges, func(x c.Exchange) bool { return x.Check == check.ID })
	})
}

// again is the command that shows the finding of a check once more; "" when there
// is none. Findings of a service come from whole scenarios, those of a
// destination from single exchanges, which the JSON report holds; where there is no
// such file the check is judged again.
func (o Options) again(r *c.Report, check c.CheckResult) string {
	exchanges := slices.ContainsFunc(check.Findings, func(f c.Finding) bool { return len(f.Exchanges) > 0 })
	switch {
	case r.Settings.Passive && (r.Suite == c.SuiteService || o.Rerun == ""):
		return line(o.Rerun) // others made the calls: what was recorded of them is judged again
	case r.Settings.Passive:
		return line(o.Rerun) + " --select " + line(check.ID)
	case o.Rerun != "" && elsewhere(check):
		if slices.Contains(strings.Fields(o.Rerun), "--serial") {
			return line(o.Rerun)
		}
		return line(o.Rerun) + " --serial"
	case o.Rerun != "" && (o.ReportFile == "" || r.Suite == c.SuiteService):
		return line(o.Rerun) + " --select " + line(check.ID)
	case r.Suite != c.SuiteService && !exchanges:
		return "" // nothing can be sent again
	case r.Suite == c.SuiteService:
		command := "destkit conform service " + foreign.ShellWord(line(r.Target)) + " --select " + line(check.ID)
		if r.Settings.Clock == "real" { // without it a check about time would not run
			command += " --patient"
		}
		return command
	}
	file := "REPORT"
	if o.ReportFile != "" {
		file = foreign.ShellWord(line(o.ReportFile))
	}
	command := "destkit replay " + file + " " + line(check.ID)
	if r.Settings.Write {
		command += " --write"
	}
	if words := line(o.Access); words != "" {
		command += " " + words
	}
	return command
}

// failures returns the results that gate, judge's own faults last: they say
// nothing about the endpoint.
func failures(checks []c.CheckResult) []c.CheckResult {
	own := func(r c.CheckResult) bool { return r.Status == c.HarnessError }
	bad := lists.Where(checks, stopsGate)
	return append(lists.Where(bad, func(r c.CheckResult) bool { return !own(r) }), lists.Where(bad, own)...)
}

// area is one feature with its results.
type area struct {
	Name   string
	Checks []c.CheckResult
}

// Count returns how many results of the area have one of the statuses.
func (a area) Count(statuses ...c.Status) int {
	return len(lists.Where(a.Checks, func(r c.CheckResult) bool { return slices.Contains(statuses, r.Status) }))
}

// areas groups results by their feature, in order of first appearance.
func areas(checks []c.CheckResult) []area {
	var out []area
	index := map[string]int{}
	for _, r := range checks {
		i, ok := index[r.Area]
		if !ok {
			i = len(out)
			index[r.Area] = i
			out = append(out, area{Name: r.Area})
		}
		out[i].Checks = append(out[i].Checks, r)
	}
	return out
}

// openGroup is a set of undecided checks that the same thing would decide.
type openGroup struct {
	What   string // "decided by a read-back hook", "blocked by RES-002"
	How    string // the flag that grants it, "" when there is none
	Checks []c.CheckResult
}

// Musts counts the MUST checks of the group.
func (g openGroup) Musts() int {
	return len(lists.Where(g.Checks, func(r c.CheckResult) bool { return r.Level == c.Must }))
}

// openGroups sorts undecided checks by what would decide them: the groups
// that a choice of the reader decides first and by size, blocked ones after.
func openGroups(of *c.Report) []openGroup {
	var deciders, rest []openGroup
	for _, r := range lists.Where(of.Checks, isUndecided) {
		if r.Decider != "" {
			what, how := of.Deciding(r.Decider)
			deciders = addOpen(deciders, "decided by "+line(what), line(how), r)
			continue
		}
		what := "open: " + line(orWord(r.Reason, "no reason was given"))
		if len(r.BlockedBy) > 0 {
			what = "blocked by " + line(strings.Join(r.BlockedBy, ", "))
		}
		rest = addOpen(rest, what, "", r)
	}
	slices.SortStableFunc(deciders, func(a, b openGroup) int { return len(b.Checks) - len(a.Checks) })
	return append(deciders, rest...)
}

// addOpen puts a result into its group, or opens one.
func addOpen(groups []openGroup, what, how string, r c.CheckResult) []openGroup {
	for i := range groups {
		if groups[i].What == what && groups[i].How == how {
			groups[i].Checks = append(groups[i].Checks, r)
			return groups
		}
	}
	return append(groups, openGroup{What: what, How: how, Checks: []c.CheckResult{r}})
}

// rank is level, authority and section of a rule, "MUST · spec 7.2.4".
func rank(r c.CheckResult) string {
	var b strings.Builder
	for _, part := range citations("", r) {
		b.WriteString(part.Before + part.Text)
	}
	return b.String()
}

// citation is a part of a rank, with what separates it from the part before. URL is
// the page with the sentences of a section, "" for all other text.
type citation struct{ Before, Text, URL string }

// citable is what a section looks like; text of any other form is no part of a URL.
var citable = regexp.MustCompile(`^[0-9A-Za-z.]+$`)

// citations are the parts of the rank of a result, as the report of a suite has it.
func citations(suite string, r c.CheckResult) []citation {
	out := []citation{{Text: line(string(r.Level))}}
	before := " · "
	for _, a := range r.Authority {
		name := line(string(a))
		// Sections are those of the specification of the service.
		if a != c.AuthoritySpec || len(r.Sections) == 0 {
			out = append(out, citation{Before: before, Text: name})
			before = ", "
			continue
		}
		for i, section := range r.Sections {
			part := citation{Before: before, Text: line(section)}
			if i == 0 {
				part.Text = name + " " + part.Text
			}
			if citable.MatchString(section) {
				part.URL = features.AnchorURL(suite == c.SuiteService, section)
			}
			out = append(out, part)
			before = ", "
		}
	}
	return out
}

// word is a status as people read it.
func word(s c.Status) string {
	switch s {
	case c.HarnessError:
		return "ERROR"
	case c.NotApplicable:
		return "N/A"
	case c.NotRun:
		return "NOT RUN"
	}
	return line(string(s))
}

// duration writes milliseconds for people.
func duration(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case math.IsNaN(ms) || ms < 0:
		return "?"
	case ms < 10:
		return trimZero(fmt.Sprintf("%.1f", ms)) + " ms"
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", ms)
	case d < time.Minute:
		return trimZero(fmt.Sprintf("%.1f", d.Seconds())) + " s"
	case d%time.Minute < time.Second:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}

// trimZero writes 3.0 as 3.
func trimZero(s string) string { return strings.TrimSuffix(s, ".0") }

// place says where a finding was seen: "object contact, operation upsert", and
// which of several replicas showed it.
func place(f c.Finding) string {
	var parts []string
	if f.Object != "" {
		parts = append(parts, "object "+line(f.Object))
	}
	if f.Operation != "" {
		parts = append(parts, "operation "+line(f.Operation))
	}
	if f.Replica != "" {
		parts = append(parts, "shown by "+line(f.Replica))
	}
	return strings.Join(parts, ", ")
}

// leftovers write keys that may still stand in the destination, those that are left for
// the same reason in one line: that can be a whole page.
func leftovers(list []c.Leftover) (lines []string) {
	type group struct{ object, field, reason string }
	keys := map[group][]string{}
	var order []group
	for _, l := range list {
		g := group{line(l.Object), line(l.Field), line(l.Reason)}
		if keys[g] == nil {
			order = append(order, g)
		}
		keys[g] = append(keys[g], line(l.Identifier))
	}
	for _, g := range order {
		s := fmt.Sprintf("%s %s %s", g.object, g.field, strings.Join(keys[g], ", "))
		if g.reason != "" {
			s += " (" + g.reason + ")"
		}
		lines = append(lines, s)
	}
	return lines
}

// waiver says why a failure is accepted, by whom and until when.
func waiver(w *c.Waiver) string {
	if w == nil {
		return ""
	}
	s := line(w.Reason)
	var more []string
	for _, m := range []struct{ word, value string }{{"owner", w.Owner}, {"until", w.Until}, {"issue", w.Issue}} {
		if m.value != "" {
			more = append(more, m.word+" "+line(m.value))
		}
	}
	if len(more) > 0 {
		s += " (" + strings.Join(more, ", ") + ")"
	}
	return s
}
