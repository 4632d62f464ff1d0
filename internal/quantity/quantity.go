// Package quantity writes numbers, rates and durations as people read them, on a
// terminal and on pages. Package plural has the nouns behind them.
package quantity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

// Integer is any count.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Count is "1 answer" or "2 answers"; noun is the singular, and may have words before
// it ("connection test").
func Count[N Integer](n N, noun string) string {
	number := strconv.FormatInt(int64(n), 10)
	if n > 0 {
		number = strconv.FormatUint(uint64(n), 10)
	}
	return number + " " + Noun(n, noun)
}

// Noun is noun as it follows n: "answer" after 1, else "answers".
func Noun[N Integer](n N, noun string) string {
	if n == 1 {
		return noun
	}
	return Plural(noun)
}

// Verb is the form of a verb that goes with n things: one behind 1, else many
// ("was" or "were").
func Verb[N Integer](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Plural is the plural of a noun: replies, batches, keys. Irregular nouns are not
// among those that the program counts.
func Plural(noun string) string {
	switch {
	case hasSuffix(noun, "s", "x", "z", "ch", "sh"):
		return noun + "es"
	case hasSuffix(noun, "y") && !hasSuffix(noun, "ay", "ey", "oy", "uy"):
		return strings.TrimSuffix(noun, "y") + "ies"
	}
	return noun + "s"
}

func hasSuffix(s string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(s, suffix) })
}

// mostNamed is how many names List spells out.
const mostNamed = 10

// List joins names for a sentence: the first ten, then "and 3 more".
func List(names []string) string {
	if len(names) > mostNamed {
		return strings.Join(names[:mostNamed], ", ") + " and " + strconv.Itoa(len(names)-mostNamed) + " more"
	}
	return strings.Join(names, ", ")
}
