package destsim

import (
	"fmt"
	"strings"
)

// suggest gives ` (did you mean "x"?)` for the nearest of the known words, or
// the whole list when it is short and nothing is near.
func suggest(word string, known []string) string {
	best, distance := "", len(word)/2+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf(" (did you mean %q?)", best)
	case len(known) <= 12:
		return fmt.Sprintf(" (one of %s)", strings.Join(known, ", "))
	}
	return ""
}

// editDistance counts the single-character edits between two words.
func editDistance(a, b string) int {
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
