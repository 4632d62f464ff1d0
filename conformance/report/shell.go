package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/foreign"
)

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
			case columns(cur)+1+columns(w)+2 <= n:
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

// shellLines splits a command at unquoted line ends, and each line at
// unquoted spaces.
func shellLines(s string) [][]string {
	var sc scanner
	for i, r := range s {
		sc.rune(r, s[i:])
	}
	sc.endLine()
	return sc.lines
}

// scanner reads a command as a shell does, as far as quotes and words go.
type scanner struct {
	lines   [][]string
	words   []string
	word    strings.Builder
	quote   rune // ' or " inside quotes
	escaped bool // the character before was a backslash that counts
}

// rune takes the next character; rest is the command from there on.
func (sc *scanner) rune(r rune, rest string) {
	escaped := sc.escaped
	sc.escaped = false
	switch {
	case escaped && r == '\n' && sc.quote == 0:
		sc.endWord() // a continued line; the break is made anew
	case escaped:
		sc.word.WriteByte('\\')
		sc.put(r, rest)
	case r == '\\' && sc.quote != '\'':
		sc.escaped = true
	case r == '\n' && sc.quote == 0:
		sc.endLine()
	case r == ' ' && sc.quote == 0:
		sc.endWord()
	case (r == '\'' || r == '"') && sc.quote == 0:
		sc.quote = r
		sc.word.WriteRune(r)
	case r == sc.quote:
		sc.quote = 0
		sc.word.WriteRune(r)
	default:
		sc.put(r, rest)
	}
}

// put adds a character that is no syntax, in a form that prints.
func (sc *scanner) put(r rune, rest string) {
	switch {
	case foreign.Hidden(r) || r == utf8.RuneError:
		sc.word.WriteString(shellEscape(r, sc.quote))
	case sc.quote != 0 && (strings.HasPrefix(rest, "##[") || strings.HasPrefix(rest, "##vso[")):
		// Two quotes between the signs change nothing for the shell and keep
		// a CI service from reading a command.
		sc.word.WriteString("#" + string(sc.quote) + string(sc.quote))
	default:
		sc.word.WriteRune(r)
	}
}

func (sc *scanner) endWord() {
	if sc.word.Len() > 0 {
		sc.words = append(sc.words, sc.word.String())
		sc.word.Reset()
	}
}

// endLine ends a command. What stands on another line is another command and
// must not be joined with it.
func (sc *scanner) endLine() {
	sc.endWord()
	if len(sc.words) > 0 {
		sc.lines = append(sc.lines, sc.words)
		sc.words = nil
	}
}

// shellEscape leaves the quotes for one character that must not be printed.
func shellEscape(r, quote rune) string {
	var b strings.Builder
	if quote != 0 {
		b.WriteRune(quote)
	}
	b.WriteString("$'")
	for _, c := range []byte(string(r)) {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	b.WriteString("'")
	if quote != 0 {
		b.WriteRune(quote)
	}
	return b.String()
}
