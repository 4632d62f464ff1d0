// Package causes words the cause of a finding where the calls of a run leave more than one.
package causes

import (
	"fmt"
	"strings"
)

const candidates = "could be"

// Either names two candidates, with the call that tells them apart.
func Either(one, other, call string) string {
	return fmt.Sprintf("%s %s, or %s; %s tells them apart.", candidates, one, other, call)
}

// Open reports whether a cause names candidates.
func Open(text string) bool { return strings.HasPrefix(text, candidates) }
