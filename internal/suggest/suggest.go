// Package suggest owns the guess of what a mistyped name was meant to be, and the
// words in which a message says so. It refuses to know what the names are.
package suggest

import (
	"strings"
	"unicode/utf8"
)

// Word returns the candidate that is most like word, or "" when none is
// near enough to be a slip of the keyboard: at most a third of its letters
// differ. The case of letters counts where two are near.
func Word(word string, candidates []string) string {
	if near := nearest(word, candidates, func(s string) string { return s }); near != "" {
		return near
	}
	return nearest(word, candidates, strings.ToLower)
}

func nearest(word string, candidates []string, in func(string) string) string {
	word = in(word)
	letters := utf8.RuneCountInString(word)
	best, bestDistance := "", letters/3+1
	for _, candidate := range candidates {
		other := in(candidate)
		if more := utf8.RuneCountInString(other) - letters; max(more, -more) > bestDistance {
			continue // whatever its letters are
		}
		if d := Distance(word, other); d < bestDistance || (d == bestDistance && best == "") {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// Distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func Distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	older, previous := make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(from); i++ {
		current := make([]int, len(to)+1)
		current[0] = i
		for j := 1; j <= len(to); j++ {
			cost := 1
			if from[i-1] == to[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && from[i-1] == to[j-2] && from[i-2] == to[j-1] {
				current[j] = min(current[j], older[j-2]+1)
			}
		}
		older, previous = previous, current
	}
	return previous[len(to)]
}
