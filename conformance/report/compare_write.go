package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// WriteComparison writes d as text or markdown, the formats of destkit diff.
func WriteComparison(format string, w io.Writer, d Comparison) error {
	compose := map[string]func(Comparison) string{Text: comparisonText, Markdown: comparisonMarkdown}[format]
	if compose == nil {
		return fmt.Errorf("write comparison: unknown format %q, known are %s, %s", format, Text, Markdown)
	}
	if _, err := io.WriteString(w, compose(d)); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// part is one list of a comparison, without its format.
type part struct {
	title string
	items []item
}

// item is one line: an id with its text.
type item struct{ id, says, more string }

func (d Comparison) unfair() []item {
	return lists.Of(d.Unfair, func(x Difference) item {
		return item{id: x.Setting, says: orWord(x.A, "unset") + " → " + orWord(x.B, "unset")}
	})
}

func (d Comparison) findings() []item {
	return lists.Of(d.Findings, func(x FindingChange) item {
		says := "gone: "
		if x.New {
			says = "new: "
		}
		says += around("", place(x.Finding), "; ")
		return item{id: x.ID, says: says + "expected " + limit(x.Finding.Expected, 300) + ", actual " + limit(x.Finding.Actual, 300)}
	})
}

func used(all []part) []part {
	return slices.DeleteFunc(all, func(p part) bool { return len(p.items) == 0 })
}

// parts lists what differs: what fails newly first, then what passes newly.
func (d Comparison) parts() []part {
	changed, blocked := foldBlocked(d.Changed)
	return used([]part{
		{"Newly failing", changes(d.NewlyFailing)},
		{"Newly passing", changes(d.Fixed)},
		{"Blocked by a failure", blocked},
		{"Changed", changes(changed)},
		{"Findings that changed", d.findings()},
		{"Only in the first report", bare(d.OnlyA)},
		{"Only in the second report", bare(d.OnlyB)},
		{"Settings that differ: the comparison is not fair", d.unfair()},
	})
}

// changes writes changes of a status as lines, with the newer reason.
func changes(list []Change) []item {
	return lists.Of(list, func(x Change) item {
		statuses := orWord(word(x.From), "new") + " → " + word(x.To)
		return item{x.ID, statuses + ": " + line(x.Title) + " (" + line(string(x.Level)) + ")", x.Reason}
	})
}

// foldBlocked makes one line of all checks that wait for the same failure, or waited for it with the same result.
func foldBlocked(list []Change) (others []Change, blocked []item) {
	order, waiting := grouped(list, func(x Change) item {
		switch {
		case len(x.BlockedBy) > 0:
			return item{id: strings.Join(x.BlockedBy, ", "), says: "blocked now"}
		case len(x.WasBlockedBy) > 0:
			return item{id: strings.Join(x.WasBlockedBy, ", "), says: "no longer blocked, now " + word(x.To)}
		}
		return item{}
	})
	for _, by := range order {
		if by != (item{}) {
			blocked = append(blocked, item{id: by.id, says: quantity.Count(len(waiting[by]), "check") + " " + by.says})
		}
	}
	return waiting[item{}], blocked
}

// otherTarget is the line about two URLs, such as those of two deployments; "" when there is one.
func (d Comparison) otherTarget() string {
	if d.A.Target == d.B.Target {
		return ""
	}
	return "two URLs were judged: " + line(d.A.Target) + ", then " + line(d.B.Target)
}

// bare makes lines that hold an id and nothing else.
func bare(ids []string) []item { return lists.Of(ids, func(id string) item { return item{id: id} }) }

func (d Comparison) lastLine() string {
	if d.Same() {
		return "no difference"
	}
	s := fmt.Sprintf("%d newly failing, %d newly passing, %d changed, %s with changed findings",
		len(d.NewlyFailing), len(d.Fixed), len(d.Changed), quantity.Count(d.checksOfFindings(), "check"))
	if n := len(d.Unfair); n > 0 {
		s += "; not fair: " + quantity.Count(n, "setting") + " " + quantity.Verb(n, "differs", "differ")
	}
	return s
}

// checksOfFindings counts checks and not findings: one check may have dozens.
func (d Comparison) checksOfFindings() int {
	_, findings := grouped(d.Findings, func(x FindingChange) string { return x.ID })
	return len(findings)
}

// comparisonText ends with the counts, where a terminal stops.
func comparisonText(d Comparison) string {
	t := &terminal{opt: Options{Width: 80}}
	t.para(0, "a  ", line(d.A.RunID+"  "+d.A.Target+"  "+d.A.Summary))
	t.para(0, "b  ", line(d.B.RunID+"  "+d.B.Target+"  "+d.B.Summary))
	t.para(0, "", d.otherTarget())
	for _, p := range d.parts() {
		t.section(fmt.Sprintf("%s (%d)", p.title, len(p.items)))
		for _, i := range p.items {
			if i.says == "" {
				t.para(2, "", line(i.id))
				continue
			}
			label := foreign.Pad(line(i.id), 9) + "  "
			t.para(2, label, line(i.says))
			t.para(2+foreign.Columns(label), "", line(i.more))
		}
	}
	t.printf("\n%s", d.lastLine())
	return t.String()
}

// maxComment is how many bytes of Markdown take another item, whose escapes can make nine
// characters of one: services refuse a comment over 65,536 characters as a whole.
const maxComment = 50 << 10

// unnamed are the characters that the name of a marker must not contain.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9._/]+`)

// Marker returns the first line of the Markdown of a comparison, an HTML comment by which the
// comment of a change is found and updated. Characters of name other than letters, digits,
// ".", "_" and "/" become "-".
func Marker(name string) string {
	name = strings.Trim(unnamed.ReplaceAllString(name, "-"), "-")
	return "<!-- destkit diff: " + orWord(name, "destination") + " -->"
}

// comparisonMarkdown is a comment of a change: both runs, what got worse, and all else folded away.
func comparisonMarkdown(d Comparison) string {
	m := &markdown{}
	m.printf("%s", Marker(d.Name))
	was := ", as before"
	if d.A.Verdict != d.B.Verdict {
		was = ", was " + md(string(d.A.Verdict))
	}
	m.printf("### destkit: %s%s\n", md(string(d.B.Verdict)), was)
	m.printf("**%s**\n", md(d.tally()))
	m.printf("| | verdict | tier | exit | run | summary |\n|---|---|---|--:|---|---|")
	for _, s := range []struct {
		name string
		Side
	}{{"before", d.A}, {"after", d.B}} {
		m.printf("| %s | %s | %s | %d | %s | %s |", s.name, md(string(s.Verdict)), md(string(s.Tier)),
			s.ExitStatus, md(s.RunID), md(limit(s.Summary, 600)))
	}
	m.printf("")
	if text := d.otherTarget(); text != "" {
		m.printf("%s\n", md(text))
	}
	if n := len(d.Unfair); n > 0 {
		m.printf("> Settings that differ: %d. A change may come from them and not from what was judged.\n", n)
	}
	for _, p := range d.commentParts() {
		m.part(p)
	}
	return strings.TrimRight(m.String(), "\n") + "\n"
}

// tally counts what changed. A finding counts with its check, as in lastLine.
func (d Comparison) tally() string {
	if d.Same() {
		return "no difference"
	}
	open, decided, other := d.sortChanged()
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{
		{len(d.NewlyFailing), "got worse"}, {len(d.Fixed), "got better"}, {len(open), "no longer decided"},
		{len(decided), "now decided"}, {len(other), "changed otherwise"},
		{d.checksOfFindings(), "with other findings"}, {len(d.OnlyB), "new"}, {len(d.OnlyA), "gone"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no check changed")
}

// sortChanged separates checks that are no longer decided, now decided, and others.
func (d Comparison) sortChanged() (open, decided, other []Change) {
	blind := func(s c.Status) bool { return s == c.Inconclusive || s == c.NotRun || s == c.HarnessError }
	for _, x := range d.Changed {
		switch {
		case blind(x.To) && !blind(x.From):
			open = append(open, x)
		case blind(x.From) && !blind(x.To):
			decided = append(decided, x)
		default:
			other = append(other, x)
		}
	}
	return open, decided, other
}

// commentParts are the lists of the Markdown, the most important first.
func (d Comparison) commentParts() []part {
	open, decided, other := d.sortChanged()
	open, blocked := foldBlocked(open)
	decided, unblocked := foldBlocked(decided)
	other, rest := foldBlocked(other)
	return used([]part{
		{gotWorse, changes(d.NewlyFailing)},
		{"Got better", changes(d.Fixed)},
		{"Blocked by a failure", slices.Concat(blocked, unblocked, rest)},
		{"No longer decided", changes(open)},
		{"Other findings of checks that failed before", d.findings()},
		{"New checks", bare(d.OnlyB)},
		{"Gone checks", bare(d.OnlyA)},
		{"Now decided", changes(decided)},
		{"Changed otherwise", changes(other)},
		{"Settings that differ", d.unfair()},
	})
}

// gotWorse is the title of the list that is not collapsed.
const gotWorse = "Got worse"

// part writes one list, as far as there is room.
func (m *markdown) part(p part) {
	title := fmt.Sprintf("%s (%d)", p.title, len(p.items))
	if p.title == gotWorse {
		m.printf("#### %s\n", md(title))
	} else {
		defer m.fold(title)()
	}
	for i, x := range p.items {
		if m.Len() > maxComment {
			m.printf("- … and %d more, in `destkit diff --json`", len(p.items)-i)
			break
		}
		says := md(x.id)
		if x.says != "" {
			says += ": " + md(limit(x.says, 600))
		}
		if x.more != "" {
			says += " — " + md(limit(x.more, 300))
		}
		m.printf("- %s", says)
	}
	m.printf("")
}
