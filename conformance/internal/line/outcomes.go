package line

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/internal/engine"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/pause"
)

// decided is an Outcome as it comes back from a step.
type decided interface {
	error
	Status() conformance.Status
	Reason() string
	Decider() string
}

// Decided is what the error of a step says: the status, the reason, and what would decide
// an undecided check, "" when nothing would.
func Decided(err error) (status conformance.Status, reason, decider string) {
	if o, is := errors.AsType[decided](err); is {
		return o.Status(), o.Reason(), o.Decider()
	}
	if err == nil {
		return conformance.Pass, "", ""
	}
	return conformance.HarnessError, err.Error(), ""
}

// NotApplicable: the rule does not bind this endpoint.
func NotApplicable(format string, args ...any) error {
	return engine.Outcome(conformance.NotApplicable, "", format, args...)
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
	if pause.For(ctx, d) != nil {
		return Overtime(ctx)
	}
	return nil
}

// CleanUpCheck stands in the records of clean-up calls.
var CleanUpCheck = &conformance.Check{ID: "CLEAN", Title: "Clean-up"}

// Overtime says why the run ended before this check did.
func Overtime(ctx context.Context) error {
	if o, timeUp := errors.AsType[decided](context.Cause(ctx)); timeUp {
		return o
	}
	return engine.NotRun("", "the run was interrupted")
}
