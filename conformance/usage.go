package conformance

import (
	"fmt"

	"github.com/destkit/destkit/internal/foreign"
)

// UsageError is a mistake of the caller: exit status 2, nothing was judged.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

func usage(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, foreign.Args(args)...)}
}
