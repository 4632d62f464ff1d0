package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
)

// Options of the text writer. The zero value is plain text, 80 columns wide.
type Options struct {
	Color      bool   // writes ANSI colours; the text of the report can bring in no escape sequence
	Width      int    // in columns, 80 when zero, never below 40
	Verbose    bool   // lists every check, every exchange of a finding and every left-over record
	ReportFile string // the JSON report of this run in commands that replay it, REPORT when empty
	Access     string // what a command adds to get in where this run did, such as "--token-env TOKEN"
	Rerun      string // the command of this run, without selection and reports; it judges a check again
	Private    bool   // files can be read by their owner alone
	// Group writes a part that is not about failures so that it can be folded away; it may be nil.
	Group func(w io.Writer, title, text string) error
}

// Bounds of what the short form shows; the JSON report has all.
const (
	maxField     = 4 << 10 // bytes of one expected or actual value
	maxBody      = 2 << 10 // bytes of one body
	maxLeftovers = 20      // records of the residue
	maxExamples  = 2       // findings of one cause
)

type printer struct{ strings.Builder }

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

type terminal struct {
	printer
	opt  Options
	r    *c.Report
	said map[cause]string // the checks whose findings have shown a cause
}

// WriteText writes r for a terminal: counts, undecided checks, notes, residue, warnings, and last
// the failures with everything that is needed to repair them, and the summary.
func WriteText(w io.Writer, r *c.Report, opt Options) error {
	opt.Width = max(cmp.Or(opt.Width, 80), 40)
	t := &terminal{opt: opt, r: r, said: map[cause]string{}}
	var checks []func()
	// Where nothing was looked at, a list of everything that is open would bury the problem.
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
		for _, write := range part.write {
			write()
		}
		text := t.String()
		t.Reset()
		var err error
		if part.title != "" && text != "" && opt.Group != nil {
			err = opt.Group(w, part.title, text)
		} else {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// notJudged puts why nothing was judged on the first line, unwrapped, so that it can be searched for and copied.
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
const red, green, yellow, cyan, dim, bold = "31", "32", "33", "36", "2", "1"

// paint colours s, which has gone through line or text, or leaves it where colours are off.
func (t *terminal) paint(color, s string) string {
	if !t.opt.Color || color == "" || s == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// verdictColor is green for a verdict without a reservation only.
func (t *terminal) verdictColor() string {
	colors := map[string]string{"good": green, "bad": red}
	return cmp.Or(colors[verdictTone(t.r)], yellow) + ";" + bold
}

// statusColor groups the statuses by what a reader has to do about them.
func statusColor(s c.Status) string {
	return map[string]string{"good": green, "bad": red, "warn": yellow, "none": dim, "open": cyan}[tone(s)]
}

func (t *terminal) section(title string) { t.printf("\n%s", t.paint(bold, title)) }

// para writes wrapped text behind a label, with an indentation. No text has no line.
func (t *terminal) para(indent int, label, s string) {
	front := t.paint(dim, label)
	for _, l := range foreign.Wrap(s, max(t.opt.Width-indent-foreign.Columns(label), 20)) {
		t.printf("%s%s%s", strings.Repeat(" ", indent), front, strings.ReplaceAll(l, "\u00a0", " "))
		front = strings.Repeat(" ", foreign.Columns(label))
	}
}

// head writes what was judged, how strictly and with how much evidence.
func (t *terminal) head() {
	r := t.r
	t.printf("%s", t.paint(bold, line(r.Target)))
	for _, replica := range r.Replicas {
		t.printf("and in turn %s", line(replica))
	}
	parts := []string{line(r.Suite), "profile " + line(string(r.Profile)), "tier " + line(string(r.Tier)),
		sent(r.Calls, r.Records, " · "), duration(r.DurationMS)}
	t.para(0, "", strings.Join(lists.Of(parts, glue), " · "))
	t.printf("")
}

// table counts the statuses per area; rare statuses have a column when they are needed.
func (t *terminal) table() {
	cols := []struct {
		title    string
		statuses []c.Status
		always   bool
	}{
		{"pass", []c.Status{c.Pass}, true}, {"fail", []c.Status{c.Fail}, true},
		{"flaky", []c.Status{c.Flaky}, false}, {"error", []c.Status{c.HarnessError}, false},
		{"warn", []c.Status{c.Warn}, true}, {"waived", []c.Status{c.Waived}, false},
		{"open", []c.Status{c.Inconclusive, c.NotRun}, true}, {"n/a", []c.Status{c.NotApplicable}, true},
	}
	all := area{Name: "all", Checks: t.r.Checks}
	used := cols[:0:0]
	for _, col := range cols {
		if col.always || all.Count(col.statuses...) > 0 {
			used = append(used, col)
		}
	}
	name := max(min(t.opt.Width-7*len(used), 34), 14)
	head := foreign.Pad("", name)
	for _, col := range used {
		head += fmt.Sprintf("%7s", col.title)
	}
	t.printf("%s", t.paint(dim, head))
	for _, a := range append(areas(t.r.Checks), all) {
		row := foreign.Pad(cut(line(a.Name), name), name)
		for _, col := range used {
			n := a.Count(col.statuses...)
			if n == 0 {
				row += t.paint(dim, fmt.Sprintf("%7s", "·"))
				continue
			}
			row += t.paint(statusColor(col.statuses[0]), fmt.Sprintf("%7d", n))
		}
		t.printf("%s", row)
	}
}

// cut shortens a name that is wider than n columns.
func cut(s string, n int) string {
	if foreign.Columns(s) <= n {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && foreign.Columns(string(runes)) >= n {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// glue keeps the words of s on one line when a paragraph is wrapped.
func glue(s string) string { return strings.ReplaceAll(s, " ", "\u00a0") }

// command is a shell command as lines that can be copied: it is broken only between words.
// Control characters inside quotes become $'…', which bash, zsh, ksh and POSIX 2024 read alike.
func command(s string, n int) (lines []string) {
	for _, words := range shellLines(s) {
		words = options(words)
		cur := words[0]
		for _, w := range words[1:] {
			if foreign.Columns(cur)+1+foreign.Columns(w)+2 <= n {
				cur += " " + w
				continue
			}
			lines = append(lines, cur+` \`)
			cur = "  " + w
		}
		lines = append(lines, cur)
	}
	return lines
}

// options joins an option with its value, so that no line ends between them.
func options(words []string) []string {
	var out []string
	for i, w := range words {
		if i > 0 && strings.HasPrefix(words[i-1], "-") && !strings.HasPrefix(w, "-") {
			out[len(out)-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// shellPart is a quotation, an escaped character or any other one, as a shell reads them.
var shellPart = regexp.MustCompile(`(?s)'[^']*'?|"(?:\\.|[^"\\])*"?|\\.?|.`)

// shellLines splits a command at unquoted line ends, and these at unquoted spaces; no line is without a word.
func shellLines(s string) (lines [][]string) {
	var words []string
	word := ""
	endWord := func() {
		if word != "" {
			words, word = append(words, word), ""
		}
	}
	for _, part := range append(shellPart.FindAllString(s, -1), "\n") {
		switch part {
		case " ", "\\\n": // a continued line is broken again, where there is room
			endWord()
		case "\n":
			if endWord(); len(words) > 0 {
				lines, words = append(lines, words), nil
			}
		default:
			word += printable(part)
		}
	}
	return lines
}

// printable is a part of a command in a form that prints.
func printable(part string) string {
	quote := ""
	if part[0] == '\'' || part[0] == '"' {
		quote = part[:1]
	}
	var b strings.Builder
	for i, r := range part {
		switch rest := part[i:]; {
		case foreign.Hidden(r) || r == utf8.RuneError:
			// One character that must not be printed is outside the quotes.
			fmt.Fprintf(&b, "%s$'%s'%s", quote, strings.ReplaceAll(fmt.Sprintf(" % x", string(r)), " ", `\x`), quote)
		case quote != "" && (strings.HasPrefix(rest, "##[") || strings.HasPrefix(rest, "##vso[")):
			// Two quotes change nothing for the shell and keep a CI service from reading a command.
			b.WriteString("#" + quote + quote)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
