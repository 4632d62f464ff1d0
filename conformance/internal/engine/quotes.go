package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/quantity"
)

// What an endpoint says is evidence: checks whose findings quote messages of one cause
// have found one defect.

// quoted is the quote that all findings of a failed check share the key of; nil when they
// quote nothing, or messages of several causes.
func (r *Result) quoted() *conformance.Quote {
	if r == nil || r.Status != conformance.Fail && r.Status != conformance.Flaky && r.Status != conformance.Warn || len(r.Findings) == 0 {
		return nil
	}
	first := r.Findings[0].Quote
	if first == nil || slices.ContainsFunc(r.Findings, func(f conformance.Finding) bool { return f.Quote == nil || f.Quote.Key != first.Key }) {
		return nil
	}
	return first
}

// foldQuotes makes one finding of those that quote messages of one cause. A text that
// leads to no cause is one only where calls that pass alone were refused with it: steady
// refusals with the same text can have as many reasons as there are rules.
func (sched *scheduler) foldQuotes() {
	groups := map[string][]*conformance.Check{}
	var order []string
	for _, c := range sched.checks {
		q := sched.results[c.ID].quoted()
		if q == nil || c.Own {
			continue
		}
		if groups[q.Key] == nil {
			order = append(order, q.Key)
		}
		groups[q.Key] = append(groups[q.Key], c)
	}
	for _, key := range order {
		sched.foldQuoted(groups[key])
	}
}

func (sched *scheduler) foldQuoted(checks []*conformance.Check) {
	unsteady := func(c *conformance.Check) bool { return sched.results[c.ID].unsteady }
	n := len(checks)
	if n == 1 || !sched.results[checks[0].ID].Findings[0].Quote.Cause && !slices.ContainsFunc(checks, unsteady) {
		return
	}
	bearer := slices.MaxFunc(checks, func(a, b *conformance.Check) int { return sched.bearing(a, checks) - sched.bearing(b, checks) })
	moment := slices.ContainsFunc(checks, unsteady)
	for _, c := range checks {
		if c == bearer {
			continue
		}
		sched.replace(c, sched.results[c.ID], []string{bearer.ID})
		for _, other := range sched.results {
			if slices.Equal(other.BlockedBy, []string{c.ID}) {
				other.BlockedBy, other.Reason = []string{bearer.ID}, sched.results[c.ID].Reason
			}
		}
	}
	if r := sched.results[bearer.ID]; moment {
		f := &r.Findings[0]
		when := f.Quote.When
		if when == "" {
			when = "calls that pass alone are refused after or at the same time as others"
		}
		f.Expected = "calls that are answered the same way whatever runs at the same time, and whatever went before"
		f.Actual = fmt.Sprintf("%s: %s (in %s)", when, f.Quote.Text, quantity.Count(n, "check"))
		r.Findings = r.Findings[:1]
		r.blameOthers(bearer)
	}
}

// blameOthers gives the findings of a check that passes alone the cause of such a failure:
// that of the check is one that a second run would have met as well. What a reply itself
// has shown stays.
func (r *Result) blameOthers(c *conformance.Check) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Quote != nil && f.Quote.Cause || !strings.HasPrefix(f.Cause, c.Cause) {
			continue
		}
		f.Cause, f.Observed = "calls at the same time, or what went before, decide: they share a variable, a connection or a transaction, or there are too few connections or workers.", false
		f.Fix = "keep everything of a call in the call, and look into the log of the endpoint at that moment."
		if i < len(r.marks) && r.marks[i].symptom == symptomMissing {
			r.marks[i].rule = kept
			f.Cause = wire.EitherCause("calls at the same time take back each other's writes", "the write comes later than its reply (a buffer, a queue, a promise that is not awaited)", "the request below again, and a look into the destination at once and later,")
		}
	}
}

// symptomMissing is that of records which were acknowledged and are not there, now and then
// a matter of the check that is about how they are kept.
const (
	symptomMissing = "not there"
	kept           = "DUR-001"
)

// ofSizes are the checks that are about what a message says of sizes.
var ofSizes = map[string][]string{"body limit": {"SPD-006"}, "parameters of a statement": {"SPD-006"}}

// bearing is how much a failed check says of a defect that several have met: one that
// gates and fails each time before others, then one about calls at the same time, and of
// the rest one that builds on none of them.
func (sched *scheduler) bearing(c *conformance.Check, among []*conformance.Check) int {
	r, n := sched.results[c.ID], 0
	if r.Gating {
		n += 16
	}
	if r.Status == conformance.Fail {
		n += 8
	}
	if slices.Contains(disturbed, c.ID) {
		n += 4
	}
	if slices.Contains(ofSizes[r.Findings[0].Quote.Key], c.ID) {
		n += 2
	}
	if needs := sched.suite.needs(c); !slices.ContainsFunc(among, func(o *conformance.Check) bool { return slices.Contains(needs, o.ID) }) {
		n++
	}
	return n
}
