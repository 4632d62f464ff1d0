package report

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/destkit/destkit/internal/foreign"
)

// columns returns how many columns of a terminal s takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < 0x7f:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		default:
			n++
			if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
				n++
			}
		}
	}
	return n
}

// pad fills s with spaces to n columns.
func pad(s string, n int) string {
	if c := columns(s); c < n {
		return s + strings.Repeat(" ", n-c)
	}
	return s
}

// padLeft puts spaces before s up to n columns.
func padLeft(s string, n int) string {
	if c := columns(s); c < n {
		return strings.Repeat(" ", n-c) + s
	}
	return s
}

// units are the parts of s between which a line may end. Several spaces, and one at
// the inside of a quotation mark, are what a value is about: no line ends there, which
// would hide them.
func units(s string) []string {
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

// wrap breaks s at spaces into lines of at most n columns; spaces inside a line
// stay, since they may be what a value is about. A word that is longer stands
// whole on its own line, since it may be a key to be copied.
func wrap(s string, n int) []string {
	var lines []string
	cur, used, empty := "", 0, true
	for _, word := range units(s) {
		c := columns(word)
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
		lines[i] = foreign.Defuse(strings.TrimRight(lines[i], " "))
	}
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines
}

// glue keeps the words of s on one line when it is wrapped; unglue ends that.
func glue(s string) string   { return strings.ReplaceAll(s, " ", "\u00a0") }
func unglue(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }
