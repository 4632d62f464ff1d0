// Package quantity writes numbers, rates and durations as people read them, on a
// terminal and on pages. Package plural has the nouns behind them.
package quantity

import (
	"fmt"
	"strconv"
	"time"
)

// Roughly is a duration as people say it.
func Roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Counted is a number with its thousands apart and its noun: "1 record", "12,000 records".
func Counted[N Integer](n N, noun string) string {
	return Grouped(int64(n)) + " " + Noun(n, noun)
}

// Grouped writes a number with its thousands apart.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Rate writes a rate: whole and in groups where it is large.
func Rate(v float64) string {
	if v >= 100 {
		return Grouped(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}

// Milliseconds writes milliseconds with three digits that count.
func Milliseconds(ms float64) string {
	switch {
	case ms >= 100:
		return Grouped(int64(ms + 0.5))
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.2f", ms)
}

// Time writes a time, given in milliseconds, with its unit.
func Time(ms float64) string {
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.4g s", ms/1000)
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g ms", ms)
}
