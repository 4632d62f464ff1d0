package command

import (
	"context"
	"errors"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/loadgen"
)

// JudgeFailure gives an error of the judge its exit status.
func JudgeFailure(err error) error {
	var usage *conformance.UsageError
	var ended *exit.Error
	switch {
	case errors.As(err, &usage):
		return exit.Usage(err)
	case errors.As(err, &ended):
		return err
	case errors.Is(err, context.Canceled):
		return exit.Untested(errors.New("interrupted"))
	default:
		return exit.Untested(err)
	}
}

// LoadFailure gives an error of a load its exit status.
func LoadFailure(err error) error {
	var usage *loadgen.UsageError
	var ended *exit.Error
	switch {
	case errors.As(err, &usage):
		return exit.Usage(err)
	case errors.As(err, &ended):
		return err
	}
	return exit.Untested(err)
}
