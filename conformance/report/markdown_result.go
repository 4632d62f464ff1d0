package report

import (
	"fmt"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/quantity"
)

// markdownExcerptRoom is how much of a response is shown in Markdown.
var markdownExcerptRoom = room{around: 2, lines: 14}

// results writes checks with their findings by their cause. known reports whether they
// are in the catalogue, unlike checks of the author.
func (m *markdown) results(of *c.Report, title string, checks []c.CheckResult, unfolded, known bool) {
	if len(checks) == 0 {
		return
	}
	if unfolded {
		m.printf("### %s\n", md(title))
	} else {
		defer m.fold(fmt.Sprintf("%s (%d)", title, len(checks)))()
	}
	for i, r := range checks {
		if m.Len() > maxSummary {
			m.printf("… and %s, in the JSON report.\n", quantity.Count(len(checks)-i, "more check"))
			return
		}
		m.printf("#### %s %s: %s\n", md(string(r.Status)), md(r.ID), md(r.Title))
		m.printf("%s\n", m.rank(of.Suite, r))
		if r.Reason != "" {
			m.printf("%s\n", md(r.Reason))
		}
		groups := findingGroups(r, maxExamples, markdownExcerptRoom)
		for k, g := range groups {
			if len(groups) > 1 {
				m.printf("**Cause %d of %d**\n", k+1, len(groups))
			}
			m.group(g)
			if m.Len() > maxSummary {
				break
			}
		}
		if known {
			m.again(of, r)
		}
	}
}

// again writes the command that shows the finding once more, where there is one, and
// the one that explains the rule. It is a block, because services offer a copy button.
func (m *markdown) again(of *c.Report, r c.CheckResult) {
	if len(r.Findings) == 0 {
		return
	}
	commands := "destkit explain " + line(r.ID)
	if command := m.opt.again(of, r); command != "" {
		commands = command + "\n" + commands
	}
	m.printf("Again, and explained:\n")
	m.code("sh", "", commands)
}

// rank writes level, authority and sections; a section leads to its sentences.
func (m *markdown) rank(suite string, r c.CheckResult) string {
	var b strings.Builder
	for _, part := range citations(suite, r) {
		b.WriteString(part.Before)
		if part.URL == "" {
			b.WriteString(md(part.Text))
			continue
		}
		fmt.Fprintf(&b, "[%s](%s)", md(part.Text), part.URL)
	}
	return b.String()
}

// group writes the findings of one cause as a list, values as code. Response and
// command follow the list in blocks, where services offer a copy button.
func (m *markdown) group(g findingGroup) {
	for _, e := range g.Examples {
		m.example(e)
	}
	if g.More > 0 {
		m.printf("- and %d more, in the JSON report", g.More)
	}
	if g.First.Rule != "" {
		m.printf("- Rule: %s", md(g.First.Rule))
	}
	if g.First.Cause != "" {
		m.printf("- %s: %s", g.First.CauseLabel(), md(g.First.Cause))
	}
	if g.First.Fix != "" {
		m.printf("- Fix: %s", md(g.First.Fix))
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

// excerpt writes the response that shows the findings; what is wrong in it has a
// mark in the margin.
func (m *markdown) excerpt(x *excerpt) {
	if x == nil {
		return
	}
	m.printf("Response: %s\n", md(x.Head))
	if len(x.Lines) == 0 {
		return
	}
	lines := make([]string, len(x.Lines))
	for i, l := range x.Lines {
		mark := "  "
		if l.Marked {
			mark = "> "
		}
		lines[i] = strings.TrimRight(mark+l.Text, " ")
	}
	m.code("text", "", strings.Join(lines, "\n"))
}
