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
	lines := FoldLines(text, TextWidth-len(lead))
	for i, line := range lines {
		lines[i] = foreign.Defuse(lead + line)
	}
	return foreign.Own(strings.Join(lines, "\n"))
}
