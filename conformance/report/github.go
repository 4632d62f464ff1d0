package report

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"

	c "github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// writeGitHub writes workflow commands. The service shows ten of a kind per step: those that gate come first.
func writeGitHub(w io.Writer, r *c.Report, _ Options) error {
	var b strings.Builder
	say := func(command, title, message string) {
		fmt.Fprintf(&b, "::%s title=%s::%s\n", command, property(title), data(message))
	}
	for _, p := range problems(r) {
		// A message about a line of a file, such as a waiver, is shown there.
		if at := inFile.FindStringSubmatch(p.Message); at != nil {
			fmt.Fprintf(&b, "::error file=%s,line=%s,title=%s::%s\n", property(at[1]), at[2], property("destkit: "+p.Kind), data(at[3]+"\n"+p.Fix))
			continue
		}
		say(problemLevel(p), "destkit: "+p.Kind, p.Message+"\n"+p.Fix)
	}
	// The id makes the title searchable.
	checks := func(command, note string, list []c.CheckResult) {
		for _, check := range list {
			say(command, string(check.Status)+" "+check.ID+" "+check.Title, note+details(check))
		}
	}
	checks("error", "", failures(r.Checks))
	checks("warning", "", lists.Where(r.Checks, isWarning))
	checks("warning", "not scored\n", lists.Where(r.Own, func(r c.CheckResult) bool { return stopsGate(r) || isWarning(r) }))
	if n := len(lists.Where(r.Checks, isUndecided)); n > 0 {
		lines := lists.Of(openGroups(r), func(g openGroup) string {
			return g.What + inBrackets(g.How) + ": " + strings.Join(ids(g.Checks), " ")
		})
		say("notice", fmt.Sprintf("destkit: %s undecided", quantity.Count(n, "check")), strings.Join(lines, "\n"))
	}
	say("notice", "destkit: "+string(r.Verdict), r.Summary)
	_, err := io.WriteString(w, b.String())
	return err
}

// inFile is a message about a line of a file.
var inFile = regexp.MustCompile(`^([^:\s]+):(\d+): (.*)$`)

// data escapes the message of a workflow command.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text(s))
}

// property escapes a value before the second "::".
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(line(s)))
}

// writeBadge writes a shields endpoint that names its tier and everything that makes the verdict smaller than it looks.
func writeBadge(w io.Writer, r *c.Report, _ Options) error {
	message, color := string(r.Verdict), ""
	switch r.Verdict {
	case c.NonConformant:
		color = "red"
		if n := len(r.Failed); n > 0 {
			message += fmt.Sprintf(" · %d of %d MUSTs failed", n, r.Musts)
		}
	case c.Conformant, c.ConformantInPart:
		message = strings.Join(append([]string{message, string(r.Tier)}, badgeLimits(r)...), " · ")
		color = badgeColor(r)
	default:
		message, color = string(c.Unknown), "lightgrey"
	}
	return encode(w, jsonObject{
		{"schemaVersion", 1}, {"label", "destkit " + line(r.Suite)}, {"message", message}, {"color", color},
		{"isError,omitempty", color == "red" || color == "lightgrey"},
	})
}

// badgeLimits lists what a reader of the badge cannot see otherwise.
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
	if r.Settings.Roots != "public" {
		out = append(out, cmp.Or(map[string]string{"private": "private roots"}[r.Settings.Roots], "TLS not judged"))
	}
	return out
}

// badgeColor is green for a whole run against public roots, blue for less than that, yellow for an exit status.
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
