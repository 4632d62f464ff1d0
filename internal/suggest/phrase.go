package suggest

import (
	"fmt"
	"strings"
)

// most is how many known words a message lists.
const most = 20

// Phrase ends a message about an unknown word: `; did you mean "x"?`, or the known
// words when they are few and none is near, or nothing.
func Phrase(word string, known []string) string {
	if near := Word(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) > 0 && len(known) <= most {
		return "; known are " + strings.Join(known, ", ")
	}
	return ""
}
