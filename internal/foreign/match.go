package foreign

import (
	"cmp"
	"slices"
	"strings"
)

// match is a stretch of the original text that must not be shown.
type match struct {
	from, to    int
	placeholder string
	part        bool
	weak        bool // short base64, which may be chance
}

// shown gives the replacement. A letter behind it must not become part of the
// variable's name.
func (m match) shown(b []byte) string {
	if m.part {
		return "[part of " + m.placeholder + "]"
	}
	if m.to < len(b) && strings.HasPrefix(m.placeholder, "$") && isNameByte(b[m.to]) {
		return "${" + m.placeholder[1:] + "}"
	}
	return m.placeholder
}

func isNameByte(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// merge joins what overlaps. A whole secret names the stretch before a part,
// the longer before the shorter.
func merge(matches []match) []match {
	slices.SortFunc(matches, func(a, b match) int { return cmp.Compare(a.from, b.from) })
	merged := matches[:0]
	var best int // length of the match that names the last stretch
	for _, m := range matches {
		if n := len(merged); n > 0 && m.from < merged[n-1].to {
			last := &merged[n-1]
			if last.part && !m.part || last.part == m.part && m.to-m.from > best {
				last.placeholder, last.part, best = m.placeholder, m.part, m.to-m.from
			}
			last.weak = last.weak && m.weak
			last.to = max(last.to, m.to)
			continue
		}
		merged = append(merged, m)
		best = m.to - m.from
	}
	return merged
}
