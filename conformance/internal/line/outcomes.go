package line

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/internal/foreign"
)

// decided is an Outcome as it comes back from a step.
type decided interface {
	error
	status() conformance.Status
	reason() string
	Decider() string
}

// StatusOf is the status that the error of a step stands for.
func StatusOf(err error) conformance.Status {
	if o, is := errors.AsType[decided](err); is {
		return o.status()
	}
	if err == nil {
		return conformance.Pass
	}
	return conformance.HarnessError
}

// ReasonOf is what the error of a step says.
func ReasonOf(err error) string {
	if o, is := errors.AsType[decided](err); is {
		return o.reason()
	}
	return err.Error()
}

// DeciderOf names what would decide an undecided check; "" when nothing would.
func DeciderOf(err error) string {
	if o, is := errors.AsType[decided](err); is {
		return o.Decider()
	}
	return ""
}

// NotApplicable: the rule does not bind this endpoint.
func NotApplicable(format string, args ...any) error {
	return engine.Outcome(conformance.NotApplicable, "", format, args...)
}

// NotRun: a permission, hook or budget is missing; decider names it.
func NotRun(decider, format string, args ...any) error {
	return engine.Outcome(conformance.NotRun, decider, format, args...)
}

// Inconclusive: the check ran and the evidence does not decide.
func Inconclusive(decider, format string, args ...any) error {
	return engine.Outcome(conformance.Inconclusive, decider, format, args...)
}

// Harness: the judge or a hook of the author failed, never the endpoint.
func Harness(format string, args ...any) error {
	return engine.Outcome(conformance.HarnessError, "", format, args...)
}

// Usage is a mistake of the caller.
func Usage(format string, args ...any) error {
	return &conformance.UsageError{Message: fmt.Sprintf(format, foreign.Args(args)...)}
}

// Elapse lets time pass; the error says why the run is over before.
func Elapse(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return Overtime(ctx)
	}
}

// CleanUpCheck stands in the records of clean-up calls.
var CleanUpCheck = &conformance.Check{ID: "CLEAN", Title: "Clean-up"}
