package organizations

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/destkit/destkit/server/api"
)

// MaxName is the longest name in characters, as the document has it.
const MaxName = 255

// CheckName refuses names that a person could not read: empty ones, those with
// control characters, and, where no document looks at them as in a seed, very
// long ones. Any other Unicode is welcome.
func CheckName(field, name string) []api.Problem {
	if strings.TrimSpace(name) == "" {
		return []api.Problem{{Field: field, Message: "must not be empty"}}
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return []api.Problem{{Field: field, Message: "must not hold control characters"}}
	}
	if utf8.RuneCountInString(name) > MaxName {
		return []api.Problem{{Field: field, Message: fmt.Sprintf("must have at most %d characters", MaxName)}}
	}
	return nil
}
