package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
)

// PrintJSON writes v indented.
func PrintJSON(w io.Writer, v any) error {
	if err := foreign.EncodeJSON(w, v, "  "); err != nil {
		return exit.Untested(fmt.Errorf("print json: %w", err))
	}
	return nil
}

// CompactJSON is a JSON value on one line, "" for null and for nothing.
func CompactJSON(value json.RawMessage) string {
	var b bytes.Buffer
	if len(value) == 0 || json.Compact(&b, value) != nil || b.String() == "null" {
		return ""
	}
	return b.String()
}

// TextWidth is where explanations are wrapped.
const TextWidth = 78

// Indent wraps text at TextWidth and puts two spaces before each line.
func Indent(text string) foreign.Own {
	text = foreign.Visible(text, ' ')
	lead := strings.Repeat(" ", 2+len(text)-len(strings.TrimLeft(text, " ")))
	lines := FoldLines(text, TextWidth-len(lead))
	for i, line := range lines {
		lines[i] = foreign.Defuse(lead + line)
	}
	return foreign.Own(strings.Join(lines, "\n"))
}

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
