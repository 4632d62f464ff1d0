package mapping

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// The values of field_normalization (spec 2.6).
const (
	StartCase   = "start_case"
	LowerCase   = "lower_case"
	UpperCase   = "upper_case"
	CamelCase   = "camel_case"
	SnakeCase   = "snake_case"
	SourceNames = "match_source_names"
)

var normalizations = []string{StartCase, LowerCase, UpperCase, CamelCase, SnakeCase, SourceNames}

// NormalizeName gives the name of the destination field for a column under a
// field_normalization: "first_name" becomes "First Name",
// "first name", "FIRST NAME", "firstName" or "first_name". match_source_names,
// "" and a name without letters or digits keep the column's name.
func NormalizeName(column, normalization string) string {
	words := nameWords(column)
	if len(words) == 0 || !slices.Contains(normalizations, normalization) {
		return column
	}
	switch normalization {
	case StartCase:
		return strings.Join(capitalized(words), " ")
	case LowerCase:
		return strings.ToLower(strings.Join(words, " "))
	case UpperCase:
		return cases.Upper(language.Und).String(strings.Join(words, " ")) // it knows ß
	// The first word is small as a whole: HTTPServer becomes httpServer.
	case CamelCase:
		joined := capitalized(words)
		joined[0] = strings.ToLower(words[0])
		return strings.Join(joined, "")
	case SnakeCase:
		return strings.ToLower(strings.Join(words, "_"))
	}
	return column
}

// nameWords splits at everything that is no letter or digit, at a capital after
// a small letter or digit (beepBoop), and before the last capital of a row of
// capitals that a small letter follows (HTTPServer).
func nameWords(name string) []string {
	var words []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		// Marks belong to the letter before them.
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			end()
			continue
		}
		if unicode.IsUpper(r) && i > 0 {
			before := runes[i-1]
			smallNext := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if unicode.IsLower(before) || unicode.IsDigit(before) || unicode.IsUpper(before) && smallNext {
				end()
			}
		}
		word = append(word, r)
	}
	end()
	return words
}

// capitalized makes the first character of each word large; ToTitle knows
// letters such as ǆ.
func capitalized(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		runes := []rune(strings.ToLower(word))
		runes[0] = unicode.ToTitle(runes[0])
		out[i] = string(runes)
	}
	return out
}
