package report

import (
	"fmt"
	"io"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/quantity"
)

// writeGitHub writes workflow commands, one per line: an error for each gate
// that failed and each problem of the run, a warning for each rule below the
// gate, and one notice with the summary. The service shows ten of a kind per
// step, so that those that gate come first.
func writeGitHub(w io.Writer, r *c.Report) error {
	var b strings.Builder
	say := func(command, title, message string) {
		fmt.Fprintf(&b, "::%s title=%s::%s\n", command, property(title), data(message))
	}
	for _, p := range problems(r) {
		level := "warning"
		if p.ExitStatus != 0 {
			level = "error"
		}
		say(level, "destkit: "+p.Kind, p.Message+"\n"+p.Fix)
	}
	for _, check := range failures(r.Checks) {
		say("error", title(check), details(check))
	}
	for _, check := range filter(r.Checks, isWarning) {
		say("warning", title(check), details(check))
	}
	own := func(r c.CheckResult) bool { return stopsGate(r) || isWarning(r) }
	for _, check := range filter(r.Own, own) {
		say("warning", title(check), "not scored\n"+details(check))
	}
	if n := len(filter(r.Checks, isUndecided)); n > 0 {
		var lines []string
		for _, g := range openGroups(r) {
			lines = append(lines, strings.TrimSuffix(g.What+" ("+g.How+")", " ()")+": "+strings.Join(ids(g.Checks), " "))
		}
		say("notice", fmt.Sprintf("destkit: %s undecided", quantity.Count(n, "check")), strings.Join(lines, "\n"))
	}
	say("notice", "destkit: "+string(r.Verdict), r.Summary)
	_, err := io.WriteString(w, b.String())
	return err
}

// title is the line in bold of an annotation; the id makes it searchable.
func title(r c.CheckResult) string {
	return string(r.Status) + " " + r.ID + " " + r.Title
}

// data escapes the message of a workflow command.
func data(s string) string {
	s = strings.Join(block(s), "\n")
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// property escapes a value before the second "::".
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(line(s)))
}
