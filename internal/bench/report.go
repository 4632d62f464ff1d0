package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/destkit/destkit/internal/quantity"
)

// report is all that was measured.
type report struct {
	rows    []row
	machine string
	options options
	took    time.Duration
}

// table is the table in Markdown; its columns are as wide as their content, so
// that it is read as it is printed, too.
func (r report) table() string {
	lines := [][]string{{"part", "goal", "measured (median)", "spread", "met", "notes"}, {"", "", "", "", "", ""}}
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
	var out strings.Builder
	for n, line := range lines {
		filling := " "
		if n == 1 {
			filling = "-"
		}
		for i, cell := range line {
			width := 0
			for _, other := range lines {
				width = max(width, len([]rune(other[i])))
			}
			fmt.Fprintf(&out, "|%s%s%s%s", filling, cell, strings.Repeat(filling, width-len([]rune(cell))), filling)
		}
		out.WriteString("|\n")
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
	return fmt.Sprintf("%d goals met, %d missed, %d not measured.", met, missed, absent)
}

// text is what is printed, and what is written into the page.
func (r report) text() string {
	return fmt.Sprintf("Measured on %s in %s, in one session: medians of %d runs of %d s each, contenders alternating.\n%s.\n%s\n\n%s",
		time.Now().UTC().Format("2 January 2006"), r.took.Round(time.Second), r.options.rounds, r.options.seconds, r.machine, r.sum(), r.table())
}

// between is what a run of it writes; everything else of the page is kept.
var between = regexp.MustCompile(`(?s)(<!-- measured: written by make bench UPDATE=1 -->\n).*(\n<!-- end of what is written -->)`)

// write puts the table into a page, between the marks.
func (r report) write(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("update the page: %w", err)
	}
	if !between.Match(page) {
		return fmt.Errorf("update %s: the lines between which the table is written are not in it", path)
	}
	page = between.ReplaceAllFunc(page, func(old []byte) []byte {
		marks := between.FindSubmatch(old)
		return []byte(string(marks[1]) + "\n" + r.text() + string(marks[2]))
	})
	if err := os.WriteFile(path, page, 0o644); err != nil {
		return fmt.Errorf("update the page: %w", err)
	}
	return nil
}

var processor = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

// thisMachine is what was measured on. The kernel matters as much as the processor: most
// of a small request is its work.
func thisMachine() string {
	kernel, _ := exec.Command("uname", "-sr").Output()
	name := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if m := processor.FindSubmatch(text); m != nil {
			name = string(m[1])
		}
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", name, runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version())
}

// row is one line of the table: a goal and what was measured.
type row struct {
	wanted
	// shown is the median of single runs, unless it is of medians (a ratio); low and
	// high are the spread.
	shown, low, high float64
	runs             int
	absent           string // why there is no figure
	note             string
}

// median of what was measured.
func median(list []float64) float64 {
	sorted, n := slices.Sorted(slices.Values(list)), len(list)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spreadOf makes a row of values. A median without its spread would hide how far it can
// be trusted.
func spreadOf(values []float64) row {
	return row{shown: median(values), low: slices.Min(values), high: slices.Max(values), runs: len(values)}
}

// ratioOf is the ratio of two medians, with the spread of the ratios of the
// rounds: both sides of a round were measured right after each other.
func ratioOf(x, y []float64) row {
	var each []float64
	for i := range min(len(x), len(y)) {
		each = append(each, x[i]/y[i])
	}
	r := spreadOf(each)
	r.shown = median(x) / median(y)
	return r
}

// met reports whether the goal is.
func (r row) met() bool {
	if r.is == atMost {
		return r.shown <= r.want
	}
	return r.shown >= r.want
}

func (r row) measured() string {
	if r.absent != "" {
		return "–"
	}
	return strings.TrimSpace(digits(r.shown) + " " + r.unit)
}

func (r row) spread() string {
	switch {
	case r.absent != "":
		return "–"
	case r.runs < 2:
		return "one run"
	}
	return digits(r.low) + " to " + digits(r.high)
}

// verdict says met, or by how much not.
func (r row) verdict() string {
	switch {
	case r.absent != "":
		return r.absent
	case r.is == beside:
		return ""
	case r.met():
		return "met"
	// There is no share of nothing.
	case r.want == 0:
		return "missed"
	}
	return fmt.Sprintf("missed by %.1f %%", 100*math.Abs(r.shown-r.want)/r.want)
}

// digits writes three digits that count, of large numbers all with commas.
func digits(v float64) string {
	if math.Abs(v) >= 1000 {
		return quantity.Grouped(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
