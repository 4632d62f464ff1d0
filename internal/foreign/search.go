package foreign

import (
	"bytes"
	"strings"
)

// Search is a text to look for in others, in whichever case. The zero value is in every
// text. It is safe for parallel use.
type Search struct{ lower string }

// NewSearch prepares a search.
func NewSearch(text string) Search { return Search{strings.ToLower(text)} }

// Empty reports whether the text is in every other.
func (t *Search) Empty() bool { return t.lower == "" }

// String is the text in small letters.
func (t *Search) String() string { return t.lower }

// In reports whether a text has it.
func (t *Search) In(text string) bool {
	return t.lower == "" || strings.Contains(strings.ToLower(text), t.lower)
}

// InBytes is In.
func (t *Search) InBytes(text []byte) bool {
	return t.lower == "" || bytes.Contains(bytes.ToLower(text), []byte(t.lower))
}
