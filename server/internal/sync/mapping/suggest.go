package mapping

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/suggest"
)

// didYouMean gives ` (did you mean "x"?)` for the nearest of the known names, or
// all of them when they are few and none is near.
func didYouMean(name string, known []string) string {
	name = foreign.Clip(name, 80)
	// At most half of the letters may differ, or it is another word.
	best, distance := "", utf8.RuneCountInString(name)/2+1
	for _, k := range known {
		if d := suggest.Distance(strings.ToLower(name), strings.ToLower(foreign.Clip(k, 80))); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(" (did you mean %q?)", best)
	case len(known) > 0 && len(known) <= 12:
		return fmt.Sprintf(" (known: %s)", strings.Join(known, ", "))
	}
	return ""
}
