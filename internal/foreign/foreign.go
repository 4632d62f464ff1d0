// Package foreign shows text from outside: of an endpoint, a service, a report
// file, a file of the user's. On a screen or in a log of a CI service such text
// must not be able to move the cursor, hide what follows, turn the reading
// direction around, begin a new line or be taken for a command.
//
// Printf and its like print values from outside; Writer is the net below all that
// a program prints. Secrets are taken out before, by package redact.
package foreign

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as one line: line breaks and tabs become spaces, every other
// character without a glyph a visible escape such as \x1b or \u202e.
func Line(s string) string { return strings.TrimSpace(Defuse(Visible(s, ' '))) }

// Block returns s as lines. Spaces inside a line stay, since they may be the very
// evidence.
func Block(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var lines []string
	for l := range strings.SplitSeq(Visible(s, '\n'), "\n") {
		lines = append(lines, Defuse(strings.TrimRight(l, " ")))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Visible writes what does not print as an escape. newline replaces \n.
func Visible(s string, newline rune) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return Hidden(r) || r == utf8.RuneError || joins(r) }) {
		return s
	}
	var b strings.Builder
	before := rune(' ')
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteRune(newline)
		case r == '\t':
			b.WriteByte(' ')
		case joins(r) && joined(before, s[i+utf8.RuneLen(r):]):
			b.WriteRune(r)
		case Hidden(r) || joins(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
		before = r
	}
	return b.String()
}

// joined reports whether a joiner is between two characters that it can join:
// parts of words in some scripts, and of emoji.
func joined(before rune, rest string) bool {
	after, _ := utf8.DecodeRuneInString(rest)
	return joinable(before) && joinable(after)
}

func joinable(r rune) bool {
	return r >= 0x300 && r != utf8.RuneError && !unicode.IsSpace(r) && !Hidden(r) && !joins(r) && r != '…'
}

// joins knows the two joiners.
func joins(r rune) bool { return r == '\u200c' || r == '\u200d' }

// escape writes one character in the manner of a Go string.
func escape(r rune) string {
	switch {
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// Hidden reports whether a character changes how others are shown, or shows
// nothing itself. The two joiners depend on their neighbours.
func Hidden(r rune) bool {
	if r >= ' ' && r < 0x7f {
		return false
	}
	switch {
	case joins(r), r == '\ufe0e', r == '\ufe0f': // text and emoji style
		return false
	case r == '\u2800': // a blank of Braille
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Defuse breaks the notations of CI services for commands in a log: a line that
// opens with "::", and "##[", "##vso[" and "##teamcity[" anywhere.
func Defuse(s string) string {
	if t := strings.TrimLeftFunc(s, unicode.IsSpace); strings.HasPrefix(t, "::") {
		s = s[:len(s)-len(t)] + `\` + t
	}
	if !strings.Contains(s, "##") {
		return s
	}
	return commands.Replace(s)
}

var commands = strings.NewReplacer("##[", `#\#[`, "##vso[", `#\#vso[`, "##teamcity[", `#\#teamcity[`)

// Clip shortens text to n characters. Secrets were removed before. It does not copy
// the omitted part: an endpoint may have made it very long.
func Clip[T ~string | ~[]byte](text T, n int) string {
	if len(text) <= n {
		return string(text)
	}
	start := string(text[:min(len(text), n*utf8.UTFMax)])
	count := 0
	for i := range start {
		if count == n {
			return start[:i] + "…"
		}
		count++
	}
	if len(start) < len(text) {
		return start + "…"
	}
	return start
}
