package destination

import (
	"fmt"

	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
)

// usage is a mistake of the caller.
func usage(format string, args ...any) error {
	return &conformance.UsageError{Message: fmt.Sprintf(format, foreign.Args(args)...)}
}
