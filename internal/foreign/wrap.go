package foreign

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Columns returns how many columns of a terminal s takes.
func Columns(s string) int { return uniseg.StringWidth(s) }

// Pad fills s with spaces to n columns.
func Pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-Columns(s))) }

// unbroken are the parts of s between which a line may end. Several spaces, and one at
// the inside of a quotation mark, are what a value is about: no line ends there, which
// would hide them.
func unbroken(s string) []string {
	var list []string
	before, open := "", false // the word before, and whether a quotation goes on behind it
	for i, word := range strings.Split(s, " ") {
		opens, closes := before == `"` && open, word == `"` && open
		switch {
		case i == 0:
			list = append(list, word)
		case before == "", word == "", opens, closes:
			list[len(list)-1] += " " + word
		default:
			list = append(list, word)
		}
		marks := strings.Count(word, `"`) - strings.Count(word, `\"`)
		before, open = word, open != (marks%2 != 0)
	}
	return list
}

// Wrap breaks s at spaces into lines of at most n columns; spaces inside a line
// stay, since they may matter in a value. A longer word stays whole on its own
// line, since it may be a key to be copied.
func Wrap(s string, n int) []string {
	var lines []string
	cur, used, empty := "", 0, true
	for _, word := range unbroken(s) {
		c := Columns(word)
		if !empty && used > 0 && used+1+c > n {
			lines = append(lines, cur)
			cur, used, empty = "", 0, true
		}
		if !empty {
			cur += " "
			used++
		}
		cur += word
		used += c
		empty = false
	}
	lines = append(lines, cur)
	// A break may bring "::" to the front of a line.
	for i := range lines {
		lines[i] = Defuse(strings.TrimRight(lines[i], " "))
	}
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines
}
