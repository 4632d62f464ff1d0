package command

import (
	"errors"
	"strings"
)

// Split splits a command line as a shell would, without running one:
// spaces separate words, single quotes keep everything, double quotes and a
// backslash keep what follows. Nothing is expanded.
func Split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			// Inside double quotes a backslash escapes only these.
			if quote == '"' && !strings.ContainsRune("\"\\$`", r) {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("split command: a quote is not closed")
	}
	if escaped {
		return nil, errors.New("split command: it ends with a backslash")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
