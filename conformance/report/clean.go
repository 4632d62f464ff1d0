package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text of an endpoint stands in messages, names and bodies. On its way into a
// report it must not be able to move a cursor, hide what follows, reverse the
// reading direction or start a line that a CI service takes for a command.

// line returns s as one line: every control, direction and line character
// becomes a space or a visible escape like \x1b.
func line(s string) string {
	return strings.Join(strings.Fields(defuse(visible(s, ' '))), " ")
}

// block returns s as lines without control characters. Spaces inside a line
// stay, since they may be the very evidence.
func block(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var lines []string
	for l := range strings.SplitSeq(visible(s, '\n'), "\n") {
		lines = append(lines, defuse(strings.TrimRight(l, " ")))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// text is block in one string.
func text(s string) string { return strings.Join(block(s), "\n") }

// visible writes what does not print as an escape. newline stands for \n.
func visible(s string, newline rune) string {
	clean := true
	for _, r := range s {
		if hidden(r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteRune(newline)
		case r == '\t':
			b.WriteByte(' ')
		case !hidden(r):
			b.WriteRune(r)
		default:
			b.WriteString(escape(r))
		}
	}
	return b.String()
}

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

// hidden tells characters that change how others are shown. The two joiners
// are part of words and of emoji and stay.
func hidden(r rune) bool {
	switch r {
	case '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs)
}

// defuse breaks the two notations of CI services for commands in a log: a
// line that opens with "::" and the older "##[" and "##vso[" anywhere.
func defuse(s string) string {
	if t := strings.TrimLeft(s, " "); strings.HasPrefix(t, "::") {
		s = s[:len(s)-len(t)] + `\` + t
	}
	s = strings.ReplaceAll(s, "##[", `#\#[`)
	return strings.ReplaceAll(s, "##vso[", `#\#vso[`)
}

// limit cuts s to about n bytes at a rune and says what is missing.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s … (%d more bytes in the JSON report)", s[:n], len(s)-n)
}
