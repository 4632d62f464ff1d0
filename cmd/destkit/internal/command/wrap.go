package command

import (
	"strings"

	"github.com/destkit/destkit/internal/foreign"
)

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
