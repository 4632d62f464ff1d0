package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// outcome is what a step says when it is not simply satisfied. It travels as an
// error through the step runner and comes back typed; any other error of a step
// is a fault of the judge itself.
type outcome struct {
	status  Status
	reason  string
	decider string // what would decide an undecided check
	away    bool   // the endpoint went away in the middle
}

// Status, Reason and Decider are what Outcome was given.
func (o *outcome) Status() Status  { return o.status }
func (o *outcome) Reason() string  { return o.reason }
func (o *outcome) Decider() string { return o.decider }

func (o *outcome) Error() string { return string(o.status) + ": " + o.reason }

// notRun: a permission, hook or budget is missing; decider names it.
func notRun(decider, format string, args ...any) error {
	return &outcome{status: NotRun, decider: decider, reason: fmt.Sprintf(format, args...)}
}

// inconclusive: the check ran and the evidence does not decide.
func inconclusive(decider, format string, args ...any) error {
	return &outcome{status: Inconclusive, decider: decider, reason: fmt.Sprintf(format, args...)}
}

// errBroken ends a scenario whose findings have been collected in its scenario.
var errBroken error = &outcome{status: Fail, reason: "rule broken"}

// asOutcome classifies the error of a step.
func asOutcome(err error) *outcome {
	var o *outcome
	switch {
	case err == nil:
		return &outcome{status: Pass}
	case errors.As(err, &o):
		return o
	case errors.Is(err, wire.ErrSilent):
		return &outcome{status: Inconclusive, away: true, reason: "the endpoint stopped responding in the middle of it (ERR-006)"}
	case errors.Is(err, wire.ErrAway):
		return &outcome{status: Inconclusive, away: true, reason: "the endpoint stopped accepting connections in the middle of it (ERR-006)"}
	default:
		return &outcome{status: HarnessError, reason: err.Error()}
	}
}

// result makes an empty result of a check.
func (c *Check) result(status Status, reason string) *CheckResult {
	return &CheckResult{
		ID: c.ID, Title: c.Title, Level: c.Level, Authority: c.Authority, Sections: c.Sections, Area: c.Area,
		Status: status, Reason: reason, Findings: []Finding{},
	}
}

// mergeOrder says which status of several objects speaks for the check: a pass
// on one object must not hide that another one stays undecided.
var mergeOrder = []Status{Fail, HarnessError, Inconclusive, NotRun, Pass, NotApplicable}

// merge sums up the results of one check over several objects.
func merge(c *Check, parts []*CheckResult) *CheckResult {
	if len(parts) == 0 {
		r := c.result(NotRun, "looks at one object: name it with --object NAME")
		r.Decider = "--object"
		return r
	}
	slices.SortStableFunc(parts, func(a, b *CheckResult) int {
		return slices.Index(mergeOrder, a.Status) - slices.Index(mergeOrder, b.Status)
	})
	out := *parts[0]
	for _, p := range parts[1:] {
		out.Findings = append(out.Findings, p.Findings...)
		out.symptoms = append(slices.Clone(out.symptoms), p.symptoms...)
		out.away = out.away || p.away
		out.Notes = append(out.Notes, p.Notes...)
		if p.Evidence != "" && out.Evidence != "" {
			out.Evidence += "; " + p.Evidence
		}
	}
	return &out
}

// Deciding puts the decider of a result into a phrase, and the flags that grant
// it, "" when none does. A decider that is not known stands for itself.
func (r *Report) Deciding(decider string) (what, flags string) {
	if hook, ok := strings.CutPrefix(decider, "hook "); ok {
		return "the author's hook " + hook, "--hooks FILE"
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(decider, "--"), " ")
	switch name {
	case "write":
		return "permission to write", "--write --object " + r.objectToWrite()
	case "object":
		return "the name of an object", "--object " + r.objectToWrite()
	case "readback":
		return "a read-back hook", "--readback-url URL or --readback-command CMD"
	case "load":
		return "permission to send at declared speed", "--load"
	case "skip-convention":
		return "a declared skip convention", "--skip-convention failure|success|success-with-message"
	case "max-records":
		return "a larger budget of records", "--max-records N"
	case "key-range":
		return "a range of integer keys", "--key-range FROM:TO"
	case "timeout":
		return "more time", "--timeout D"
	case "token", "token-env":
		return "a token of the connection", "--token-env NAME"
	case "url-secret":
		return "the place of the secret in the URL", "--url-secret query:NAME|path:INDEX"
	case "probe-plain-http":
		return "permission to probe plain http", "--probe-plain-http PORT"
	case "development", "tls-roots", "https", "tls":
		return "https with public or given roots", "--development off or --tls-roots FILE"
	case "fixtures":
		return "fixtures in the configuration file", "--config FILE"
	}
	return decider, ""
}

// needed is the shortest form of Deciding: flags that say what they grant stand for
// it, others come behind it.
func (r *Report) needed(decider string) string {
	what, flags := r.Deciding(decider)
	switch {
	case flags == "":
		return what
	case strings.HasPrefix(decider, "hook "):
		return "hooks (" + flags + ")" // whichever they are, one file holds them
	case decider == "readback":
		return what + " (--readback-url URL)"
	case decider == "fixtures":
		return "fixtures (" + flags + ")"
	}
	return flags
}

// objectToWrite is an object that the endpoint lists, so that a line which asks for
// writes can be pasted; NAME where none can stand in a command as it is.
func (r *Report) objectToWrite() string {
	for _, names := range [][]string{r.Settings.Objects, r.Objects} {
		for _, name := range names {
			if name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") == "" {
				return name
			}
		}
	}
	return "NAME"
}
