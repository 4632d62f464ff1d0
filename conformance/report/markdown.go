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

// maxSummary bounds the Markdown: a step summary over one mebibyte is refused as a whole.
const maxSummary = 900 << 10

type markdown struct {
	printer // a format that ends in a line end makes a blank line, which ends a paragraph
	opt     Options
	r       *c.Report
}

// writeMarkdown writes the summary of a CI step: verdict, problems, failures, counts, and folded away the rest.
func writeMarkdown(w io.Writer, r *c.Report, opt Options) error {
	m := &markdown{opt: opt, r: r}
	m.printf("## destkit: %s\n", md(string(r.Verdict)))
	m.printf("**%s**\n", md(r.Summary))
	target := strings.Join(append([]string{r.Target}, r.Replicas...), " and in turn ")
	m.printf("%s\n", md(strings.Join([]string{target, "profile " + string(r.Profile), "tier " + string(r.Tier),
		sent(r.Calls, r.Records, " · "), duration(r.DurationMS)}, " · ")))
	m.problems()
	if gated := failures(r.Checks); len(gated) > 0 {
		m.printf("### Failures\n")
		m.results(gated, true)
	}
	m.areas()
	m.list(fmt.Sprintf("Undecided (%d)", len(lists.Where(r.Checks, isUndecided))), lists.Of(openGroups(r), func(g openGroup) string {
		what := md(g.What) + around(" (`", g.How, "`)")
		return fmt.Sprintf("%d %s: %s", len(g.Checks), what, md(strings.Join(ids(g.Checks), ", ")))
	}))
	m.folded("Warnings", lists.Where(r.Checks, isWarning), true)
	// A hidden waiver is forgotten.
	waived := lists.Where(r.Checks, hasStatus(c.Waived))
	m.list(fmt.Sprintf("Waived (%d)", len(waived)), lists.Of(waived, func(check c.CheckResult) string {
		return md(check.ID) + " " + md(check.Title) + ": " + md(waiver(check.Waiver))
	}))
	m.folded("Own checks that did not pass (not scored)", lists.Where(r.Own, func(r c.CheckResult) bool { return !holds(r) }), false)
	notes := lists.Of(allNotes(r), func(n setting) string { return strings.TrimPrefix(md(n.Name)+": "+md(n.Value), ": ") })
	m.list(fmt.Sprintf("Notes (%d)", len(notes)), notes)
	m.residue()
	end := m.fold("Settings")
	rows := lists.Of(settings(r), func(s setting) string { return "| " + md(s.Name) + " | " + md(s.Value) + " |\n" })
	m.printf("| setting | value |\n|---|---|\n%s", strings.Join(rows, ""))
	end()
	_, err := io.WriteString(w, strings.TrimRight(m.String(), "\n")+"\n")
	return err
}

// fold writes the start of a part that is folded away, and returns its end.
func (m *markdown) fold(title string) func() {
	// Inside the element nothing is Markdown, only HTML has a meaning.
	m.printf("<details><summary>%s</summary>\n", html.EscapeString(line(title)))
	return func() { m.printf("</details>\n") }
}

// list writes items that are folded away, if there are any.
func (m *markdown) list(title string, items []string) {
	if len(items) > 0 {
		defer m.fold(title)()
		m.printf("- %s\n", strings.Join(items, "\n- "))
	}
}

// problems come first: they show whether the rest can be believed.
func (m *markdown) problems() {
	for _, p := range problems(m.r) {
		m.printf("> **%s**: %s", md(p.Kind), md(limit(p.Message, maxField)))
		if p.Fix != "" {
			m.printf(">\n> Fix: %s", md(p.Fix))
		}
		m.printf("")
	}
}

func (m *markdown) areas() {
	m.printf("| area | pass | fail | warn | open | n/a |\n|---|--:|--:|--:|--:|--:|")
	row := func(name string, a area) {
		m.printf("| %s | %d | %d | %d | %d | %d |", name, a.Count(c.Pass),
			len(lists.Where(a.Checks, stopsGate)), len(lists.Where(a.Checks, isWarning))+a.Count(c.Waived),
			len(lists.Where(a.Checks, isUndecided)), a.Count(c.NotApplicable))
	}
	for _, a := range areas(m.r.Checks) {
		row(md(a.Name), a)
	}
	row("**all**", area{Checks: m.r.Checks})
	m.printf("")
}

// residue lists what may still exist in the destination, or reports that nothing does.
func (m *markdown) residue() {
	res := m.r.Residue
	var items []string
	if res.Unverified > 0 {
		items = append(items, "only acknowledged: "+md(res.UnverifiedReason))
	}
	for _, part := range []struct {
		word string
		list []c.Leftover
	}{{"refused", res.Refused}, {"unknown", res.Unknown}} {
		shown := part.list[:min(len(part.list), maxLeftovers)]
		for _, s := range leftovers(shown) {
			items = append(items, part.word+": "+md(s))
		}
		if more := len(part.list) - len(shown); more > 0 {
			items = append(items, fmt.Sprintf("%s: %d more in the JSON report", part.word, more))
		}
	}
	switch left := len(res.Refused) + len(res.Unknown); {
	case left > 0:
		m.list("Residue: "+residueLine(res), items)
	case res.Unverified > 0:
		m.printf("Residue: %s. %s\n", md(residueLine(res)), md(res.UnverifiedReason))
	case m.r.Settings.Write && notJudged(m.r) == nil:
		m.printf("Residue: %s cleaned, none left behind.\n", quantity.Count(res.Cleaned, "record"))
	}
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

// code writes a block whose fence is longer than any run of backticks inside it.
func (m *markdown) code(language, indent, s string) {
	fence := fenceOf("```", s)
	m.printf("%s%s%s", indent, fence, language)
	for l := range strings.SplitSeq(s, "\n") {
		m.printf("%s%s", indent, l)
	}
	m.printf("%s%s\n", indent, fence)
}

// folded writes checks that are folded away, if there are any.
func (m *markdown) folded(title string, checks []c.CheckResult, known bool) {
	if len(checks) > 0 {
		defer m.fold(fmt.Sprintf("%s (%d)", title, len(checks)))()
		m.results(checks, known)
	}
}

// results writes checks with their findings. known reports whether they are in the catalogue.
func (m *markdown) results(checks []c.CheckResult, known bool) {
	for i, r := range checks {
		if m.Len() > maxSummary {
			m.printf("… and %s, in the JSON report.\n", quantity.Count(len(checks)-i, "more check"))
			return
		}
		m.printf("#### %s %s: %s\n", md(string(r.Status)), md(r.ID), md(r.Title))
		m.printf("%s\n", m.rank(r))
		if r.Reason != "" {
			m.printf("%s\n", md(r.Reason))
		}
		groups := findingGroups(r, maxExamples, excerptRoom)
		for k, g := range groups {
			if len(groups) > 1 {
				m.printf("**Cause %d of %d**\n", k+1, len(groups))
			}
			m.group(g)
			if m.Len() > maxSummary {
				break
			}
		}
		if known && len(r.Findings) > 0 {
			m.again(r)
		}
	}
}

// again writes the command that shows the finding once more, if any, and the one that explains the rule.
func (m *markdown) again(r c.CheckResult) {
	commands := "destkit explain " + line(r.ID)
	if command := m.opt.again(m.r, r); command != "" {
		commands = command + "\n" + commands
	}
	m.printf("Again, and explained:\n")
	m.code("sh", "", commands)
}

// rank writes level, authority and sections; a section leads to its sentences.
func (m *markdown) rank(r c.CheckResult) string {
	return strings.Join(lists.Of(citations(m.r.Suite, r), func(part citation) string {
		if part.URL == "" {
			return part.Before + md(part.Text)
		}
		return fmt.Sprintf("%s[%s](%s)", part.Before, md(part.Text), part.URL)
	}), "")
}

// group writes the findings of one cause; texts to copy are in blocks, where services offer a button.
func (m *markdown) group(g findingGroup) {
	for _, e := range g.Examples {
		m.example(e)
	}
	if g.More > 0 {
		m.printf("- and %d more, in the JSON report", g.More)
	}
	for _, s := range valued([]setting{{"Rule", g.First.Rule}, {g.First.CauseLabel(), g.First.Cause}, {"Fix", g.First.Fix}}) {
		m.printf("- %s: %s", s.Name, md(s.Value))
	}
	m.printf("")
	m.excerpt(g.Excerpt)
	if lines := command(g.First.Curl, 100); len(lines) > 0 {
		m.code("sh", "", strings.Join(lines, "\n"))
	}
}

// example writes where one finding was seen, what was expected and what was seen.
func (m *markdown) example(e findingExample) {
	if e.Place != "" {
		m.printf("- %s", md(e.Place))
	}
	seen := "Actual"
	if e.Times > 1 {
		seen = fmt.Sprintf("Actual, %s", quantity.Count(e.Times, "time"))
	}
	for _, v := range []setting{{"Expected", e.Expected}, {seen, e.Actual}} {
		switch s := text(limit(v.Value, maxField)); {
		case s == "":
		case strings.Contains(s, "\n"):
			m.printf("- %s:\n", v.Name)
			m.code("text", "  ", s)
		default:
			m.printf("- %s: %s", v.Name, codeSpan(s))
		}
	}
}

// excerpt writes the response that shows the findings, with a mark at the fault.
func (m *markdown) excerpt(x *excerpt) {
	if x == nil {
		return
	}
	m.printf("Response: %s\n", md(x.Head))
	if len(x.Lines) == 0 {
		return
	}
	lines := lists.Of(x.Lines, func(l excerptLine) string { return strings.TrimRight(l.String(), " ") })
	m.code("text", "", strings.Join(lines, "\n"))
}

// md writes s as one line in which Markdown, HTML, mathematics and mentions mean nothing.
func md(s string) string {
	s = line(s)
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '@':
			// A mention is made after the rendering; a comment breaks it.
			b.WriteString("@<!-- -->")
			continue
		case r == ':' && strings.HasPrefix(s[i:], "://"), strings.ContainsRune("\\`*_[]<>&|~$#!", r),
			r == '.' && i >= 3 && strings.EqualFold(s[i-3:i], "www"), i == 0 && strings.ContainsRune("-+=()", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
