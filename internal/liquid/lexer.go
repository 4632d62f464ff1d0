package liquid

import (
	"strings"
	"unicode/utf8"
)

// The kinds of words of a Liquid expression, by the names that syntax errors
// call them.
const (
	wordEnd        = "end_of_string"
	wordID         = "id"
	wordString     = "string"
	wordNumber     = "number"
	wordComparison = "comparison"
	wordDotDot     = "dotdot"
)

// The single characters that are words.
var wordSpecials = map[byte]string{
	'|': "pipe", '.': "dot", ':': "colon", ',': "comma", '[': "open_square", ']': "close_square",
	'(': "open_round", ')': "close_round", '?': "question", '-': "dash",
}

// word is one word; text is that of a string without its quotes.
type word struct{ kind, text string }

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordByte(c byte) bool {
	return c == '_' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lexExpression cuts the markup of a tag or an output into words, strictly: a
// character that starts no word is an error.
func lexExpression(markup string) ([]word, error) {
	words := make([]word, 0, 8)
	for i := 0; i < len(markup); {
		if isSpace(markup[i]) {
			i++
			continue
		}
		w, length := nextWord(markup[i:])
		if length == 0 {
			r, _ := utf8.DecodeRuneInString(markup[i:])
			return nil, publishedf("Unexpected character %c", r)
		}
		words = append(words, w)
		i += length
	}
	// A word for the end saves the parser from looking whether there is a next
	// one.
	return append(words, word{kind: wordEnd}), nil
}

// nextWord gives the word at the start of s and its length, 0 for none.
func nextWord(s string) (word, int) {
	if op := comparisonAt(s); op != "" {
		return word{wordComparison, op}, len(op)
	}
	// There are no escapes: a text with both quotes cannot be written.
	if s[0] == '\'' || s[0] == '"' {
		end := strings.IndexByte(s[1:], s[0])
		if end < 0 {
			return word{}, 0
		}
		return word{wordString, s[1 : end+1]}, end + 2
	}
	if n := numberLength(s); n > 0 {
		return word{wordNumber, s[:n]}, n
	}
	if isWordByte(s[0]) {
		n := 1
		// Names may have dashes within and a question mark at the end.
		for n < len(s) && (isWordByte(s[n]) || s[n] == '-') {
			n++
		}
		if n < len(s) && s[n] == '?' {
			n++
		}
		return word{wordID, s[:n]}, n
	}
	if strings.HasPrefix(s, "..") {
		return word{wordDotDot, ".."}, 2
	}
	if kind, ok := wordSpecials[s[0]]; ok {
		return word{kind, s[:1]}, 1
	}
	return word{}, 0
}

// comparisonAt finds an operator; the longer ones come first. contains needs
// white space behind it: contains_all is a name.
func comparisonAt(s string) string {
	for _, op := range []string{"==", "!=", "<>", "<=", "<", ">=", ">"} {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	if rest, ok := strings.CutPrefix(s, "contains"); ok && rest != "" && isSpace(rest[0]) {
		return "contains"
	}
	return ""
}

// numberLength counts the characters of -?digits(.digits)?, 0 for no number.
func numberLength(s string) int {
	n := 0
	if s[0] == '-' {
		n = 1
	}
	start := n
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	if n == start {
		return 0
	}
	// The digit behind the point tells 1.5 from 1..5.
	if n+1 < len(s) && s[n] == '.' && isDigit(s[n+1]) {
		for n++; n < len(s) && isDigit(s[n]); n++ {
		}
	}
	return n
}
