// Package exit owns the exit statuses of the program and the errors that carry them.
// The help of a command defines what a status means for it.
package exit

import (
	"fmt"

	"github.com/destkit/destkit/internal/foreign"
)

// The exit statuses, the same for every command.
const (
	OK          = 0 // conformant, or done
	GateFailed  = 1 // a gate failed
	BadUsage    = 2 // usage, configuration, unknown ids, nothing selected
	NotTested   = 3 // could not test
	StaleWaiver = 4 // a waiver is stale, expired or unknown
	Residue     = 5 // residue with --require-clean
	Incomplete  = 6 // an undecided MUST with --require-complete
)

// Error is an error that carries the exit status of the program. Its message is
// printed unless Err is nil: then the command has said it all.
type Error struct {
	Status int
	Err    error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usage marks err as the caller's mistake (exit 2).
func Usage(err error) error { return &Error{BadUsage, err} }

// Usagef is Usage with a format.
func Usagef(format string, args ...any) error {
	return Usage(fmt.Errorf(format, foreign.Args(args)...))
}

// Untested marks err as a reason why nothing could be judged or done (exit 3).
func Untested(err error) error { return &Error{NotTested, err} }

// With ends with a status and no further word.
func With(status int) error {
	if status == OK {
		return nil
	}
	return &Error{Status: status}
}

// Worst combines two statuses by the order that every help text prints.
func Worst(a, b int) int {
	for _, status := range []int{BadUsage, GateFailed, NotTested, StaleWaiver, Residue, Incomplete} {
		if a == status || b == status {
			return status
		}
	}
	return OK
}
