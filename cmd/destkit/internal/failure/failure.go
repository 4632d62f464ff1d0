// Package failure gives the errors of the libraries their exit statuses: a slip of the
// caller is 2, all else that kept a command from its work is 3.
package failure

import (
	"context"
	"errors"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/loadgen"
)

// OfJudge gives an error of the judge its exit status.
func OfJudge(err error) error {
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

// OfLoad gives an error of a load its exit status.
func OfLoad(err error) error {
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
