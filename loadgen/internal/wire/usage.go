package wire

import (
	"fmt"

	"github.com/destkit/destkit/internal/foreign"
)

// UsageError is a mistake of the caller: nothing was sent.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

// Usagef makes one; what came from outside is made safe to show.
func Usagef(format string, args ...any) error {
	return &UsageError{Message: fmt.Sprintf(format, foreign.Args(args)...)}
}
