package openapi

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/destkit/destkit/internal/foreign"
)

// step is one name or index on the way to a value.
type step struct {
	name    string
	index   int
	isIndex bool
}

// place is the way to a value.
type place []step

// String writes a place as people do: mappings[2].from.data. A name that is no
// word is quoted and, when it is long, cut.
func (p place) String() string {
	var b []byte
	for _, s := range p {
		switch {
		case s.isIndex:
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
		case isWord(s.name):
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = append(b, s.name...)
		default:
			b = append(strconv.AppendQuote(append(b, '['), foreign.Clip(s.name, maxShown)), ']')
		}
	}
	return string(b)
}

// isWord reports whether a name can be used in a place without quotes.
func isWord(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && c != '=' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != "" && len(name) <= maxShown
}

// maxShown is how much of a name or a value a message shows, in characters.
const maxShown = 64

// compare orders places: indices by number, names by letters, a whole before
// its parts.
func (p place) compare(q place) int {
	return slices.CompareFunc(p, q, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.index, b.index), strings.Compare(a.name, b.name))
	})
}
