package quantity

import (
	"strconv"
	"strings"
)

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

// Noun is noun as it stands behind n: "answer" behind 1, else "answers".
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
	for _, suffix := range suffixes {
		if strings.HasSuffix(s, suffix) {
			return true
		}
	}
	return false
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
