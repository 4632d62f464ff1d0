package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

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

// median of what was measured; 0 of nothing.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

// spreadOf makes a row of values.
func spreadOf(values []float64) row {
	// A median without its spread would hide how far it can be trusted.
	if len(values) == 0 {
		return row{absent: "nothing was measured"}
	}
	return row{shown: median(values), low: slices.Min(values), high: slices.Max(values), runs: len(values)}
}

// ratioOf is the ratio of two medians, with the spread of the ratios of the
// rounds: both sides of a round were measured right after each other.
func ratioOf(x, y []float64) row {
	var each []float64
	for i := range min(len(x), len(y)) {
		if y[i] > 0 {
			each = append(each, x[i]/y[i])
		}
	}
	r := spreadOf(each)
	if r.absent == "" {
		r.shown = median(x) / median(y)
	}
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
	if r.absent != "" {
		return "–"
	}
	if r.runs < 2 {
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
		return "missed by " + r.measured()
	}
	if r.is == atMost && r.shown > 2*r.want {
		return fmt.Sprintf("missed by a factor of %s", digits(r.shown/r.want))
	}
	return fmt.Sprintf("missed by %.1f %%", 100*math.Abs(r.shown-r.want)/r.want)
}

// digits writes three or four digits that count.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1000:
		return fmt.Sprintf("%.0f", v)
	case a >= 1000:
		return grouped(int64(math.Round(v)))
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.1 && math.Abs(v*100-math.Round(v*100)) < 1e-9, a >= 2:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// grouped puts commas between thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
