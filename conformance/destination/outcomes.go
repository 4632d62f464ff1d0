package destination

import (
	"errors"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
)

// decided is an Outcome as it comes back from a step.
type decided interface {
	error
	Status() conformance.Status
	Reason() string
	Decider() string
}

// statusOf is the status that the error of a step stands for.
func statusOf(err error) conformance.Status {
	if o, is := errors.AsType[decided](err); is {
		return o.Status()
	}
	if err == nil {
		return conformance.Pass
	}
	return conformance.HarnessError
}

// reasonOf is what the error of a step says.
func reasonOf(err error) string {
	if o, is := errors.AsType[decided](err); is {
		return o.Reason()
	}
	return err.Error()
}

// deciderOf names what would decide an undecided check; "" when nothing would.
func deciderOf(err error) string {
	if o, is := errors.AsType[decided](err); is {
		return o.Decider()
	}
	return ""
}

// notApplicable: the rule does not bind this endpoint.
func notApplicable(format string, args ...any) error {
	return engine.Outcome(conformance.NotApplicable, "", format, args...)
}

// notRun: a permission, hook or budget is missing; decider names it.
func notRun(decider, format string, args ...any) error {
	return engine.Outcome(conformance.NotRun, decider, format, args...)
}

// inconclusive: the check ran and the evidence does not decide.
func inconclusive(decider, format string, args ...any) error {
	return engine.Outcome(conformance.Inconclusive, decider, format, args...)
}

// harness: the judge or a hook of the author failed, never the endpoint.
func harness(format string, args ...any) error {
	return engine.Outcome(conformance.HarnessError, "", format, args...)
}
