package report

import (
	"cmp"
	"fmt"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// title writes one line: status, id, claim, and on the right who requires it.
func (t *terminal) title(r c.CheckResult, indent int) {
	in := strings.Repeat(" ", indent)
	status, id, right := word(r.Status), line(r.ID), rank(r)
	left := foreign.Pad(status, 4) + "  " + id + "  "
	room := t.opt.Width - indent - foreign.Columns(left)
	lines := foreign.Wrap(line(r.Title), max(room, 20))
	// The right part goes behind the last line, or below it when it is full.
	if len(lines) == 0 || foreign.Columns(lines[len(lines)-1])+2+foreign.Columns(right) > room {
		lines = append(lines, "")
	}
	front := t.paint(statusColor(r.Status)+";"+bold, foreign.Pad(status, 4)) + "  " + t.paint(bold, id) + "  "
	for i, l := range lines {
		if i == len(lines)-1 {
			l = foreign.Pad(l, room-foreign.Columns(right)) + t.paint(dim, right)
		}
		t.printf("%s%s%s", in, front, l)
		front = strings.Repeat(" ", foreign.Columns(left))
	}
}

// margin is what the lines below a title begin with.
const (
	margin     = "      "
	bodyIndent = len(margin)
)

// result writes a check that did not pass. known reports whether it is in the catalogue.
func (t *terminal) result(r c.CheckResult, known bool) {
	t.printf("")
	t.title(r, 0)
	reason := line(r.Reason)
	most := maxExamples
	if t.opt.Verbose {
		most = len(r.Findings)
	}
	groups := findingGroups(r, most, excerptRoom)
	if len(groups) == 0 {
		t.para(bodyIndent, "", reason)
	}
	exchanges := map[int]bool{}
	for i, g := range groups {
		if len(groups) > 1 {
			t.printf("%s%s", margin, t.paint(dim, fmt.Sprintf("cause %d of %d", i+1, len(groups))))
		}
		t.findings(g, r.ID, reason, exchanges)
		reason = ""
		if len(groups) > 1 { // several commands come with what they show
			t.curl(g.First.Curl)
		}
	}
	if known {
		t.again(r)
	}
	if len(groups) == 1 { // one comes last, where it is found at a glance
		t.curl(groups[0].First.Curl)
	}
}

// findings writes the findings of one cause of the check id.
func (t *terminal) findings(g findingGroup, id, reason string, exchanges map[int]bool) {
	for _, e := range g.Examples {
		t.para(bodyIndent, "", e.Place)
		t.example(e)
		for _, x := range e.Exchanges {
			if t.opt.Verbose && !exchanges[x.ID] {
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
	is := causeOf(f)
	if first := t.said[is]; first != "" && first != id && is.text != "" {
		t.para(bodyIndent, "", f.CauseLabel()+" and fix: those of "+first+" above")
		return
	}
	t.said[is] = line(id)
	t.para(bodyIndent, f.CauseLabel()+": ", is.text)
	t.para(bodyIndent, "Fix: ", is.fix)
}

// example writes what was expected and seen, with a mark under the part that differs.
func (t *terminal) example(e findingExample) {
	t.value("expected  ", e.Expected)
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

// excerpt writes the response that shows a finding, with a mark at the fault.
func (t *terminal) excerpt(x *excerpt) {
	if x == nil {
		return
	}
	wrong := red + ";" + bold
	t.printf("%s%s%s", margin, t.paint(dim, "response  "), t.paint(map[bool]string{true: wrong}[x.Wrong], x.Head))
	for _, l := range x.Lines {
		t.printf("%s%s", margin, t.paint(map[bool]string{true: wrong, false: dim}[l.Marked], l.String()))
	}
}

// value writes a value that can have several lines.
func (t *terminal) value(label, s string) {
	for _, l := range foreign.Block(limit(s, maxField)) {
		t.para(bodyIndent, label, l)
		label = foreign.Pad("", foreign.Columns(label))
	}
}

// again writes how to send the finding again and where its rule is explained.
func (t *terminal) again(r c.CheckResult) {
	replay := t.opt.again(t.r, r)
	explain := "explain:  destkit explain " + line(r.ID)
	if replay == "" {
		t.printf("%s%s", margin, explain)
		return
	}
	replay = "again:  " + replay
	if gap := t.opt.Width - bodyIndent - foreign.Columns(replay+explain); gap >= 2 {
		t.printf("%s%s%s%s", margin, replay, strings.Repeat(" ", min(gap, 6)), explain)
		return
	}
	t.printf("%s%s\n%s%s", margin, replay, margin, explain)
}

// curl writes the command so that it can be copied out of the terminal.
func (t *terminal) curl(s string) {
	for _, l := range command(s, t.opt.Width-bodyIndent) {
		t.printf("%s%s", margin, t.paint(cyan, l))
	}
}

// exchange writes one exchange in the manner of curl -v.
func (t *terminal) exchange(x wire.Exchange) {
	say := func(mark, s string) { t.printf("%s%s %s", margin, t.paint(dim, mark), line(s)) }
	message := func(mark, first string, header []wire.Header, body wire.Body) {
		say(mark, first)
		for _, h := range header {
			say(mark, h.Name+": "+h.Value)
		}
		for _, l := range foreign.Block(limit(bodyText(body), maxBody)) {
			t.printf("%s%s %s", margin, t.paint(dim, mark), l)
		}
		if note := bodyNote(body); note != "" {
			t.printf("%s%s %s", margin, t.paint(dim, mark), t.paint(dim, note))
		}
	}
	say("*", fmt.Sprintf("exchange %d, %s", x.ID, duration(x.DurationMS)))
	message(">", x.Request.Method+" "+x.Request.URL, x.Request.Header, x.Request.Body)
	if x.Response != nil {
		message("<", fmt.Sprintf("%s %d", x.Response.Proto, x.Response.Status), x.Response.Header, x.Response.Body)
	}
	if x.Retried {
		say("*", "the kept connection was dead, the call was repeated once on a fresh one")
	}
	if x.Error != "" {
		say("*", strings.TrimPrefix(x.Kind+": "+x.Error, ": "))
	}
}

// bodyText is the recorded text, or Base64 of a body that is no text.
func bodyText(b wire.Body) string { return cmp.Or(b.Base64, b.Text) }

// bodyNote is what a reader must know of a body besides its text.
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
