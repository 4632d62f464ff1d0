package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

// Options of the text writer. The zero value is plain text, 80 columns wide.
type Options struct {
	// Color writes ANSI colours. Nothing of the report's own text can bring
	// in another escape sequence.
	Color bool
	// Width is the number of columns, 80 when zero, never below 40.
	Width int
	// Verbose lists every check with its evidence, every exchange of a
	// finding and every left-over record.
	Verbose bool
	// ReportFile is the JSON report of this run, named in the lines that say
	// how to send a finding again; REPORT stands there when it is empty.
	ReportFile string
	// Access is what a command adds to get in where this run did, such as
	// "--token-env TOKEN".
	Access string
	// Rerun is the command of this run, without what it selected and reported; where
	// there is no report to replay, a check is judged again with it.
	Rerun string
	// Group writes a part that is not about failures, under its title, where such
	// parts can be folded away; nil: all parts are written alike.
	Group func(w io.Writer, title, text string) error
}

// Bounds of what the short form shows; the JSON report has all.
const (
	maxField     = 4 << 10 // bytes of one expected or actual value
	maxBody      = 2 << 10 // bytes of one body
	maxLeftovers = 20      // records of the residue
)

// terminal collects the text of one report.
type terminal struct {
	strings.Builder
	opt  Options
	r    *c.Report
	said map[cause]string // the checks whose findings have told a cause
}

// cause is what several checks may have in common.
type cause struct {
	text, fix string
	observed  bool
}

// WriteText writes r for a terminal: a table of the areas, what is undecided
// and what would decide it, notes, residue, warnings, and last the failures
// with everything that is needed to repair them. The last line is the summary.
func WriteText(w io.Writer, r *c.Report, opt Options) error {
	opt.Width = cmp.Or(opt.Width, 80)
	opt.Width = max(opt.Width, 40)
	t := &terminal{opt: opt, r: r, said: map[cause]string{}}
	checks := []func(){}
	// Where no check got as far as looking, a list of everything that is open would bury
	// the one problem that matters.
	if len(r.Checks) == 0 || r.Looked() {
		checks = []func(){t.table, t.open}
	}
	for _, part := range []struct {
		title string
		write []func()
	}{
		{"", []func(){t.notJudged, t.head}},
		{"checks by area, and what is undecided", checks},
		{"notes", []func(){t.notes, t.own, t.waived, t.residue, t.passes}},
		{"warnings", []func(){t.warnings}},
		{"", []func(){t.problems, t.failures, func() { t.printf("%s", t.paint(t.verdictColor(), line(r.Summary))) }}},
	} {
		if err := t.part(w, part.title, part.write); err != nil {
			return err
		}
	}
	return nil
}

// part writes one part of the text, folded where it has a title and that is possible.
func (t *terminal) part(w io.Writer, title string, write []func()) error {
	for _, f := range write {
		f()
	}
	text := t.String()
	t.Reset()
	if title != "" && text != "" && t.opt.Group != nil {
		return t.opt.Group(w, title, text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// notJudged puts the reason why nothing was judged, and the fix, on the first
// line: the one thing that its reader has to know. It is not wrapped, so that it
// can be searched for and copied.
func (t *terminal) notJudged() {
	p := notJudged(t.r)
	if p == nil {
		return
	}
	said := "not judged: " + line(limit(p.Message, maxField))
	if p.Fix != "" {
		said += ". Fix: " + line(p.Fix)
	}
	t.printf("%s", t.paint(yellow+";"+bold, said))
}

// The colours by what they mean.
const (
	red, green, yellow, cyan, dim, bold = "31", "32", "33", "36", "2", "1"
)

// paint colours s, or leaves it where colours are off. Everything that is
// painted has gone through line or block before.
func (t *terminal) paint(color, s string) string {
	if !t.opt.Color || color == "" || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// verdictColor is green for a verdict without a reservation only: what holds in
// part, a stale waiver and residue are no green matters.
func (t *terminal) verdictColor() string {
	switch {
	case t.r.Verdict == c.NonConformant:
		return red + ";" + bold
	case t.r.ExitStatus != 0 || t.r.Verdict != c.Conformant:
		return yellow + ";" + bold
	}
	return green + ";" + bold
}

// statusColor groups the statuses by what a reader has to do about them.
func statusColor(s c.Status) string {
	return map[string]string{"good": green, "bad": red, "warn": yellow, "none": dim, "open": cyan}[tone(s)]
}

// printf writes one line.
func (t *terminal) printf(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// section starts a part of the report.
func (t *terminal) section(title string) { t.printf("\n%s", t.paint(bold, title)) }

// para writes wrapped text with an indentation; label stands before the first
// line and the others are aligned with what follows it.
func (t *terminal) para(indent int, label, s string) {
	in := strings.Repeat(" ", indent)
	hang := strings.Repeat(" ", foreign.Columns(label))
	for i, l := range foreign.Wrap(s, max(t.opt.Width-indent-foreign.Columns(label), 20)) {
		l = unglue(l)
		if i == 0 {
			t.printf("%s%s%s", in, t.paint(dim, label), l)
			continue
		}
		t.printf("%s%s%s", in, hang, l)
	}
}

// head says what was judged, how strictly and with how much evidence.
func (t *terminal) head() {
	r := t.r
	t.printf("%s", t.paint(bold, line(r.Target)))
	for _, replica := range r.Replicas {
		t.printf("and in turn %s", line(replica))
	}
	parts := []string{line(r.Suite), "profile " + line(string(r.Profile)), "tier " + line(string(r.Tier)),
		sent(r.Calls, r.Records, " · "), duration(r.DurationMS)}
	for i := range parts {
		parts[i] = glue(parts[i])
	}
	t.para(0, "", strings.Join(parts, " · "))
	t.printf("")
}

// table counts the statuses per area. Columns of rare statuses appear only
// when they are needed.
func (t *terminal) table() {
	cols := []struct {
		title    string
		statuses []c.Status
		always   bool
	}{
		{"pass", []c.Status{c.Pass}, true},
		{"fail", []c.Status{c.Fail}, true},
		{"flaky", []c.Status{c.Flaky}, false},
		{"error", []c.Status{c.HarnessError}, false},
		{"warn", []c.Status{c.Warn}, true},
		{"waived", []c.Status{c.Waived}, false},
		{"open", []c.Status{c.Inconclusive, c.NotRun}, true},
		{"n/a", []c.Status{c.NotApplicable}, true},
	}
	all := area{Name: "all", Checks: t.r.Checks}
	used := cols[:0:0]
	room := t.opt.Width
	for _, col := range cols {
		if col.always || all.Count(col.statuses...) > 0 {
			used = append(used, col)
			room -= 7
		}
	}
	name := max(min(room, 34), 14)
	head := foreign.Pad("", name)
	for _, col := range used {
		head += padLeft(col.title, 7)
	}
	t.printf("%s", t.paint(dim, head))
	rows := areas(t.r.Checks)
	for _, a := range append(rows, all) {
		row := foreign.Pad(cut(line(a.Name), name), name)
		for _, col := range used {
			n := a.Count(col.statuses...)
			if n == 0 {
				row += t.paint(dim, padLeft("·", 7))
				continue
			}
			row += t.paint(statusColor(col.statuses[0]), padLeft(fmt.Sprint(n), 7))
		}
		t.printf("%s", row)
	}
}

// cut shortens a name that is wider than n columns.
func cut(s string, n int) string {
	if foreign.Columns(s) <= n {
		return s
	}
	for runes := []rune(s); len(runes) > 0; {
		runes = runes[:len(runes)-1]
		if foreign.Columns(string(runes))+1 <= n {
			return string(runes) + "…"
		}
	}
	return ""
}
