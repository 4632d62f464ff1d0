package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/internal/quantity"
)

// summary is the one line that a person repeats to a colleague: the worst consequence and
// the verdict, why the exit status is what it is, and what was not tested.
func summary(r *Report) string {
	var parts []string
	for _, p := range r.Problems {
		if p.ExitStatus == 3 {
			parts = append(parts, p.Message)
		}
	}
	head := string(r.Verdict) + ": "
	if len(parts) > 0 && !r.Looked() {
		parts = append(parts, "nothing was judged")
		if r.Records > 0 {
			parts = append(parts, r.Residue.summary(r.leftovers()))
		}
		return head + strings.Join(append(parts, fmt.Sprintf("%.1f s", r.DurationMS/1000)), "; ")
	}
	if why := r.exitText(); why != "" {
		parts = append(parts, why)
	}
	untested := r.untestedText()
	if r.Verdict == Conformant && (len(parts) > 0 || untested != "") {
		head = string(r.Verdict) + "; "
	}
	if worst := r.worst(); worst != "" {
		head = string(worst) + ": " + string(r.Verdict) + "; "
	}
	if len(r.Failed) == 0 && r.Counts[Warn] == 0 {
		parts = append(parts, untested, r.failedText())
	} else {
		parts = append(parts, r.failedText(), r.warningsText(), r.fixFirstText(), untested)
	}
	if len(r.Settings.Selected)+len(r.Settings.Skipped) > 0 {
		parts = append(parts, fmt.Sprintf("only %s %s selected", quantity.Count(len(r.Checks), "check"), quantity.Verb(len(r.Checks), "was", "were")))
	}
	parts = append(parts, r.Residue.summary(r.leftovers()), "tier "+string(r.Tier), fmt.Sprintf("%.1f s", r.DurationMS/1000))
	return head + strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// exitText says why a run that found nothing does not end with 0.
func (r *Report) exitText() string {
	if r.ExitStatus < 4 {
		return ""
	}
	var why []string
	for _, p := range r.Problems {
		if p.ExitStatus == r.ExitStatus {
			why = append(why, p.Message)
		}
	}
	return fmt.Sprintf("exit status %d: %s", r.ExitStatus, quantity.List(why))
}

// failedText counts what failed.
func (r *Report) failedText() string {
	kind := "MUSTs"
	if r.Profile == ProfileStrict {
		kind = "gated checks"
	}
	if len(r.Failed) > 0 {
		return fmt.Sprintf("%d of %d %s failed (%s)", len(r.Failed), r.Musts, kind, quantity.List(r.Failed))
	}
	return fmt.Sprintf("none of %d %s failed", r.Musts, kind)
}

func (r *Report) warningsText() string {
	if n := r.Counts[Warn]; n > 0 {
		return quantity.Count(n, "warning")
	}
	return ""
}

// fixFirstText names the check to mend first, where there is a choice.
func (r *Report) fixFirstText() string {
	id, waiting := r.fixFirst()
	switch {
	case waiting > 0:
		return fmt.Sprintf("fix %s first: %s %s on it", id, quantity.Count(waiting, "check"), quantity.Verb(waiting, "builds", "build"))
	case id != "" && len(r.Failed) > 1:
		return "fix " + id + " first"
	}
	return ""
}

// untested are the checks that could not be decided, and for which no failed one stands.
func (r *Report) untested() (checks []CheckResult) {
	for _, c := range r.Checks {
		if (c.Status == NotRun || c.Status == Inconclusive) && len(c.BlockedBy) == 0 {
			checks = append(checks, c)
		}
	}
	return checks
}

// untestedText counts the rules that were not decided, and names what would decide most
// of them, the most first: "12 rules not tested (TLS, load): 8 need …, 4 need --load".
func (r *Report) untestedText() string {
	checks := r.untested()
	if len(checks) == 0 {
		return ""
	}
	type need struct {
		what, topic string
		n           int
	}
	var needs []need
	for _, c := range checks {
		if c.Decider == "" {
			continue
		}
		d := r.deciderOf(c.Decider)
		at := slices.IndexFunc(needs, func(n need) bool { return n.what == d.short })
		if at < 0 {
			needs, at = append(needs, need{what: d.short, topic: d.topic}), len(needs)
		}
		needs[at].n++
	}
	said := quantity.Count(len(checks), "rule") + " not tested"
	if len(needs) == 0 {
		return said
	}
	slices.SortStableFunc(needs, func(a, b need) int { return b.n - a.n })
	var topics, parts []string
	for i, n := range needs {
		if i == mostNeeds {
			topics, parts = append(topics, "…"), append(parts, "and more")
			break
		}
		if !slices.Contains(topics, n.topic) {
			topics = append(topics, n.topic)
		}
		parts = append(parts, fmt.Sprintf("%d %s %s", n.n, quantity.Verb(n.n, "needs", "need"), n.what))
	}
	return fmt.Sprintf("%s (%s): %s", said, strings.Join(topics, ", "), strings.Join(parts, ", "))
}

// mostNeeds is how many deciders the summary names.
const mostNeeds = 3

// summary says how many are left behind: none is said only when that was seen.
func (res *Residue) summary(what string) string {
	left := len(res.Refused) + len(res.Unknown)
	said := quantity.Count(len(res.Refused), what) + " left behind"
	if n := len(res.Unknown); n > 0 {
		said += fmt.Sprintf(", %d may be (no answer)", n)
	}
	if res.Unverified == 0 {
		return said
	}
	only := quantity.Count(res.Unverified, what) + " deleted by acknowledgement only (not verified)"
	if left == 0 {
		return only
	}
	return said + ", " + only
}

// Looked reports whether some check got as far as looking.
func (r *Report) Looked() bool {
	return slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return c.Status != NotRun || len(c.BlockedBy) > 0 })
}
