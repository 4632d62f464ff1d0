package values

import (
	"slices"
	"strings"
	"unicode"
)

// special are the characters that end or change a key where it is put into something
// else: a URL, a pattern, a statement, a page, a path.
const special = `?#%&+;/\\'"<>_*[]`

// AlikeKeys says in what two keys differ that many a system takes for one; "" where they
// differ in more.
func AlikeKeys(a, b string) string {
	spaces := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	wild := func(s string) string { // an underscore stands for any character in a pattern
		return strings.Map(func(r rune) rune {
			if r == '_' || unicode.IsLetter(r) {
				return '_'
			}
			return r
		}, s)
	}
	switch {
	case a == b:
		return ""
	case strings.EqualFold(a, b):
		return "in case only"
	case spaces(a) == spaces(b):
		return "in spaces only"
	case Normalise(a) == Normalise(b):
		return "in their Unicode form only"
	case beforeSpecial(a, b) != 0:
		return "behind a " + string(beforeSpecial(a, b)) + " only"
	case strings.ContainsRune(a+b, '_') && wild(a) == wild(b):
		return "where one has _ only"
	}
	return ""
}

// beforeSpecial is the character up to which two keys are the same, 0 without one.
func beforeSpecial(a, b string) rune {
	for i, r := range a {
		if strings.ContainsRune(special, r) && r != '_' && len(b) > i && a[:i+1] == b[:i+1] {
			return r
		}
	}
	return 0
}

// SpecialIn is a character beyond letters, digits and hyphens that a key has and none of
// the others, 0 without one.
func SpecialIn(key string, others []string) rune {
	for _, r := range key {
		has := func(other string) bool { return strings.ContainsRune(other, r) }
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && !slices.ContainsFunc(others, has) {
			return r
		}
	}
	return 0
}
