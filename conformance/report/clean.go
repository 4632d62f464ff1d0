package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
)

// Text of an endpoint stands in messages, names and bodies. On its way into a
// report it must not be able to move a cursor, hide what follows, reverse the
// reading direction or start a line that a CI service takes for a command.

// line returns s as one line: every control, direction and line character
// becomes a space or a visible escape like \x1b.
func line(s string) string { return strings.Join(strings.Fields(foreign.Line(s)), " ") }

// block returns s as lines without control characters.
func block(s string) []string { return foreign.Block(s) }

// text is block in one string.
func text(s string) string { return strings.Join(block(s), "\n") }

// limit cuts s to about n bytes at a rune and says what is missing.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s … (%s in the JSON report)", s[:n], quantity.Count(len(s)-n, "more byte"))
}
