package command

import (
	"fmt"
	"io"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
)

// PrintJSON writes v indented.
func PrintJSON(w io.Writer, v any) error {
	if err := foreign.EncodeJSON(w, v, "  "); err != nil {
		return exit.Untested(fmt.Errorf("print json: %w", err))
	}
	return nil
}
