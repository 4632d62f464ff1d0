package bench

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

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
		shown := row.part
		if shown == part { // it appears once
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
				width = max(width, utf8.RuneCountInString(other[i]))
			}
			fmt.Fprintf(&out, "|%s%s%s%s", filling, cell, strings.Repeat(filling, width-utf8.RuneCountInString(cell)), filling)
		}
		out.WriteString("|\n")
	}
	return out.String()
}

// sum counts the goals that are met.
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

// text is printed, and written into the page.
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
		return err
	}
	if !between.Match(page) {
		return fmt.Errorf("update %s: the lines between which the table is written are not in it", path)
	}
	page = between.ReplaceAllFunc(page, func(old []byte) []byte {
		marks := between.FindSubmatch(old)
		return []byte(string(marks[1]) + "\n" + r.text() + string(marks[2]))
	})
	return os.WriteFile(path, page, 0o644)
}

var processor = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

// thisMachine describes the measured machine. The kernel matters as much as the
// processor: most of a small request is its work.
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

// row is one line of the table: a goal and its measurement.
type row struct {
	wanted
	// shown is the median of single runs, unless it is of medians (a ratio); low and
	// high are the spread.
	shown, low, high float64
	runs             int
	absent           string // why there is no figure
	note             string
}

// median of measurements.
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

// verdict is "met", or by how much not.
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

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		name                      string
		row                       row
		measured, spread, verdict string
	}{
		{"median and spread", spreadOf([]float64{3, 1, 2}).of("p", "g", "×").atLeast(2), "2 ×", "1 to 3", "met"},
		{"too little", spreadOf([]float64{0.9, 0.9}).of("p", "g", "×").atLeast(1), "0.9 ×", "0.9 to 0.9", "missed by 10.0 %"},
		{"too much", spreadOf([]float64{2.5}).of("p", "g", "ms").most(2), "2.5 ms", "one run", "missed by 25.0 %"},
		{"far too much", spreadOf([]float64{2000}).of("p", "g", "ms").most(2), "2,000 ms", "one run", "missed by 99900.0 %"},
		{"none allowed", spreadOf([]float64{3}).of("p", "g", "").most(0), "3", "one run", "missed"},
		{"just enough", spreadOf([]float64{0.999}).of("p", "g", "").atLeast(0.999), "0.999", "one run", "met"},
		{"beside", spreadOf([]float64{51234.4}).of("p", "g", "requests/s"), "51,234 requests/s", "one run", ""},
		{"missing", row{absent: "wrk is not installed"}, "–", "–", "wrk is not installed"},
		{"ratio of medians", ratioOf([]float64{10, 20, 30}, []float64{10, 10, 20}).of("p", "g", "×").atLeast(2), "2 ×", "1 to 2", "met"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.measured, c.row.measured())
			require.Equal(t, c.spread, c.row.spread())
			require.Equal(t, c.verdict, c.row.verdict())
		})
	}
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 1e-9)
}

func someReport() report {
	return report{
		rows: []row{
			spreadOf([]float64{1, 2, 3}).of("load", "≥ 1 × wrk", "×").atLeast(1).with("wrk: 5 requests/s"),
			spreadOf([]float64{9}).of("load", "p99 ≤ 2 ms", "ms").most(2),
			row{absent: "prism is not installed"}.of("REST", "≥ 10 × Prism", "×"),
			spreadOf([]float64{5}).of("REST", "requests per second", "requests/s"),
		},
		machine: "Some CPU, 2 cores, Linux 6.18, go1.26", options: options{seconds: 10, rounds: 3},
		took: 90 * time.Second,
	}
}

func TestTheTableIsPrinted(t *testing.T) {
	require.Equal(t, `| part | goal                | measured (median) | spread  | met                    | notes             |
|------|---------------------|-------------------|---------|------------------------|-------------------|
| load | ≥ 1 × wrk           | 2 ×               | 1 to 3  | met                    | wrk: 5 requests/s |
|      | p99 ≤ 2 ms          | 9 ms              | one run | missed by 350.0 %      |                   |
| REST | ≥ 10 × Prism        | –                 | –       | prism is not installed |                   |
|      | requests per second | 5 requests/s      | one run |                        |                   |
`, someReport().table())
	require.Contains(t, someReport().text(), "Some CPU, 2 cores, Linux 6.18, go1.26.\n1 goals met, 1 missed, 1 not measured.\n")
}

// Hand-written text around the table stays.
func TestThePageKeepsWhatIsWrittenByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "performance.md")
	require.NoError(t, os.WriteFile(path, []byte("# Performance\n\n"+"<!-- measured: written by make bench UPDATE=1 -->\n\n<!-- end of what is written -->"+"\n\n## How it is measured\n"), 0o600))
	require.NoError(t, someReport().write(path))
	first, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(first), "<!-- end of what is written -->\n\n## How it is measured\n")
	require.Contains(t, string(first), "missed by 350.0 %")
	require.NoError(t, os.WriteFile(path, append(first, "\n## What is missed\n\nThe p99, by the queue.\n"...), 0o600))
	better := someReport()
	better.rows = better.rows[:1]
	require.NoError(t, better.write(path))
	second, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(second), "The p99, by the queue.")
	require.NotContains(t, string(second), "missed by 350.0 %")
	require.Equal(t, 1, strings.Count(string(second), "<!-- measured"))
	require.NoError(t, os.WriteFile(path, []byte("# nothing\n"), 0o600))
	require.ErrorContains(t, better.write(path), "are not in it")
}

// Helpers that make rows of tests.

func (r row) of(part, goal, unit string) row {
	r.part, r.goal, r.unit, r.is = part, goal, unit, beside
	return r
}
func (r row) atLeast(want float64) row { r.want, r.is = want, atLeast; return r }
func (r row) most(want float64) row    { r.want, r.is = want, atMost; return r }
func (r row) with(note string) row     { r.note = note; return r }
