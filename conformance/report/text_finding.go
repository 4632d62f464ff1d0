package report

import (
	"fmt"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// title writes one line: status, id, claim, and on the right who asks for it.
func (t *terminal) title(r c.CheckResult, indent int) {
	in := strings.Repeat(" ", indent)
	status, id, right := word(r.Status), line(r.ID), rank(r)
	left := foreign.Pad(status, 4) + "  " + id + "  "
	hang := strings.Repeat(" ", foreign.Columns(left))
	room := t.opt.Width - indent - foreign.Columns(left)
	lines := foreign.Wrap(line(r.Title), max(room, 20))
	if len(lines) == 0 {
		lines = []string{""}
	}
	// The right part goes behind the last line, or below it when it is full.
	if foreign.Columns(lines[len(lines)-1])+2+foreign.Columns(right) > room {
		lines = append(lines, "")
	}
	for i, l := range lines {
		front := hang
		if i == 0 {
			front = t.paint(statusColor(r.Status)+";"+bold, foreign.Pad(status, 4)) + "  " + t.paint(bold, id) + "  "
		}
		if i == len(lines)-1 {
			l = foreign.Pad(l, room-foreign.Columns(right)) + t.paint(dim, right)
		}
		t.printf("%s%s%s", in, front, l)
	}
}

const bodyIndent = 6

// excerptRoom is how much of a response is shown in a terminal.
var excerptRoom = room{around: 2, lines: 14}

// result writes a check that did not pass, with its findings by their cause. known
// reports whether it is in the catalogue.
func (t *terminal) result(r c.CheckResult, known bool) {
	t.printf("")
	t.title(r, 0)
	if len(r.Findings) == 0 {
		t.para(bodyIndent, "", line(r.Reason))
	}
	most := maxExamples
	if t.opt.Verbose {
		most = len(r.Findings)
	}
	groups := findingGroups(r, most, excerptRoom)
	// One command comes last, where it is found at a glance; several come with what
	// they show.
	several := len(groups) > 1
	exchanges := map[int]bool{}
	for i, g := range groups {
		if several {
			t.printf("%s%s", strings.Repeat(" ", bodyIndent), t.paint(dim, fmt.Sprintf("cause %d of %d", i+1, len(groups))))
		}
		reason := ""
		if i == 0 {
			reason = line(r.Reason)
		}
		t.findings(g, r.ID, reason, exchanges)
		if several {
			t.curl(g.First.Curl)
		}
	}
	if known {
		t.again(r)
	}
	if len(groups) == 1 {
		t.curl(groups[0].First.Curl)
	}
}

// findings writes the findings of one cause of the check id.
func (t *terminal) findings(g findingGroup, id, reason string, exchanges map[int]bool) {
	for _, e := range g.Examples {
		t.para(bodyIndent, "", e.Place)
		t.example(e)
		if !t.opt.Verbose {
			continue
		}
		for _, x := range e.Exchanges {
			if !exchanges[x.ID] {
				exchanges[x.ID] = true
				t.exchange(x)
			}
		}
	}
	if g.More > 0 {
		t.para(bodyIndent, "", fmt.Sprintf("and %d more, which --verbose lists", g.More))
	}
	if !t.opt.Verbose {
		t.excerpt(g.Excerpt)
	}
	t.para(bodyIndent, "", reason)
	t.para(bodyIndent, "", line(g.First.Rule))
	t.cause(g.First, id)
}

// cause writes why and what to do, once for all checks that show the same.
func (t *terminal) cause(f c.Finding, id string) {
	is := cause{line(f.Cause), line(f.Fix), f.Observed}
	if first := t.said[is]; first != "" && first != id && is.text != "" {
		t.para(bodyIndent, "", f.CauseLabel()+" and fix: those of "+first+" above")
		return
	}
	t.said[is] = line(id)
	if is.text != "" {
		t.para(bodyIndent, f.CauseLabel()+": ", is.text)
	}
	if is.fix != "" {
		t.para(bodyIndent, "Fix: ", is.fix)
	}
}

// example writes what was expected and what was seen, with a mark under the part
// of a value that differs.
func (t *terminal) example(e findingExample) {
	if e.Expected != "" {
		t.value("expected  ", e.Expected)
	}
	actual := e.Actual
	if e.Times > 1 {
		actual += fmt.Sprintf(" (%s)", quantity.Count(e.Times, "time"))
	}
	t.value("actual    ", actual)
	_, at, ok := differ(e.Expected, e.Actual)
	const label = 10
	if !ok || at[0] == at[1] || e.Actual != line(e.Actual) || bodyIndent+label+foreign.Columns(actual) > t.opt.Width {
		return
	}
	t.printf("%s%s", strings.Repeat(" ", bodyIndent+label+foreign.Columns(e.Actual[:at[0]])),
		t.paint(red, strings.Repeat("^", foreign.Columns(e.Actual[at[0]:at[1]]))))
}

// excerpt writes the response that shows a finding; what is wrong in it has a mark
// in the margin.
func (t *terminal) excerpt(x *excerpt) {
	if x == nil {
		return
	}
	head := x.Head
	if x.Wrong {
		head = t.paint(red+";"+bold, head)
	}
	in := strings.Repeat(" ", bodyIndent)
	t.printf("%s%s%s", in, t.paint(dim, "response  "), head)
	for _, l := range x.Lines {
		switch {
		case l.Marked:
			t.printf("%s%s", in, t.paint(red+";"+bold, "> "+l.Text))
		default:
			t.printf("%s%s", in, t.paint(dim, "  "+l.Text))
		}
	}
}

// value writes a value that may have several lines of its own.
func (t *terminal) value(label, s string) {
	for _, l := range block(limit(s, maxField)) {
		t.para(bodyIndent, label, l)
		label = foreign.Pad("", foreign.Columns(label))
	}
}

// again says how to send the finding again and where its rule is explained.
func (t *terminal) again(r c.CheckResult) {
	in := strings.Repeat(" ", bodyIndent)
	command := t.opt.again(t.r, r)
	replay := "again:  " + command
	explain := "explain:  destkit explain " + line(r.ID)
	if command == "" {
		// Without an exchange there is nothing to send again.
		t.printf("%s%s", in, explain)
		return
	}
	if gap := t.opt.Width - bodyIndent - foreign.Columns(replay+explain); gap >= 2 {
		t.printf("%s%s%s%s", in, replay, strings.Repeat(" ", min(gap, 6)), explain)
		return
	}
	t.printf("%s%s\n%s%s", in, replay, in, explain)
}

// curl writes the command so that it can be copied out of the terminal.
func (t *terminal) curl(s string) {
	for _, l := range command(s, t.opt.Width-bodyIndent) {
		t.printf("%s%s", strings.Repeat(" ", bodyIndent), t.paint(cyan, l))
	}
}

// exchange writes one exchange in the manner of curl -v.
func (t *terminal) exchange(x wire.Exchange) {
	in := strings.Repeat(" ", bodyIndent)
	say := func(mark, s string) { t.printf("%s%s %s", in, t.paint(dim, mark), line(s)) }
	say("*", fmt.Sprintf("exchange %d, %s", x.ID, duration(x.DurationMS)))
	say(">", x.Request.Method+" "+x.Request.URL)
	for _, h := range x.Request.Header {
		say(">", h.Name+": "+h.Value)
	}
	t.body(">", x.Request.Body)
	if x.Response != nil {
		say("<", fmt.Sprintf("%s %d", x.Response.Proto, x.Response.Status))
		for _, h := range x.Response.Header {
			say("<", h.Name+": "+h.Value)
		}
		t.body("<", x.Response.Body)
	}
	if x.Retried {
		say("*", "the kept connection was dead, the call was repeated once on a fresh one")
	}
	if x.Error != "" {
		say("*", strings.TrimPrefix(x.Kind+": "+x.Error, ": "))
	}
}

// body writes the beginning of a body: it is evidence, and the whole of it is
// in the JSON report.
func (t *terminal) body(mark string, b wire.Body) {
	in := strings.Repeat(" ", bodyIndent)
	for _, l := range block(limit(bodyText(b), maxBody)) {
		t.printf("%s%s %s", in, t.paint(dim, mark), l)
	}
	if note := bodyNote(b); note != "" {
		t.printf("%s%s %s", in, t.paint(dim, mark), t.paint(dim, note))
	}
}

// bodyText is the recorded text, or Base64 of a body that is no text.
func bodyText(b wire.Body) string {
	if b.Base64 != "" {
		return b.Base64
	}
	return b.Text
}

// bodyNote says what a reader must know of a body beside its text.
func bodyNote(b wire.Body) string {
	var notes []string
	if b.Base64 != "" {
		notes = append(notes, "Base64, not UTF-8")
	}
	if b.Truncated {
		notes = append(notes, fmt.Sprintf("cut, %s in all", quantity.Count(b.Size, "byte")))
	}
	return strings.Join(notes, "; ")
}
