package main

import (
	"fmt"
	"strings"
	"time"
)

// report is all that was measured.
type report struct {
	rows    []row
	machine machine
	options options
	missing []string
	// versions of the peers, with their names.
	versions []string
	took     time.Duration
}

// table is the table in Markdown; its columns are as wide as their content, so
// that it is read as it is printed, too.
func (r report) table() string {
	lines := [][]string{{"part", "goal", "measured (median)", "spread", "met", "notes"}}
	part := ""
	for _, row := range r.rows {
		// The name of a part stands once.
		shown := row.part
		if shown == part {
			shown = ""
		}
		part = row.part
		lines = append(lines, []string{shown, row.goal, row.measured(), row.spread(), row.verdict(), row.note})
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var out strings.Builder
	for n, line := range lines {
		for i, cell := range line {
			fmt.Fprintf(&out, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		out.WriteString("|\n")
		if n == 0 {
			for i := range line {
				out.WriteString("|" + strings.Repeat("-", widths[i]+2))
			}
			out.WriteString("|\n")
		}
	}
	return out.String()
}

// sum says how many goals are met.
func (r report) sum() string {
	met, missed, absent := 0, 0, 0
	for _, row := range r.rows {
		switch {
		case row.absent != "":
			absent++
		case row.is == beside:
		case row.met():
			met++
		default:
			missed++
		}
	}
	text := fmt.Sprintf("%d goals met, %d missed, %d not measured.", met, missed, absent)
	if len(r.missing) > 0 {
		text += " Peers that are not installed (make bench-peers): " + strings.Join(r.missing, ", ") + "."
	}
	return text
}

// text is what is printed.
func (r report) text() string {
	return "\n" + r.table() + "\n" + r.sum() + "\n" + r.machine.text() + "\n"
}
