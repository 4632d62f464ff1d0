package report

import (
	"fmt"
	"regexp"
	"strings"

	c "github.com/destkit/destkit/conformance"
)

// maxComment is where the Markdown of a comparison takes no further item, in
// bytes: services refuse a comment over 65,536 characters as a whole. The rest is
// room for the last item, whose escapes can make nine characters of one.
const maxComment = 50 << 10

// unnamed are the characters that may not stand in the name of a marker.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9._/]+`)

// Marker returns the first line of the Markdown of a comparison, an HTML comment
// that is not seen: whoever puts the Markdown into a comment of a change looks
// for it and updates that comment instead of adding another one. Other
// characters of name than letters, digits, ".", "_" and "/" become "-", so that
// the line is one comment whatever the name is.
func Marker(name string) string {
	name = strings.Trim(unnamed.ReplaceAllString(name, "-"), "-")
	return "<!-- destkit diff: " + orWord(name, "destination") + " -->"
}

// comparisonMarkdown is made for a comment of a change: one heading, both runs
// in a table, what got worse in sight and everything else folded away.
func comparisonMarkdown(d Comparison) string {
	m := &markdown{}
	m.printf("%s", Marker(d.Name))
	m.printf("### destkit: %s\n", d.headline())
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

// headline says what became of the verdict.
func (d Comparison) headline() string {
	if d.A.Verdict == d.B.Verdict {
		return md(string(d.B.Verdict)) + ", as before"
	}
	return md(string(d.B.Verdict)) + ", was " + md(string(d.A.Verdict))
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
		{len(d.findingIDs()), "with other findings"}, {len(d.OnlyB), "new"}, {len(d.OnlyA), "gone"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	if len(parts) == 0 {
		return "no check changed"
	}
	return strings.Join(parts, ", ")
}

// sortChanged tells checks that went out of sight from those that came into it:
// a run that decides less is worse, though nothing fails.
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

// commentParts are the lists of the Markdown, the most important first: a
// comment is read from its top.
func (d Comparison) commentParts() []part {
	open, decided, other := d.sortChanged()
	open, blocked := foldBlocked(open)
	decided, unblocked := foldBlocked(decided)
	other, rest := foldBlocked(other)
	blocked = append(append(blocked, unblocked...), rest...)
	return used([]part{
		{gotWorse, changes(d.NewlyFailing)},
		{"Got better", changes(d.Fixed)},
		{"Blocked by a failure", blocked},
		{"No longer decided", changes(open)},
		{"Other findings of checks that failed before", d.findings()},
		{"New checks", bare(d.OnlyB)},
		{"Gone checks", bare(d.OnlyA)},
		{"Now decided", changes(decided)},
		{"Changed otherwise", changes(other)},
		{"Settings that differ", d.unfair()},
	}...)
}

// gotWorse is the list that stands in sight.
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
