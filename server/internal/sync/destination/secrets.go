package destination

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
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

// Matched measures how many members of an emulated audience the application
// recognises (spec 2.6, match_rate_details): the share that the catalogue
// names, chosen by a hash of the identifier, so that the same identifiers give
// the same number; 0 where the object is no audience. Identifiers are raw JSON
// values; text is compared without case and surrounding space, as audiences do.
func (g *Gate) Matched(typ, object string, identifiers []json.RawMessage) int {
	o := g.emulatedObject(typ, object)
	if o == nil || o.Audience == nil {
		return 0
	}
	matched := 0
	for _, raw := range identifiers {
		if matches(typ+"\x00"+object, raw, o.Audience.MatchPercent) {
			matched++
		}
	}
	return matched
}

// matches decides over one member. The seed keeps two audiences from knowing the
// same people; a null identifier never matches.
func matches(seed string, raw json.RawMessage, percent int) bool {
	value := string(bytes.TrimSpace(raw))
	if s, isText := text(raw); isText {
		value = strings.ToLower(strings.TrimSpace(s))
	}
	if value == "" || value == "null" {
		return false
	}
	sum := sha256.Sum256([]byte(seed + "\x00" + value))
	return binary.BigEndian.Uint64(sum[:8])%100 < uint64(percent)
}
