package engine

import (
	"errors"
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/wire"
)

// outcome is what a step says when it is not simply satisfied. It travels as an
// error through the step runner and comes back typed; any other error of a step
// is a fault of the judge itself.
type outcome struct {
	status  conformance.Status
	reason  string
	decider string // what would decide an undecided check
	away    bool   // the endpoint went away in the middle
}

// Status, Reason and Decider are what Outcome was given.
func (o *outcome) Status() conformance.Status { return o.status }
func (o *outcome) Reason() string             { return o.reason }
func (o *outcome) Decider() string            { return o.decider }

func (o *outcome) Error() string { return string(o.status) + ": " + o.reason }

// NotRun: a permission, hook or budget is missing; decider names it.
func NotRun(decider, format string, args ...any) error {
	return Outcome(conformance.NotRun, decider, format, args...)
}

// Inconclusive: the check ran and the evidence does not decide.
func Inconclusive(decider, format string, args ...any) error {
	return Outcome(conformance.Inconclusive, decider, format, args...)
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
	default:
		return &outcome{status: conformance.HarnessError, reason: err.Error()}
	}
}

// Outcome is what a step returns when it neither holds nor breaks the rule: status
// is NotApplicable (the rule does not bind what is judged), NotRun (a permission,
// a part or a budget is missing), Inconclusive (the evidence does not decide) or
// HarnessError (the judge failed). decider names what would decide it, such as
// "--control-url"; "" when nothing does.
func Outcome(status conformance.Status, decider, format string, args ...any) error {
	return &outcome{status: status, decider: decider, reason: fmt.Errorf(format, args...).Error()}
}
