package conformance

import (
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// Scene is what a scenario has found so far, whatever it judges.
type Scene struct {
	check    *Check
	secrets  *wire.Redactor
	findings []Finding
	symptoms []string // of all findings, the surplus ones too
	surplus  int      // findings beyond maxFindings
	notes    []string
	evidence []string
	seen     map[Evidence]int
	refusal  string   // the first refusal of a record, as the endpoint words it
	weak     *outcome // set when a claim holds on weak evidence only
	// incomplete says which replies never came to their end; "" when all did.
	incomplete string
}

const maxFindings = 8

// Check is the check under way.
func (s *Scene) Check() *Check { return s.check }

// Note keeps an observation that is no finding.
func (s *Scene) Note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(s.notes, n) {
		s.notes = append(s.notes, n)
	}
}

// Proof says what a PASS rests on.
func (s *Scene) Proof(format string, args ...any) {
	s.evidence = append(s.evidence, fmt.Sprintf(format, args...))
}

// Broken adds a finding: what was expected, what was seen, on which exchanges
// (at most four are kept).
func (s *Scene) Broken(expected, actual string, where ...Exchange) {
	s.add(Finding{Expected: expected, Actual: actual}, where)
}

func (s *Scene) add(f Finding, where []Exchange) {
	if !slices.Contains(s.symptoms, f.symptom) {
		s.symptoms = append(s.symptoms, f.symptom)
	}
	if len(s.findings) >= maxFindings {
		s.surplus++
		return
	}
	f.Rule, f.Cause, f.Fix = s.check.Title, s.check.Cause+f.Cause, s.check.Fix
	f.Exchanges = append([]Exchange{}, where[:min(4, len(where))]...)
	if len(f.Exchanges) > 0 {
		f.Curl = wire.Curl(f.Exchanges[0])
	}
	s.findings = append(s.findings, f)
}

// Held ends a Then: nil when nothing was found.
func (s *Scene) Held() error {
	if len(s.findings) > 0 {
		return errBroken
	}
	return nil
}

// Outcome is what a step returns when it neither holds nor breaks the rule: status
// is NotApplicable (the rule does not bind what is judged), NotRun (a permission,
// a part or a budget is missing), Inconclusive (the evidence does not decide) or
// HarnessError (the judge failed). decider names what would decide it, such as
// "--control-url"; "" when nothing does.
func Outcome(status Status, decider, format string, args ...any) error {
	return &outcome{status: status, decider: decider, reason: fmt.Errorf(format, args...).Error()}
}

// result is what a scenario comes to.
func (s *Scene) result(out *outcome, interrupted bool) *CheckResult {
	if out.status == Pass && s.weak != nil {
		out = s.weak
	}
	if out.status == Pass {
		if missing := s.unseen(); missing != nil {
			out = missing
		}
	}
	if len(s.findings) > 0 && out.status != HarnessError && !interrupted && !out.away {
		out = &outcome{status: Fail}
	}
	r := s.check.result(out.status, out.reason)
	r.Decider, r.Notes, r.away = out.decider, s.notes, out.away
	r.Evidence, r.Seen = s.evidenceText(), s.seen
	defer hide(s.secrets, r)
	if out.status != Fail {
		return r
	}
	r.Reason = s.check.Reason
	r.Findings, r.symptoms = append(r.Findings, s.findings...), s.symptoms
	if s.surplus > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d more findings of the same kind", s.surplus))
	}
	return r
}
