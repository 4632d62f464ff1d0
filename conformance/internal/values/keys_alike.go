package values

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/destkit/destkit/internal/rawjson"
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

// Normalise brings a text into Unicode form NFC, to recognise a key that an
// endpoint has normalised.
func Normalise(s string) string { return norm.NFC.String(s) }

// Quote writes a JSON string without HTML escapes.
func Quote(s string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return json.RawMessage(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Text is a JSON string decoded, and the JSON text of any other value. Halves of
// surrogate pairs stay apart.
func Text(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return string(raw)
	}
	text, _ := rawjson.Unescape(nil, raw[1:len(raw)-1])
	return string(text)
}
