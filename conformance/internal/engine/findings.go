package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/quantity"
)

// Findings is what a scenario has found so far, whatever it judges.
type Findings struct {
	check    *conformance.Check
	object   string // the one that the check looks at; "" where it looks at no single one
	again    bool   // the check has failed once, and runs alone
	secrets  *wire.Redactor
	findings []Finding
	symptoms []string // of all findings, the surplus ones too
	surplus  int      // findings beyond maxFindings
	notes    []string
	evidence []string
	seen     map[conformance.Evidence]int
	refusal  string   // the first refusal of a record, as the endpoint words it
	weak     *outcome // set when a claim holds on weak evidence only
	// incomplete says which replies never came to their end; "" when all did.
	incomplete string
}

// Finding is one of a scenario.
type Finding struct {
	conformance.Finding
	mark
}

const maxFindings = 8

// Check is the check under way.
func (found *Findings) Check() *conformance.Check { return found.check }

// Object is the one of Suite.Objects that the check looks at; "" where it looks at no
// single one.
func (found *Findings) Object() string { return found.object }

// Confirming reports whether the check has failed once, and runs again alone.
func (found *Findings) Confirming() bool { return found.again }

// Note keeps an observation that is no finding.
func (found *Findings) Note(format string, args ...any) {
	n := fmt.Sprintf(format, args...)
	if !slices.Contains(found.notes, n) {
		found.notes = append(found.notes, n)
	}
}

// Proof says what a PASS rests on.
func (found *Findings) Proof(format string, args ...any) {
	found.evidence = append(found.evidence, fmt.Sprintf(format, args...))
}

// Broken adds a finding: what was expected, what was seen, on which exchanges
// (at most four are kept).
func (found *Findings) Broken(expected, actual string, where ...conformance.Exchange) {
	found.Add(conformance.Finding{Expected: expected, Actual: actual}, "", where)
}

// Add is Broken with what else is known: the object, the operation, a word for what was
// observed, by which one defect is known again in another check.
func (found *Findings) Add(f conformance.Finding, symptom string, where []conformance.Exchange) {
	if !slices.Contains(found.symptoms, symptom) {
		found.symptoms = append(found.symptoms, symptom)
	}
	if len(found.findings) >= maxFindings {
		found.surplus++
		return
	}
	f.Rule, f.Cause = found.check.Title, cmp.Or(f.Cause, found.check.Cause)
	f.Fix = cmp.Or(f.Fix, found.check.Fix)
	f.Exchanges = append([]conformance.Exchange{}, where[:min(4, len(where))]...)
	if len(f.Exchanges) > 0 {
		f.Curl = wire.Curl(f.Exchanges[0])
	}
	found.findings = append(found.findings, Finding{f, mark{symptom: symptom}})
}

// All are the findings so far, at most eight; the caller may complete them.
func (found *Findings) All() []Finding { return found.findings }

// Symptoms are those of all findings, also of those beyond All.
func (found *Findings) Symptoms() []string { return found.symptoms }

// Drop takes all findings back.
func (found *Findings) Drop() { found.findings = nil }

// Explain gives the findings with such a symptom the cause that a second run has seen,
// or the candidates that it leaves.
func (found *Findings) Explain(about func(symptom string) bool, cause string, observed bool) {
	found.ExplainAs(about, cause, "", observed)
}

// ExplainAs is Explain with what to do.
func (found *Findings) ExplainAs(about func(symptom string) bool, cause, fix string, observed bool) {
	for i := range found.findings {
		if f := &found.findings[i]; about(f.symptom) {
			f.Cause, f.Fix, f.Observed, f.diagnosed = cause, cmp.Or(fix, f.Fix), observed, true
		}
	}
}

// Belongs says that the findings with such a symptom are about the rule of another check,
// which then has them in the report; "" is none.
func (found *Findings) Belongs(about func(symptom string) bool, rule string) {
	for i := range found.findings {
		if f := &found.findings[i]; about(f.symptom) {
			f.rule = rule
		}
	}
}

// Reset forgets what was found, so that the same actor can look at another exchange.
func (found *Findings) Reset() { *found = Findings{check: found.check, secrets: found.secrets} }

// Take adds what one exchange of many has shown: its findings, and its notes as long as
// there are few.
func (found *Findings) Take(one *Findings) {
	for _, f := range one.findings {
		if !slices.Contains(found.symptoms, f.symptom) {
			found.symptoms = append(found.symptoms, f.symptom)
		}
		if len(found.findings) < maxFindings {
			found.findings = append(found.findings, f)
		} else {
			found.surplus++
		}
	}
	found.surplus += one.surplus
	for _, n := range one.notes {
		if len(found.notes) < maxFindings {
			found.Note("%s", n)
		}
	}
}

// TakeUnless is Take without what is shown already, by its symptom.
func (found *Findings) TakeUnless(shown func(symptom string) bool, one *Findings) {
	kept := *one
	kept.findings = slices.DeleteFunc(slices.Clone(one.findings), func(f Finding) bool { return f.symptom != "" && shown(f.symptom) })
	if len(kept.findings) > 0 {
		found.Take(&kept)
	}
}

// Refused keeps how a record was first refused, as the endpoint words it: it says why
// nothing was seen of accepted ones.
func (found *Findings) Refused(text string) {
	found.refusal = cmp.Or(found.refusal, text)
}

// Refusal is what Refused keeps; "" when no record was refused.
func (found *Findings) Refusal() string { return found.refusal }

// Incomplete says which replies never came to their end, so that nothing is known of
// what they would have shown; "" when all did.
func (found *Findings) Incomplete(why string) { found.incomplete = why }

// Weaken takes a PASS back: err says what was not looked at. What is found counts all
// the same.
func (found *Findings) Weaken(err error) {
	if found.weak == nil {
		found.weak = asOutcome(err)
	}
}

// Held ends a Then: nil when nothing was found.
func (found *Findings) Held() error {
	if len(found.findings) > 0 {
		return errBroken
	}
	return nil
}

// HeldBy is Held with what a PASS rests on.
func (found *Findings) HeldBy(format string, args ...any) error {
	found.Proof(format, args...)
	return found.Held()
}

// Result is what the findings come to when nothing else does: err is the Outcome of the
// last step, nil for none.
func (found *Findings) Result(err error) *Result { return found.result(asOutcome(err), false) }

// result is what a scenario comes to.
func (found *Findings) result(out *outcome, interrupted bool) *Result {
	if out.status == conformance.Pass && found.weak != nil {
		out = found.weak
	}
	if out.status == conformance.Pass {
		if missing := found.unseen(); missing != nil {
			out = missing
		}
	}
	if len(found.findings) > 0 && out.status != conformance.HarnessError && !interrupted && !out.away {
		out = &outcome{status: conformance.Fail}
	}
	r := newResult(found.check, out.status, out.reason)
	r.Decider, r.Notes, r.away = out.decider, found.notes, out.away
	r.Evidence, r.Seen = found.evidenceText(), found.seen
	defer hide(found.secrets, &r.CheckResult)
	if out.status != conformance.Fail {
		return r
	}
	r.Reason = found.check.Reason
	r.Symptoms = found.symptoms
	for _, f := range found.findings {
		r.Findings, r.marks = append(r.Findings, f.Finding), append(r.marks, f.mark)
	}
	if found.surplus > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s of the same kind", quantity.Count(found.surplus, "more finding")))
	}
	return r
}

// Foreign text enters a report in three places, and secrets are taken out of it
// there: an exchange when it is recorded (wire), the result of a check when its
// scenario ends (Findings.result), and the report as a whole before it is handed out
// (hide), which also has what the run itself noted down. Nothing after that knows
// any secret.

// hide takes the secrets out of what is handed out: a report, a plan, what is left
// of a run, what was sent again.
func hide(secrets *wire.Redactor, out any) {
	if secrets != nil {
		secrets.Value(out)
	}
}

// HideError takes the secrets of the run out of an error.
func (s *Suite) HideError(err error) error {
	if err == nil || s.Secrets == nil {
		return err
	}
	text := err.Error()
	shown := s.Secrets.String(text)
	if shown == text {
		return err
	}
	var mistake *conformance.UsageError
	if errors.As(err, &mistake) {
		return &conformance.UsageError{Message: shown}
	}
	return &hiddenError{shown, err}
}

// hiddenError is an error whose text holds no secret.
type hiddenError struct {
	text  string
	cause error
}

func (e *hiddenError) Error() string        { return e.text }
func (e *hiddenError) Is(target error) bool { return errors.Is(e.cause, target) }
