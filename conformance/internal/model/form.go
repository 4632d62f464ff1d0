package model

import (
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// form is the place of a key without what a collation, a trimmed column or a double does
// not keep. Keys of one form may be one record, which a check about keys judges.
func form(p Place) Place {
	const exact = 1 << 53
	if n, err := strconv.ParseInt(p.Key, 10, 64); err == nil && (n >= exact || n <= -exact) {
		p.Key = strconv.FormatFloat(float64(n), 'g', -1, 64)
		return p
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(strings.ToLower(p.Key)) {
		if !unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf, unicode.Z) {
			b.WriteRune(r)
		}
	}
	p.Key = b.String()
	return p
}
