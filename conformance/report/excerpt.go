package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
)

// excerpt is the part of a response that shows the fault.
type excerpt struct {
	Head   string // "HTTP 200 to sync_batch"
	Wrong  bool   // the status itself is wrong
	Lines  []excerptLine
	source string // the body that it is of
}

// excerptLine is a line of a response. A gap replaces lines that are left out.
type excerptLine struct {
	Text        string
	Marked, Gap bool
}

// String is the line with its mark in the margin.
func (l excerptLine) String() string {
	if l.Marked {
		return "> " + l.Text
	}
	return "  " + l.Text
}

// Bounds of an excerpt, in lines and in characters of one line.
const (
	maxExcerptLine = 300
	maxMarks       = 6        // more of them mark nothing
	maxPretty      = 64 << 10 // bytes of a body that is laid out
	maxNesting     = 32       // of JSON that is laid out: each level indents all below it
)

// room is how much of a response is shown: lines around a marked one, and in all.
type room struct{ around, lines int }

var (
	excerptRoom     = room{around: 2, lines: 14} // in a terminal and in Markdown
	htmlExcerptRoom = room{around: 3, lines: 30}
)

// decisive is the response that a finding quotes, else the first in which something is marked; nil without one.
func decisive(f c.Finding, r room) *excerpt {
	var best *excerpt
	rank := -1
	for _, x := range f.Exchanges {
		if x.Response == nil {
			continue
		}
		lines := layOut(x.Response.Body)
		actual, quoted := withoutBody(f.Actual, x.Response.Body)
		absent := absentFrom(f, x.Response.Body.Text)
		marked := make([]bool, len(lines))
		if absent == "" {
			marked = mark(lines, f.Expected, actual, x.Request.Body.Text)
		}
		is := 0
		if quoted {
			is = 2
		} else if slices.Contains(marked, true) {
			is = 1
		}
		if is <= rank {
			continue
		}
		rank = is
		best = &excerpt{Head: responseHead(x), Wrong: strings.Contains(actual, fmt.Sprintf("HTTP %d", x.Response.Status)),
			Lines: window(lines, marked, r), source: x.Response.Body.Text}
		if absent != "" {
			best.Lines = append(best.Lines, excerptLine{Text: absent, Marked: true})
		}
	}
	return best
}

func responseHead(x wire.Exchange) string {
	head := fmt.Sprintf("HTTP %d", x.Response.Status)
	if x.RPC != "" {
		head += " to " + line(x.RPC)
	}
	return head + inBrackets(bodyNote(x.Response.Body))
}

// layOut writes a body as lines, JSON with one member on each.
func layOut(b wire.Body) []string {
	s := b.Text[:min(len(b.Text), maxPretty)]
	var pretty bytes.Buffer
	if nesting(s) <= maxNesting && json.Indent(&pretty, []byte(s), "", "  ") == nil {
		s = pretty.String()
	}
	return foreign.Block(s)
}

// nesting is at least how deep the brackets of JSON are nested.
func nesting(s string) (most int) {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '[', '{':
			depth++
			most = max(most, depth)
		case ']', '}':
			depth--
		}
	}
	return most
}

// below is the text in place of a response that is shown separately.
const below = "the response below"

// withoutBody takes a response out of what was seen: it is shown below, laid out.
func withoutBody(actual string, b wire.Body) (rest string, quoted bool) {
	body := strings.TrimSpace(b.Text)
	if len(body) < 40 {
		return actual, false
	}
	before, after, found := strings.Cut(actual, body[:40])
	if !found {
		return actual, false
	}
	quote := body[:40] + after
	if short, cut := strings.CutSuffix(quote, "…"); cut && strings.HasPrefix(body, short) {
		return before + below, true
	}
	if rest, whole := strings.CutPrefix(quote, body); whole {
		return before + below + rest, true
	}
	return actual, false
}

// window keeps the marked lines with some around them.
func window(lines []string, marked []bool, r room) (out []excerptLine) {
	keep := make([]bool, len(lines))
	kept := 0
	take := func(i int) {
		if i >= 0 && i < len(lines) && !keep[i] && kept < r.lines {
			keep[i] = true
			kept++
		}
	}
	for away := range r.around + 1 {
		for i := range lines {
			if marked[i] {
				take(i - away)
				take(i + away)
			}
		}
	}
	if kept == 0 || len(lines) <= r.lines {
		for i := range lines {
			take(i)
		}
	}
	indent := math.MaxInt // how many spaces all lines that are kept begin with
	for i, l := range lines {
		if keep[i] && l != "" {
			indent = min(indent, indentOf(l))
		}
	}
	for i, l := range lines {
		switch {
		case keep[i]:
			out = append(out, excerptLine{Text: foreign.Clip(l[min(indent, len(l)):], maxExcerptLine), Marked: marked[i]})
		case len(out) == 0 || !out[len(out)-1].Gap:
			out = append(out, excerptLine{Text: "…", Gap: true})
		}
	}
	return out
}

// absence and typed introduce what should be in a response.
var (
	absence = regexp.MustCompile(`missing ((?:"(?:[^"\\]|\\.)*"(?:, )?)+)`)
	typed   = regexp.MustCompile(`^("[a-z_]+") as `)
)

// absentFrom is the line for a part that a response lacks.
func absentFrom(f c.Finding, body string) string {
	found := absence.FindStringSubmatch(f.Actual)
	if found == nil {
		found = typed.FindStringSubmatch(f.Expected)
	}
	if found == nil || strings.Contains(body, found[1]) {
		return ""
	}
	return "missing: " + foreign.Clip(line(found[1]), maxExcerptLine)
}

// literal is a value of JSON in a text, as far as it is worth comparing.
var literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\]]*\]|-?[0-9][0-9.eE+-]*|true|false|null`)

// differ finds the parts that differ, as byte ranges, in texts like "stored as X" and "it is Y".
func differ(expected, actual string) (in, at [2]int, ok bool) {
	all, seen := literal.FindAllStringIndex(expected, -1), literal.FindStringIndex(actual)
	if len(all) == 0 || seen == nil || seen[1] != len(actual) {
		return in, at, false
	}
	wanted := all[len(all)-1]
	if wanted[1] != len(expected) {
		return in, at, false
	}
	a, b := []rune(expected[wanted[0]:wanted[1]]), []rune(actual[seen[0]:seen[1]])
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	to := 0
	for to < len(a)-from && to < len(b)-from && a[len(a)-1-to] == b[len(b)-1-to] {
		to++
	}
	if from+to == 0 || from+to >= max(len(a), len(b)) {
		return in, at, false // nothing in common, or nothing that differs
	}
	span := func(r []rune, start int) [2]int {
		return [2]int{start + len(string(r[:from])), start + len(string(r[:len(r)-to]))}
	}
	return span(a, wanted[0]), span(b, seen[0]), true
}
