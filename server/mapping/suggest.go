package mapping

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// clip keeps a quoted value of a payload short enough for a message.
func clip(s string) string {
	const longest = 80
	if utf8.RuneCountInString(s) <= longest {
		return s
	}
	return string([]rune(s)[:longest]) + "…"
}

// suggest gives ` (did you mean "x"?)` for the nearest of the known names, or
// all of them when they are few and none is near.
func suggest(name string, known []string) string {
	name = clip(name)
	// At most half of the letters may differ, or it is another word.
	best, distance := "", utf8.RuneCountInString(name)/2+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(clip(k))); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(" (did you mean %q?)", best)
	case len(known) > 0 && len(known) <= 12:
		return fmt.Sprintf(" (known: %s)", strings.Join(known, ", "))
	}
	return ""
}

// editDistance counts the single-character edits between two words.
func editDistance(from, to string) int {
	a, b := []rune(from), []rune(to)
	// One row of the table is enough: each cell needs its three neighbours
	// only.
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
