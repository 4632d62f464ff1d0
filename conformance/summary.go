package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/quantity"
)

// summary is the one line that a person repeats to a colleague.
func summary(r *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", r.Verdict)
	untested := false
	for _, p := range r.Problems {
		if p.ExitStatus == 3 {
			fmt.Fprintf(&b, "%s; ", p.Message)
			untested = true
		}
	}
	if untested && !r.looked() {
		b.WriteString("nothing was judged; ")
		if r.Records > 0 {
			b.WriteString(r.Residue.summary(r.leftovers()) + "; ")
		}
		fmt.Fprintf(&b, "%.1f s", r.DurationMS/1000)
		return b.String()
	}
	for _, part := range []string{r.failedText(), r.blockersText(), r.warningsText(), r.undecidedText()} {
		if part != "" {
			b.WriteString(part + "; ")
		}
	}
	if len(r.Settings.Selected)+len(r.Settings.Skipped) > 0 {
		fmt.Fprintf(&b, "only %s %s selected; ", quantity.Count(len(r.Checks), "check"), quantity.Verb(len(r.Checks), "was", "were"))
	}
	fmt.Fprintf(&b, "%s; tier %s; %.1f s", r.Residue.summary(r.leftovers()), r.Tier, r.DurationMS/1000)
	return b.String()
}

// failedText counts what failed. Where nothing did, it comes behind what would
// decide the rest: that is what the reader can act on.
func (r *Report) failedText() string {
	kind := "MUSTs"
	if r.Profile == ProfileStrict {
		kind = "gated checks"
	}
	if len(r.Failed) > 0 {
		return fmt.Sprintf("%d of %d %s failed (%s)", len(r.Failed), r.Musts, kind, quantity.List(r.Failed))
	}
	none := fmt.Sprintf("none of %d %s failed", r.Musts, kind)
	if open := r.undecidedParts(); open != "" {
		return open + "; " + none
	}
	return none
}

// undecidedText is what stays undecided beside failures; see failedText.
func (r *Report) undecidedText() string {
	if len(r.Failed) == 0 {
		return ""
	}
	return r.undecidedParts()
}

func (r *Report) warningsText() string {
	if n := r.Counts[Warn]; n > 0 {
		return quantity.Count(n, "warning")
	}
	return ""
}

// blockersText names the failed check that the most others wait for.
func (r *Report) blockersText() string {
	waiting, most := map[string]int{}, ""
	for _, c := range r.Checks {
		for _, id := range c.BlockedBy {
			waiting[id]++
		}
	}
	for _, c := range r.Checks { // in the order of the catalogue, so that the same report has one text
		if waiting[c.ID] > waiting[most] {
			most = c.ID
		}
	}
	switch n := waiting[most]; n {
	case 0:
		return ""
	case 1:
		return "fix " + most + " first: 1 check builds on it"
	default:
		return fmt.Sprintf("fix %s first: %s build on it", most, quantity.Count(n, "check"))
	}
}

// undecidedParts names what would decide most of the undecided MUSTs, the most
// first: "52 of 65 undecided MUSTs need --write --object contact".
func (r *Report) undecidedParts() string {
	if len(r.Undecided) == 0 {
		return ""
	}
	type need struct {
		what string
		n    int
	}
	var needs []need
	for _, c := range r.Checks {
		if !slices.Contains(r.Undecided, c.ID) || c.Decider == "" {
			continue
		}
		what := r.needed(c.Decider)
		at := slices.IndexFunc(needs, func(n need) bool { return n.what == what })
		if at < 0 {
			needs, at = append(needs, need{what: what}), len(needs)
		}
		needs[at].n++
	}
	slices.SortStableFunc(needs, func(a, b need) int { return b.n - a.n })
	said := quantity.Count(len(r.Undecided), "undecided MUST")
	if len(needs) == 0 {
		return strings.Replace(said, "undecided MUST", "MUST", 1) + " undecided"
	}
	var parts []string
	for i, n := range needs {
		if i == mostNeeds {
			parts = append(parts, "and more")
			break
		}
		verb := "need"
		if n.n == 1 {
			verb = "needs"
		}
		switch {
		case i == 0 && n.n == len(r.Undecided) && n.n == 1:
			parts = append(parts, said+" needs "+n.what)
			continue
		case i == 0 && n.n == len(r.Undecided):
			parts = append(parts, "all "+said+" need "+n.what)
			continue
		case i == 0:
			parts = append(parts, fmt.Sprintf("%d of %s %s %s", n.n, said, verb, n.what))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d %s %s", n.n, verb, n.what))
	}
	return strings.Join(parts, ", ")
}

// mostNeeds is how many deciders the summary names.
const mostNeeds = 3

// summary says how many are left behind: none is said only when that was seen.
func (res *Residue) summary(what string) string {
	left := len(res.Refused) + len(res.Unknown)
	said := quantity.Count(left, what) + " left behind"
	if res.Unverified == 0 {
		return said
	}
	only := quantity.Count(res.Unverified, what) + " deleted by acknowledgement only (not verified)"
	if left == 0 {
		return only
	}
	return said + ", " + only
}

// looked reports whether some check got as far as looking.
func (r *Report) looked() bool {
	return slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Status != NotRun || len(c.BlockedBy) > 0 })
}
