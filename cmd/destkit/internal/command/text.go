package command

import (
	"bytes"
	"encoding/json"
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
	var lines []string
	line := lead
	for word := range strings.FieldsSeq(text) {
		if line != lead && len([]rune(line))+1+len([]rune(word)) > TextWidth {
			lines = append(lines, line)
			line = lead
		}
		if line != lead {
			line += " "
		}
		line += word
	}
	lines = append(lines, line)
	for i := range lines {
		lines[i] = foreign.Defuse(lines[i])
	}
	return foreign.Own(strings.Join(lines, "\n"))
}
