package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
	"github.com/destkit/destkit/internal/quantity"
)

// Findings is what a scenario has found so far, whatever it judges.
type Findings struct {
	check    *conformance.Check
	object   string
	again    bool
	secrets  *wire.Redactor
	findings []Finding
	symptoms []string // of all findings, the surplus ones too
	surplus  int      // findings beyond maxFindings
	notes    []string
	evidence []string
	seen     map[conformance.Evidence]int
	refusal  string   // the first of a record, as the endpoint words it
	weak     *outcome // takes the place of a PASS

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

// Object is the one of Suite.Objects that the check looks at; "" for no single one.
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

// Proof records what a PASS rests on.
func (found *Findings) Proof(format string, args ...any) {
	found.evidence = append(found.evidence, fmt.Sprintf(format, args...))
}

// Broken adds a finding: what was expected, what was seen, on which exchanges (four are kept).
func (found *Findings) Broken(expected, actual string, where ...conformance.Exchange) {
	found.Add(conformance.Finding{Expected: expected, Actual: actual}, "", where)
}

// Add is Broken with more details: the object, the operation, and a symptom, which identifies one
// defect in several checks.
func (found *Findings) Add(f conformance.Finding, symptom string, where []conformance.Exchange) {
	f.Rule, f.Cause, f.Fix = found.check.Title, cmp.Or(f.Cause, found.check.Cause), cmp.Or(f.Fix, found.check.Fix)
	f.Exchanges = append([]conformance.Exchange{}, where[:min(4, len(where))]...)
	if len(where) > 0 && len(found.findings) < maxFindings {
		f.Curl = wire.Curl(where[0])
	}
	found.keep(Finding{f, mark{symptom: symptom}})
}

// keep adds a finding while there are few, and counts it else.
func (found *Findings) keep(f Finding) {
	fresh := !slices.Contains(found.symptoms, f.symptom)
	if fresh {
		found.symptoms = append(found.symptoms, f.symptom)
	}
	if len(found.findings) >= maxFindings && (!fresh || len(found.findings) >= 2*maxFindings) {
		found.surplus++
		return
	}
	found.findings = append(found.findings, f)
}

// All are the findings so far, at most eight, and eight more with other symptoms; the caller may complete them.
func (found *Findings) All() []Finding { return found.findings }

// Symptoms are those of all findings, also of those beyond All.
func (found *Findings) Symptoms() []string { return found.symptoms }

// Drop takes all findings back.
func (found *Findings) Drop() { found.findings = nil }

// Explain gives the findings with such a symptom the cause, or its candidates, of a second
// run, and what to do; with "" the fix of each stays.
func (found *Findings) Explain(about func(symptom string) bool, cause, fix string, observed bool) {
	for i := range found.findings {
		if f := &found.findings[i]; about(f.symptom) {
			f.Cause, f.Fix, f.Observed, f.diagnosed = cause, cmp.Or(fix, f.Fix), observed, true
		}
	}
}

// Belongs moves the findings with such a symptom to the check whose rule they are about; "" is none.
func (found *Findings) Belongs(about func(symptom string) bool, rule string) {
	for i := range found.findings {
		if f := &found.findings[i]; about(f.symptom) {
			f.rule = rule
		}
	}
}

// Reset forgets what was found, so that the same actor can look at another exchange.
func (found *Findings) Reset() { *found = Findings{check: found.check, secrets: found.secrets} }

// Take adds what one exchange of many has shown: its findings, and its notes while there are few.
func (found *Findings) Take(one *Findings) {
	for _, f := range one.findings {
		found.keep(f)
	}
	found.surplus += one.surplus
	for _, n := range one.notes {
		if len(found.notes) < maxFindings {
			found.Note("%s", n)
		}
	}
}

// TakeUnless is Take without findings whose symptom is shown already.
func (found *Findings) TakeUnless(shown func(symptom string) bool, one *Findings) {
	kept := *one
	kept.findings = slices.DeleteFunc(slices.Clone(one.findings), func(f Finding) bool { return f.symptom != "" && shown(f.symptom) })
	if len(kept.findings) > 0 {
		found.Take(&kept)
	}
}

// Refused keeps how a record was first refused: it explains why no accepted record was seen.
func (found *Findings) Refused(text string) {
	found.refusal = cmp.Or(found.refusal, text)
}

// Refusal is what Refused keeps; "" when no record was refused.
func (found *Findings) Refusal() string { return found.refusal }

// Incomplete holds which replies never ended, and show nothing; "" when all did.
func (found *Findings) Incomplete(why string) { found.incomplete = why }

// Weaken takes a PASS back, and no finding: err is what was not looked at.
func (found *Findings) Weaken(err error) {
	found.weak = cmp.Or(found.weak, asOutcome(err))
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

// Result is what the findings come to; err is the Outcome of the last step, nil for none.
func (found *Findings) Result(err error) *Result { return found.result(asOutcome(err), false) }

// result is what a scenario comes to.
func (found *Findings) result(out *outcome, interrupted bool) *Result {
	if out.status == conformance.Pass {
		out = cmp.Or(found.weak, found.unseen(), out)
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

// hide takes the secrets out of the result of a check, and of the report as a whole, which has
// what the run noted down. An exchange is recorded without them (wire).
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
	if _, mistake := errors.AsType[*conformance.UsageError](err); mistake {
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

// lacking holds why there is no evidence of a kind, and what would give it.
var lacking = map[conformance.Evidence]struct{ reason, decider string }{
	conformance.SeenHandshakes: {"no TLS handshake was completed", ""},
	conformance.SeenResponses:  {"no response was seen", ""},
	conformance.SeenAttempts:   {"no call was made", ""},
	conformance.SeenEnvelopes:  {"no response with a result or an error was seen", ""},
	conformance.SeenAnswers:    {"no response with a result was seen", ""},
	conformance.SeenErrors:     {"no error object was seen", ""},
	conformance.SeenResults:    {"no record result was seen", ""},
	conformance.SeenAccepted:   {"no record was accepted", "fixtures"},
	conformance.SeenRefused:    {"no record was refused", "fixtures"},
	conformance.SeenStored:     {"no record was seen stored", "readback"},
	conformance.SeenChanged:    {"no record was seen changed: no mapped field has a second value", "fixtures"},
	conformance.SeenKept:       {"no record was seen that the batch could have changed", "fixtures"},
	conformance.SeenDeleted:    {"no record was seen deleted", "readback"},
	conformance.SeenAbsent:     {"no key was looked up", "readback"},
}

// Saw counts evidence of a kind.
func (found *Findings) Saw(kind conformance.Evidence, n int) {
	if found.seen == nil {
		found.seen = map[conformance.Evidence]int{}
	}
	found.seen[kind] += n
}

// Unsaw takes evidence of a kind back.
func (found *Findings) Unsaw(kind conformance.Evidence) { delete(found.seen, kind) }

// Evidence is what was counted so far.
func (found *Findings) Evidence() map[conformance.Evidence]int { return found.seen }

// unseen is the outcome of a PASS that lacks evidence; nil when nothing is missing.
func (found *Findings) unseen() *outcome {
	if found.incomplete != "" {
		return &outcome{status: conformance.Inconclusive, reason: found.incomplete}
	}
	i := slices.IndexFunc(found.check.Evidence, func(kind conformance.Evidence) bool { return found.seen[kind] == 0 })
	if i < 0 {
		return nil
	}
	kind := found.check.Evidence[i]
	why := &outcome{status: conformance.Inconclusive, reason: lacking[kind].reason, decider: lacking[kind].decider}
	if found.refusal != "" && slices.Contains(ofAccepted, kind) {
		why.reason, why.decider = "no record was accepted; the endpoint says: "+found.refusal, "fixtures"
	}
	return why
}

// ofAccepted are the kinds of evidence that only accepted records give.
var ofAccepted = []conformance.Evidence{conformance.SeenAccepted, conformance.SeenStored, conformance.SeenChanged, conformance.SeenDeleted}

// evidenceText lists what was seen, for example "3 stored, 3 changed".
func (found *Findings) evidenceText() string {
	var parts []string
	for _, kind := range conformance.EvidenceKinds() {
		if n := found.seen[kind]; n > 0 && slices.Contains(found.check.Evidence, kind) {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(append(parts, found.evidence...), "; ")
}
