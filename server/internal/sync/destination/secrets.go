package destination

import (
	"strings"

	"github.com/destkit/destkit/internal/foreign"
)

const (
	hidden     = "[hidden]"
	maxForeign = 500 // code points of foreign text that a message shows
)

// redactor takes the secrets of one connection out of texts that its destination wrote
// or that quote requests to it.
type redactor struct{ *foreign.Redactor }

func newRedactor(secrets []string) *redactor {
	r := &redactor{foreign.New()}
	for _, s := range secrets {
		r.Add(s, hidden)
	}
	return r
}

// Foreign is a text that a destination wrote without the secrets: one line of bounded
// length.
func (r *redactor) Foreign(s string) string {
	s = strings.Map(func(c rune) rune {
		if isControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return foreign.Clip(strings.TrimSpace(r.String(s)), maxForeign)
}
