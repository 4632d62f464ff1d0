package wire

import (
	"fmt"
	"strings"
)

const candidates = "could be"

// EitherCause names two candidates, with the call that tells them apart.
func EitherCause(one, other, call string) string {
	return fmt.Sprintf("%s %s, or %s; %s tells them apart.", candidates, one, other, call)
}

// OpenCause reports whether a cause names candidates.
func OpenCause(text string) bool { return strings.HasPrefix(text, candidates) }
