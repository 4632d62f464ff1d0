package destsim

import (
	"fmt"
	"strings"

	"github.com/destkit/destkit/internal/suggest"
)

// didYouMean gives ` (did you mean "x"?)` for the nearest of the known words, or
// the whole list when it is short and nothing is near.
func didYouMean(word string, known []string) string {
	if near := suggest.Word(clip(word), known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	} else if len(known) <= 12 {
		return fmt.Sprintf(" (one of %s)", strings.Join(known, ", "))
	}
	return ""
}
