package report

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/lists"
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
		// What is about a line of a file, such as a waiver, is shown there.
		if at := inFile.FindStringSubmatch(p.Message); at != nil {
			fmt.Fprintf(&b, "::error file=%s,line=%s,title=%s::%s\n", property(at[1]), at[2], property("destkit: "+p.Kind), data(at[3]+"\n"+p.Fix))
			continue
		}
		level := "warning"
		if p.ExitStatus != 0 {
			level = "error"
		}
		say(level, "destkit: "+p.Kind, p.Message+"\n"+p.Fix)
	}
	for _, check := range failures(r.Checks) {
		say("error", title(check), details(check))
	}
	for _, check := range lists.Where(r.Checks, isWarning) {
		say("warning", title(check), details(check))
	}
	own := func(r c.CheckResult) bool { return stopsGate(r) || isWarning(r) }
	for _, check := range lists.Where(r.Own, own) {
		say("warning", title(check), "not scored\n"+details(check))
	}
	if n := len(lists.Where(r.Checks, isUndecided)); n > 0 {
		lines := lists.Of(openGroups(r), func(g openGroup) string {
			return strings.TrimSuffix(g.What+" ("+g.How+")", " ()") + ": " + strings.Join(ids(g.Checks), " ")
		})
		say("notice", fmt.Sprintf("destkit: %s undecided", quantity.Count(n, "check")), strings.Join(lines, "\n"))
	}
	say("notice", "destkit: "+string(r.Verdict), r.Summary)
	_, err := io.WriteString(w, b.String())
	return err
}

// inFile is a message about a line of a file.
var inFile = regexp.MustCompile(`^([^:\s]+):(\d+): (.*)$`)

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

// badge is the answer of a shields endpoint.
type badge struct {
	SchemaVersion int    `json:"schemaVersion"`
	Label         string `json:"label"`
	Message       string `json:"message"`
	Color         string `json:"color"`
	IsError       bool   `json:"isError,omitempty"`
}

// writeBadge writes a badge that names its tier and everything that makes the
// verdict smaller than it looks. Only a run against public roots over all
// checks that ends with exit status 0 earns green.
func writeBadge(w io.Writer, r *c.Report) error {
	b := badge{SchemaVersion: 1, Label: "destkit " + line(r.Suite), Message: string(r.Verdict)}
	switch r.Verdict {
	case c.NonConformant:
		b.Color, b.IsError = "red", true
		if n := len(r.Failed); n > 0 {
			b.Message += fmt.Sprintf(" · %d of %d MUSTs failed", n, r.Musts)
		}
	case c.Conformant, c.ConformantInPart:
		limits := badgeLimits(r)
		b.Message = strings.Join(append([]string{b.Message, string(r.Tier)}, limits...), " · ")
		b.Color = badgeColor(r)
	default:
		b.Message, b.Color, b.IsError = string(c.Unknown), "lightgrey", true
	}
	return encode(w, b)
}

// badgeLimits says what a reader of the badge cannot see otherwise.
func badgeLimits(r *c.Report) []string {
	var out []string
	if r.Profile != c.ProfileV1 && r.Profile != "" {
		out = append(out, "profile "+line(string(r.Profile)))
	}
	if n := len(r.Undecided); n > 0 {
		out = append(out, fmt.Sprintf("%d undecided", n))
	}
	if n := len(lists.Where(r.Checks, hasStatus(c.Waived))); n > 0 {
		out = append(out, fmt.Sprintf("%d waived", n))
	}
	if len(r.Settings.Selected)+len(r.Settings.Skipped) > 0 {
		out = append(out, "selected checks")
	}
	switch r.Settings.Roots {
	case "public":
	case "private":
		out = append(out, "private roots")
	default:
		out = append(out, "TLS not judged")
	}
	return out
}

// badgeColor is green only for evidence that anybody could repeat: a run over
// all checks against public roots (conformance of TLS included). Blue says
// "good, but less than it looks", yellow that the exit status was not 0.
func badgeColor(r *c.Report) string {
	switch {
	case r.ExitStatus != 0:
		return "yellow"
	case r.Settings.Roots != "public", len(r.Settings.Selected)+len(r.Settings.Skipped) > 0:
		return "blue"
	case r.Verdict == c.Conformant && len(r.Undecided) == 0:
		return "brightgreen"
	}
	return "green"
}
