package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
)

// padLeft puts spaces before s up to n columns.
func padLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-foreign.Columns(s))) + s }

// glue keeps the words of s on one line when it is wrapped; unglue ends that.
func glue(s string) string   { return strings.ReplaceAll(s, " ", "\u00a0") }
func unglue(s string) string { return strings.ReplaceAll(s, "\u00a0", " ") }

// command is a shell command as lines of a terminal: it is broken only between
// words, with a backslash, and can be copied as it stands. Control characters
// inside quotes become $'…', which bash, zsh, ksh and POSIX 2024 read alike.
func command(s string, n int) []string {
	var lines []string
	for _, words := range shellLines(s) {
		cur := ""
		for _, w := range options(words) {
			switch {
			case cur == "":
				cur = w
			case foreign.Columns(cur)+1+foreign.Columns(w)+2 <= n:
				cur += " " + w
			default:
				lines = append(lines, cur+` \`)
				cur = "  " + w
			}
		}
		if cur != "" {
			lines = append(lines, cur)
		}
	}
	return lines
}

// options joins an option with the word behind it, so that no line ends in an
// option that lacks its value.
func options(words []string) []string {
	var out []string
	for i, w := range words {
		if i > 0 && strings.HasPrefix(words[i-1], "-") && !strings.HasPrefix(w, "-") {
			out[len(out)-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

// shellPart is a quotation, an escaped character or any other one: a shell reads a command
// so, as far as quotes and words go.
var shellPart = regexp.MustCompile(`(?s)'[^']*'?|"(?:\\.|[^"\\])*"?|\\.?|.`)

// shellLines splits a command at unquoted line ends, and each line at unquoted spaces.
// What is on another line is another command and must not be joined with it.
func shellLines(s string) (lines [][]string) {
	var words []string
	word := ""
	endWord := func() {
		if word != "" {
			words, word = append(words, word), ""
		}
	}
	for _, part := range append(shellPart.FindAllString(s, -1), "\n") {
		switch part {
		case " ", "\\\n": // a continued line is broken again, where there is room
			endWord()
		case "\n":
			if endWord(); len(words) > 0 {
				lines, words = append(lines, words), nil
			}
		default:
			word += printable(part)
		}
	}
	return lines
}

// printable is a part of a command in a form that prints.
func printable(part string) string {
	quote := ""
	if part[0] == '\'' || part[0] == '"' {
		quote = part[:1]
	}
	var b strings.Builder
	for i, r := range part {
		switch rest := part[i:]; {
		case foreign.Hidden(r) || r == utf8.RuneError:
			// One character that must not be printed is outside the quotes.
			fmt.Fprintf(&b, "%s$'%s'%s", quote, hexEscape(r), quote)
		case quote != "" && (strings.HasPrefix(rest, "##[") || strings.HasPrefix(rest, "##vso[")):
			// Two quotes between the signs change nothing for the shell and keep
			// a CI service from reading a command.
			b.WriteString("#" + quote + quote)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hexEscape(r rune) (text string) {
	for _, c := range []byte(string(r)) {
		text += fmt.Sprintf(`\x%02x`, c)
	}
	return text
}
