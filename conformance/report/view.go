package report

import (
	"cmp"
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

// stopsGate reports whether a result is shown as a failure, FLAKY and HARNESS_ERROR only if gating.
func stopsGate(r c.CheckResult) bool {
	return r.Status == c.Fail || (r.Status == c.Flaky || r.Status == c.HarnessError) && r.Gating
}

// isWarning reports whether a result does not decide the verdict and is shown whole.
func isWarning(r c.CheckResult) bool {
	return r.Status == c.Warn || (r.Status == c.Flaky || r.Status == c.HarnessError) && !r.Gating
}

// hasStatus makes a condition that results with one of the statuses meet.
func hasStatus(statuses ...c.Status) func(c.CheckResult) bool {
	return func(r c.CheckResult) bool { return slices.Contains(statuses, r.Status) }
}

var (
	// isUndecided matches the two statuses that leave a verdict incomplete.
	isUndecided = hasStatus(c.Inconclusive, c.NotRun)
	// holds matches results that need no comment.
	holds = hasStatus(c.Pass, c.NotApplicable)
	// failed matches every status that reports an observed breach.
	failed = hasStatus(c.Fail, c.Flaky, c.Warn, c.Waived)
)

// problems leaves out what the failures report themselves: that a gate failed.
func problems(r *c.Report) []c.Problem {
	return lists.Where(r.Problems, func(p c.Problem) bool { return p.Kind != "gate" || len(failures(r.Checks)) == 0 })
}

// problemLevel is the weight of a problem in words of the formats for machines.
func problemLevel(p c.Problem) string {
	if p.ExitStatus != 0 {
		return "error"
	}
	return "warning"
}

// notJudged is the problem for which no check could look at anything, nil when some did.
func notJudged(r *c.Report) *c.Problem {
	for i, p := range r.Problems {
		if p.ExitStatus == 3 && !r.Looked() {
			return &r.Problems[i]
		}
	}
	return nil
}

// residueLine counts what became of the records, and how it was seen.
func residueLine(res c.Residue) string {
	words := map[string]string{"readback": "read-back", "witness": "updates that were skipped"}
	by := lists.Of(res.VerifiedBy, func(b string) string { return orWord(words[b], b) })
	said := fmt.Sprintf("%d cleaned", res.Cleaned) + around(" (shown by ", strings.Join(by, " and "), ")")
	if res.Unverified > 0 {
		said += fmt.Sprintf(", %d by acknowledgement only (not verified)", res.Unverified)
	}
	return said + fmt.Sprintf(", %d refused, %d unknown", len(res.Refused), len(res.Unknown))
}

// sent counts what was sent; the judge of services sends no records.
func sent(calls, records int, between string) string {
	if records == 0 {
		return quantity.Count(calls, "call")
	}
	return quantity.Count(calls, "call") + between + quantity.Count(records, "record")
}

// elsewhere reports whether ERR-006, judged over the whole run, has findings in the calls of other checks alone.
func elsewhere(check c.CheckResult) bool {
	return check.ID == "ERR-006" && len(check.Findings) > 0 && !slices.ContainsFunc(check.Findings, func(f c.Finding) bool {
		return slices.ContainsFunc(f.Exchanges, func(x c.Exchange) bool { return x.Check == check.ID })
	})
}

// again is the command that shows a finding once more, "" without one: only those of a destination are replayed.
func (o Options) again(r *c.Report, check c.CheckResult) string {
	service, rerun, selected := r.Suite == c.SuiteService, line(o.Rerun), " --select "+line(check.ID)
	switch {
	case r.Settings.Passive && (service || rerun == ""):
		return rerun // others made the calls: their recording is judged again
	case rerun != "" && !r.Settings.Passive && elsewhere(check):
		if !slices.Contains(strings.Fields(rerun), "--serial") {
			rerun += " --serial"
		}
		return rerun
	case rerun != "" && (r.Settings.Passive || service || o.ReportFile == ""):
		return rerun + selected
	case service:
		command := "destkit conform service " + foreign.ShellWord(line(r.Target)) + selected
		if r.Settings.Clock == "real" { // without it a check about time would not run
			command += " --patient"
		}
		return command
	case len(exchangesOf(check)) == 0:
		return "" // nothing can be sent again
	}
	command := "destkit replay " + foreign.ShellWord(line(cmp.Or(o.ReportFile, "REPORT"))) + " " + line(check.ID)
	if r.Settings.Write {
		command += " --write"
	}
	return command + o.access()
}

// access is what a command that calls the endpoint ends with.
func (o Options) access() string { return around(" ", line(o.Access), "") }

// failures returns the results that gate, faults of the judge last.
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
	return len(lists.Where(a.Checks, hasStatus(statuses...)))
}

func areas(checks []c.CheckResult) []area {
	names, of := grouped(checks, func(r c.CheckResult) string { return r.Area })
	return lists.Of(names, func(name string) area { return area{name, of[name]} })
}

// grouped makes a group of all that has the same key; order is that of first appearance.
func grouped[T any, K comparable](list []T, key func(T) K) (order []K, groups map[K][]T) {
	groups = map[K][]T{}
	for _, x := range list {
		k := key(x)
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], x)
	}
	return order, groups
}

// openGroup is a set of undecided checks that the same thing would decide.
type openGroup struct {
	decision
	Checks []c.CheckResult
}

// decision is what would decide a check.
type decision struct {
	What string // "decided by a read-back hook", "blocked by RES-002"
	How  string // the flag that grants it, "" when there is none
}

// Musts counts the MUST checks of the group.
func (g openGroup) Musts() int {
	return len(lists.Where(g.Checks, func(r c.CheckResult) bool { return r.Level == c.Must }))
}

// openGroups sorts undecided checks by what would decide them: choices of the reader first, by size.
func openGroups(of *c.Report) []openGroup {
	order, checks := grouped(lists.Where(of.Checks, isUndecided), func(r c.CheckResult) decision {
		switch {
		case r.Decider != "":
			what, how := of.Deciding(r.Decider)
			return decision{"decided by " + line(what), line(how)}
		case len(r.BlockedBy) > 0:
			return decision{What: "blocked by " + line(strings.Join(r.BlockedBy, ", "))}
		}
		return decision{What: "open: " + orWord(r.Reason, "no reason was given")}
	})
	groups := lists.Of(order, func(d decision) openGroup { return openGroup{d, checks[d]} })
	weight := func(g openGroup) int {
		if g.Checks[0].Decider == "" {
			return 0
		}
		return len(g.Checks)
	}
	slices.SortStableFunc(groups, func(a, b openGroup) int { return weight(b) - weight(a) })
	return groups
}

// rank is level, authority and section of a rule, "MUST · spec 7.2.4".
func rank(r c.CheckResult) string {
	return strings.Join(lists.Of(citations("", r), func(part citation) string { return part.Before + part.Text }), "")
}

// citation is a part of a rank behind a separator. URL is the page of a section, "" for other text.
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
	words := map[c.Status]string{c.HarnessError: "ERROR", c.NotApplicable: "N/A", c.NotRun: "NOT RUN"}
	return cmp.Or(words[s], line(string(s)))
}

// duration writes milliseconds for people.
func duration(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case math.IsNaN(ms) || ms < 0:
		return "?"
	case ms < 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", ms), ".0") + " ms"
	case d < time.Second:
		return fmt.Sprintf("%.0f ms", ms)
	case d < time.Minute:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d%time.Minute < time.Second:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}

// place is where a finding was seen: "object contact, operation upsert, shown by URL".
func place(f c.Finding) string {
	return phrases(setting{"object", f.Object}, setting{"operation", f.Operation}, setting{"shown by", f.Replica})
}

// phrases joins those names and values that have a value.
func phrases(all ...setting) string {
	return strings.Join(lists.Of(valued(all), func(s setting) string { return s.Name + " " + line(s.Value) }), ", ")
}

// valued leaves out what has no value.
func valued(all []setting) []setting {
	return lists.Where(all, func(s setting) bool { return s.Value != "" })
}

// leftovers write keys that may still exist in the destination, one line for each reason.
func leftovers(list []c.Leftover) []string {
	order, same := grouped(list, func(l c.Leftover) c.Leftover {
		return c.Leftover{Object: line(l.Object), Field: line(l.Field), Reason: line(l.Reason)}
	})
	return lists.Of(order, func(g c.Leftover) string {
		keys := lists.Of(same[g], func(l c.Leftover) string { return line(l.Identifier) })
		return fmt.Sprintf("%s %s %s", g.Object, g.Field, strings.Join(keys, ", ")) + inBrackets(g.Reason)
	})
}

// waiver is why a failure is accepted, by whom and until when.
func waiver(w *c.Waiver) string {
	if w == nil {
		return ""
	}
	return line(w.Reason) + inBrackets(phrases(setting{"owner", w.Owner}, setting{"until", w.Until}, setting{"issue", w.Issue}))
}

// around is a text between two others; "" has nothing around it.
func around(before, s, after string) string {
	if s == "" {
		return ""
	}
	return before + s + after
}

// inBrackets is what follows a text in brackets; "" has none.
func inBrackets(s string) string { return around(" (", s, ")") }
