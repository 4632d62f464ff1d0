package mapping

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
)

// didYouMean gives ` (did you mean "x"?)` for the nearest of the known names, or
// all of them when they are few and none is near.
func didYouMean(name string, known []string) string {
	if near := suggest.Word(foreign.Clip(name, 80), known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	} else if len(known) > 0 && len(known) <= 12 {
		return fmt.Sprintf(" (known: %s)", strings.Join(known, ", "))
	}
	return ""
}
