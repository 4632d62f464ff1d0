package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// outcome is the error of a step that is not satisfied; any other error is a fault of the judge.
type outcome struct {
	status  conformance.Status
	reason  string
	decider string // what would decide an undecided check
	away    bool   // the endpoint went away in the middle
}

func (o *outcome) Error() string { return string(o.status) + ": " + o.reason }

// Outcome is what a step returns when it neither holds nor breaks the rule: NotApplicable (the
// rule does not bind what is judged), NotRun (a permission, a part or a budget is missing),
// Inconclusive (the evidence does not decide) or HarnessError (the judge failed). decider names
// what would decide it, such as "--control-url"; "" when nothing does.
func Outcome(status conformance.Status, decider, format string, args ...any) error {
	return &outcome{status: status, decider: decider, reason: fmt.Errorf(format, args...).Error()}
}

// NotRun: a permission, hook or budget is missing; decider names it.
func NotRun(decider, format string, args ...any) error {
	return Outcome(conformance.NotRun, decider, format, args...)
}

// Inconclusive: the check ran and the evidence does not decide.
func Inconclusive(decider, format string, args ...any) error {
	return Outcome(conformance.Inconclusive, decider, format, args...)
}

// IsOutcome reports whether an error is one of a step that is not satisfied.
func IsOutcome(err error) bool {
	_, is := errors.AsType[*outcome](err)
	return is
}

// Decided reads the error of a step: the status, the reason, and what would decide an undecided
// check, "" when nothing would.
func Decided(err error) (status conformance.Status, reason, decider string) {
	if o, is := errors.AsType[*outcome](err); is {
		return o.status, o.reason, o.decider
	}
	if err == nil {
		return conformance.Pass, "", ""
	}
	return conformance.HarnessError, err.Error(), ""
}

// errBroken ends a scenario whose findings have been collected in its scenario.
var errBroken error = &outcome{status: conformance.Fail, reason: "rule broken"}

// asOutcome classifies the error of a step.
func asOutcome(err error) *outcome {
	var o *outcome
	switch {
	case err == nil:
		return &outcome{status: conformance.Pass}
	case errors.As(err, &o):
		return o
	case errors.Is(err, wire.ErrSilent):
		return &outcome{status: conformance.Inconclusive, away: true, reason: "the endpoint stopped responding in the middle of it (ERR-006)"}
	case errors.Is(err, wire.ErrAway):
		return &outcome{status: conformance.Inconclusive, away: true, reason: "the endpoint stopped accepting connections in the middle of it (ERR-006)"}
	}
	return &outcome{status: conformance.HarnessError, reason: err.Error()}
}

// Result is the outcome of one check, with what compares it with other results.
type Result struct {
	conformance.CheckResult
	marks    []mark  // of the findings, in their order
	away     bool    // the endpoint went away in the middle of it
	unsteady bool    // it failed in parallel with other calls and passed alone
	original *Result // what was folded under another check
}

// mark holds facts about a finding that the report does not have.
type mark struct {
	symptom   string
	diagnosed bool   // a second run has looked for the cause
	rule      string // of the check that the finding is about, where that is another one
}

// is reports whether a result has one of these statuses; a check without one has none.
func (r *Result) is(statuses ...conformance.Status) bool {
	return r != nil && slices.Contains(statuses, r.Status)
}

// onlyShows reports whether all that was found are such symptoms.
func (r *Result) onlyShows(such func(symptom string) bool) bool {
	return len(r.Symptoms) > 0 && !slices.ContainsFunc(r.Symptoms, func(s string) bool { return !such(s) })
}

// everyExchange reports whether each finding shows exchanges, all of them such.
func (r *Result) everyExchange(such func(x conformance.Exchange) bool) bool {
	return !slices.ContainsFunc(r.Findings, func(f conformance.Finding) bool {
		return len(f.Exchanges) == 0 || slices.ContainsFunc(f.Exchanges, func(x conformance.Exchange) bool { return !such(x) })
	})
}

// newResult makes an empty result of a check.
func newResult(c *conformance.Check, status conformance.Status, reason string) *Result {
	return &Result{CheckResult: conformance.CheckResult{
		ID: c.ID, Title: c.Title, Level: c.Level, Authority: c.Authority, Sections: c.Sections, Area: c.Area,
		Status: status, Reason: reason, Findings: []conformance.Finding{},
	}}
}

// blocked is the result of a check that shows nothing beyond the failure of others.
func blocked(c *conformance.Check, by []string) *Result {
	r := newResult(c, conformance.NotRun, "blocked by "+strings.Join(by, ", "))
	r.BlockedBy = by
	return r
}

// mergeOrder is which status speaks for several objects: a pass must not hide an undecided one.
var mergeOrder = []conformance.Status{conformance.Fail, conformance.HarnessError, conformance.Inconclusive, conformance.NotRun, conformance.Pass, conformance.NotApplicable}

// merge sums up the results of one check over several objects.
func merge(c *conformance.Check, parts []*Result) *Result {
	if len(parts) == 0 {
		r := newResult(c, conformance.NotRun, "looks at one object: name it with --object NAME")
		r.Decider = "--object"
		return r
	}
	slices.SortStableFunc(parts, func(a, b *Result) int {
		return slices.Index(mergeOrder, a.Status) - slices.Index(mergeOrder, b.Status)
	})
	out := *parts[0]
	for _, p := range parts[1:] {
		out.Findings = append(out.Findings, p.Findings...)
		out.marks = append(slices.Clip(out.marks), p.marks...)
		out.Symptoms = append(slices.Clip(out.Symptoms), p.Symptoms...)
		out.away = out.away || p.away
		if p.Evidence != "" && out.Evidence != "" {
			out.Evidence += "; " + p.Evidence
		}
	}
	return &out
}

// takeCauses takes over what the second run observed, and its one cause where the first run has
// only the general cause of the check: nothing ran in parallel with the second.
func (r *Result) takeCauses(c *conformance.Check, again *Result) {
	for i, known := range r.marks {
		f := &r.Findings[i]
		alike := map[string]int{}
		for k, m := range again.marks {
			now := again.Findings[k]
			general := m.rule != "" && now.Observed && !slices.ContainsFunc(again.marks, func(o mark) bool { return o.symptom == known.symptom })
			if m.symptom != known.symptom && !general || now.Object != f.Object {
				continue
			}
			if alike[now.Cause] = k; m.diagnosed {
				r.marks[i].rule = m.rule
				f.Cause, f.Observed, f.Fix = now.Cause, now.Observed, now.Fix
			}
		}
		for cause, k := range alike {
			if len(alike) == 1 && strings.HasPrefix(f.Cause, c.Cause) && !strings.HasPrefix(cause, c.Cause) {
				f.Cause, f.Fix = cause, again.Findings[k].Fix
			}
		}
	}
}

// quoted is the quote of a failed check whose findings quote messages of one cause; else nil.
func (r *Result) quoted() *conformance.Quote {
	if !r.is(conformance.Fail, conformance.Flaky, conformance.Warn) || len(r.Findings) == 0 {
		return nil
	}
	first := r.Findings[0].Quote
	if first == nil || slices.ContainsFunc(r.Findings, func(f conformance.Finding) bool { return f.Quote == nil || f.Quote.Key != first.Key }) {
		return nil
	}
	return first
}

// blameOthers gives the findings of a check that passes alone another cause than that of the
// check, which a second run would have met as well. What a reply itself has shown stays.
func (r *Result) blameOthers(c *conformance.Check) {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Quote != nil && f.Quote.Cause || !strings.HasPrefix(f.Cause, c.Cause) {
			continue
		}
		f.Cause, f.Observed = "calls at the same time, or what went before, decide: they share a variable, a connection or a transaction, or there are too few connections or workers.", false
		f.Fix = "keep everything of a call in the call, and look into the log of the endpoint at that moment."
		if i < len(r.marks) && r.marks[i].symptom == lostSymptom {
			r.marks[i].rule = "DUR-001" // the check that is about how records are kept
			f.Cause = wire.EitherCause("calls at the same time take back each other's writes, or a thread or process remembers a key that another one has deleted", "the write comes later than its reply (a buffer, a queue, a promise that is not awaited)", "the request below again, and a look into the destination at once and later,")
		}
	}
}
