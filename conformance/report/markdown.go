package report

import (
	"fmt"
	"html"
	"io"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// maxSummary bounds the Markdown: a step summary over one mebibyte is refused
// as a whole.
const maxSummary = 900 << 10

// writeMarkdown writes the summary of a CI step: verdict, counts, failures with
// the commands that show them again, and folded away what is undecided, warnings, residue, settings.
func writeMarkdown(w io.Writer, r *c.Report, opt Options) error {
	m := &markdown{opt: opt}
	m.printf("## destkit: %s\n", md(string(r.Verdict)))
	m.printf("**%s**\n", md(r.Summary))
	target := strings.Join(append([]string{r.Target}, r.Replicas...), " and in turn ")
	m.printf("%s\n", md(strings.Join([]string{target, "profile " + string(r.Profile), "tier " + string(r.Tier),
		sent(r.Calls, r.Records, " · "), duration(r.DurationMS)}, " · ")))
	m.problems(r)
	m.results(r, "Failures", failures(r.Checks), true, true)
	m.areas(r)
	m.open(r)
	m.results(r, "Warnings", lists.Where(r.Checks, isWarning), false, true)
	m.waived(r)
	m.results(r, "Own checks that did not pass (not scored)", lists.Where(r.Own, func(r c.CheckResult) bool {
		return r.Status != c.Pass && r.Status != c.NotApplicable
	}), false, false)
	m.notes(r)
	m.residue(r)
	m.settings(r)
	_, err := io.WriteString(w, strings.TrimRight(m.String(), "\n")+"\n")
	return err
}

type markdown struct {
	strings.Builder
	opt Options
}

// printf writes a line. A format that ends in a line end makes a blank line,
// which ends a paragraph.
func (m *markdown) printf(format string, args ...any) { fmt.Fprintf(m, format+"\n", args...) }

// fold writes the start of a part that is folded away, and returns its end.
func (m *markdown) fold(title string) func() {
	// Inside the element nothing is Markdown, only HTML has a meaning.
	m.printf("<details><summary>%s</summary>\n", html.EscapeString(line(title)))
	return func() { m.printf("</details>\n") }
}

// problems come before everything else: they say whether the rest can be
// believed.
func (m *markdown) problems(r *c.Report) {
	for _, p := range problems(r) {
		m.printf("> **%s**: %s", md(p.Kind), md(limit(p.Message, maxField)))
		if p.Fix != "" {
			m.printf(">\n> Fix: %s", md(p.Fix))
		}
		m.printf("")
	}
}

// areas writes the table of counts.
func (m *markdown) areas(r *c.Report) {
	m.printf("| area | pass | fail | warn | open | n/a |\n|---|--:|--:|--:|--:|--:|")
	for _, a := range append(areas(r.Checks), area{"**all**", r.Checks}) {
		name := md(a.Name)
		if a.Name == "**all**" && len(a.Checks) == len(r.Checks) {
			name = a.Name
		}
		m.printf("| %s | %d | %d | %d | %d | %d |", name, a.Count(c.Pass),
			len(lists.Where(a.Checks, stopsGate)), len(lists.Where(a.Checks, isWarning))+a.Count(c.Waived),
			len(lists.Where(a.Checks, isUndecided)), a.Count(c.NotApplicable))
	}
	m.printf("")
}

// codeSpan puts s between more backticks than it holds in a row.
func codeSpan(s string) string {
	fence := fenceOf("`", s)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return fence + s + fence
}

// fenceOf is a run of backticks that a text does not hold.
func fenceOf(shortest, s string) string {
	for strings.Contains(s, shortest) {
		shortest += "`"
	}
	return shortest
}

// code writes a fenced block whose fence is longer than any run of backticks
// inside it, the only way to end one.
func (m *markdown) code(language, indent, s string) {
	fence := fenceOf("```", s)
	m.printf("%s%s%s", indent, fence, language)
	for l := range strings.SplitSeq(s, "\n") {
		m.printf("%s%s", indent, l)
	}
	m.printf("%s%s\n", indent, fence)
}

// open names what is undecided by what would decide it.
func (m *markdown) open(r *c.Report) {
	n := len(lists.Where(r.Checks, isUndecided))
	if n == 0 {
		return
	}
	defer m.fold(fmt.Sprintf("Undecided (%d)", n))()
	for _, g := range openGroups(r) {
		how := ""
		if g.How != "" {
			how = " (`" + g.How + "`)"
		}
		m.printf("- %d %s%s: %s", len(g.Checks), md(g.What), how, md(strings.Join(ids(g.Checks), ", ")))
	}
	m.printf("")
}

// waived shows accepted failures with reason and owner: a waiver that no one
// sees is forgotten.
func (m *markdown) waived(r *c.Report) {
	checks := lists.Where(r.Checks, hasStatus(c.Waived))
	if len(checks) == 0 {
		return
	}
	defer m.fold(fmt.Sprintf("Waived (%d)", len(checks)))()
	for _, check := range checks {
		m.printf("- %s %s: %s", md(check.ID), md(check.Title), md(waiver(check.Waiver)))
	}
	m.printf("")
}

// notes are observations that break no rule.
func (m *markdown) notes(r *c.Report) {
	notes := lists.Of(allNotes(r), func(n setting) string { return strings.TrimPrefix(md(n.Name)+": "+md(n.Value), ": ") })
	if len(notes) == 0 {
		return
	}
	defer m.fold(fmt.Sprintf("Notes (%d)", len(notes)))()
	m.printf("- %s\n", strings.Join(notes, "\n- "))
}

// residue lists what may still stand in the destination. One sentence is
// enough when nothing does.
func (m *markdown) residue(r *c.Report) {
	res := r.Residue
	left := len(res.Refused) + len(res.Unknown)
	switch {
	case left == 0 && res.Unverified > 0:
		m.printf("Residue: %s. %s\n", md(residueLine(res)), md(res.UnverifiedReason))
		return
	case left == 0:
		if r.Settings.Write && notJudged(r) == nil {
			m.printf("Residue: %s cleaned, none left behind.\n", quantity.Count(res.Cleaned, "record"))
		}
		return
	}
	defer m.fold("Residue: " + residueLine(res))()
	if res.Unverified > 0 {
		m.printf("- only acknowledged: %s", md(res.UnverifiedReason))
	}
	for _, part := range []struct {
		word string
		list []c.Leftover
	}{{"refused", res.Refused}, {"unknown", res.Unknown}} {
		shown := part.list[:min(len(part.list), maxLeftovers)]
		for _, s := range leftovers(shown) {
			m.printf("- %s: %s", part.word, md(s))
		}
		if more := len(part.list) - len(shown); more > 0 {
			m.printf("- %s: %d more in the JSON report", part.word, more)
		}
	}
	m.printf("")
}

// settings stand at the end, folded: complete, and out of the way.
func (m *markdown) settings(r *c.Report) {
	defer m.fold("Settings")()
	m.printf("| setting | value |\n|---|---|")
	for _, s := range settings(r) {
		m.printf("| %s | %s |", md(s.Name), md(s.Value))
	}
	m.printf("")
}

// md writes s as one line of text in which Markdown, HTML, mathematics and
// mentions mean nothing.
func md(s string) string {
	s = line(s)
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '@':
			// A mention is made after the rendering; a comment breaks it.
			b.WriteString("@<!-- -->")
		case r == ':' && strings.HasPrefix(s[i:], "://"), strings.ContainsRune("\\`*_[]<>&|~$#!", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"):
			b.WriteString(`\.`)
		case (r == '-' || r == '+' || r == '=' || r == '(' || r == ')') && i == 0:
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
