package report

import (
	"regexp"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// findingGroup is the findings of one check with one cause: the same defect, seen
// several times.
type findingGroup struct {
	First    c.Finding // what all have in common: rule, cause, fix; its command
	Examples []findingExample
	Excerpt  *excerpt // of the response that shows it
	More     int      // findings that are not among the examples
}

// findingExample is one finding, without what the one before it says already.
type findingExample struct {
	c.Finding
	Place string
	Times int // that the same was seen
}

// maxExamples is how many findings of one cause are shown.
const maxExamples = 3

// findingGroups groups the findings of a result. What the title or the reason says is
// taken out, and a response is shown once.
func findingGroups(r c.CheckResult, most int, size room) []findingGroup {
	var groups []findingGroup
	for _, f := range r.Findings {
		at := 0
		for at < len(groups) && !sameCause(groups[at].First, f) {
			at++
		}
		if at == len(groups) {
			first := f
			if strings.EqualFold(line(f.Rule), line(r.Title)) || f.Rule == r.Reason {
				first.Rule = ""
			}
			groups = append(groups, findingGroup{First: first})
		}
		groups[at].add(f, most)
	}
	shown := map[string]bool{}
	for i := range groups {
		groups[i].lay(shown, size)
	}
	return groups
}

// sameCause reports whether two findings of a check are of one defect. The rule of
// the first may have been taken out, and is that of the check in both.
func sameCause(a, b c.Finding) bool {
	return a.Cause == b.Cause && a.Observed == b.Observed && a.Fix == b.Fix
}

// add puts a finding among the examples, or counts it.
func (g *findingGroup) add(f c.Finding, most int) {
	for i, e := range g.Examples {
		if e.Place == place(f) && e.Expected == f.Expected && withoutIDs(e.Actual) == withoutIDs(f.Actual) {
			g.Examples[i].Times++
			return
		}
	}
	if len(g.Examples) == most {
		g.More++
		return
	}
	g.Examples = append(g.Examples, findingExample{Finding: f, Place: place(f), Times: 1})
}

// callID is the form of the ids that the judge gives its calls.
var callID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// withoutIDs makes texts equal that differ in the ids of calls only.
func withoutIDs(s string) string { return callID.ReplaceAllString(s, "") }

// lay takes out of the examples what is said already, and finds the response that
// shows the first. shown are the bodies that stand above.
func (g *findingGroup) lay(shown map[string]bool, size room) {
	if x := decisive(g.First, size); x != nil {
		// The text that quotes it is as good where it is shown already.
		g.Examples[0].Actual, _ = withoutBody(g.Examples[0].Actual, wire.Body{Text: x.source})
		if !shown[x.source] {
			shown[x.source], g.Excerpt = true, x
		}
	}
	for i := len(g.Examples) - 1; i > 0; i-- {
		e, before := &g.Examples[i], g.Examples[i-1]
		if e.Place == before.Place {
			e.Place = ""
		}
		if e.Expected == before.Expected {
			e.Expected = ""
		}
	}
}
