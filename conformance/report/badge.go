package report

import (
	"fmt"
	"io"
	"strings"

	c "github.com/destkit/destkit/conformance"
)

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
	if n := len(filter(r.Checks, hasStatus(c.Waived))); n > 0 {
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
	case r.Verdict == c.Conformant:
		return "brightgreen"
	}
	return "green"
}
