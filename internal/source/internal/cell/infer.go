package cell

import (
	"strings"
	"time"

	"github.com/destkit/destkit/server/api"
)

// Inference finds the kind of a column from the texts of its first values. A
// column is of a kind when all of them are: one word among numbers makes it a
// string. Values are not converted by it: later values of another kind stay
// readable as text.
type Inference struct {
	seen int
	not  [len(inferred)]bool
}

// inferred are the kinds tried, the narrower first.
var inferred = [...]struct {
	kind api.Kind
	is   func(string) bool
}{
	{api.KindBoolean, IsBoolean},
	{api.KindInteger, IsInteger},
	{api.KindDecimal, IsDecimal},
	{api.KindFloat, IsFloat},
	{api.KindDate, IsDate},
	{api.KindDateTime, IsMoment},
}

// Add looks at a value; an empty one is ignored.
func (f *Inference) Add(value string) {
	if value == "" {
		return
	}
	f.seen++
	for i := range inferred {
		if !f.not[i] && !inferred[i].is(value) {
			f.not[i] = true
		}
	}
}

// Kind is the first kind that all values have, string when none has.
func (f *Inference) Kind(of ...api.Kind) api.Kind {
	if f.seen == 0 {
		return api.KindString
	}
	for i := range inferred {
		if f.not[i] {
			continue
		}
		for _, k := range of {
			if k == inferred[i].kind {
				return k
			}
		}
	}
	return api.KindString
}

// Every are the kinds that a text without types may have.
var Every = []api.Kind{api.KindBoolean, api.KindInteger, api.KindDecimal, api.KindFloat, api.KindDate, api.KindDateTime}

// Texts of numbers follow JSON, so that 007 and +1 stay strings: they are codes
// and telephone numbers more often than numbers.

// IsBoolean: small letters only, since True may as well be a name.
func IsBoolean(s string) bool { return s == "true" || s == "false" }

// IsInteger: -0 is none, as an integer would lose its sign.
func IsInteger(s string) bool {
	n, rest := numberPart(s)
	return n && rest == "" && s != "-0"
}

// IsDecimal takes a point with digits on both sides.
func IsDecimal(s string) bool {
	ok, rest := numberPart(s)
	if !ok {
		return false
	}
	return rest == "" || rest[0] == '.' && digits(rest[1:]) == len(rest)-1 && len(rest) > 1
}

// IsFloat takes an exponent as well.
func IsFloat(s string) bool {
	ok, rest := numberPart(s)
	if !ok {
		return false
	}
	if len(rest) > 0 && rest[0] == '.' {
		n := digits(rest[1:])
		if n == 0 {
			return false
		}
		rest = rest[1+n:]
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && digits(rest) == len(rest)
}

// numberPart cuts the whole part of a JSON number off.
func numberPart(s string) (ok bool, rest string) {
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	n := digits(s)
	if n == 0 || n > 1 && s[0] == '0' {
		return false, s
	}
	return true, s[n:]
}

// digits counts digits at the start of a text.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// IsDate takes a day that exists, in the one form that sorts.
func IsDate(s string) bool {
	if len(s) != len(time.DateOnly) {
		return false
	}
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

// IsMoment takes ISO 8601 with T or a blank, with or without a zone.
func IsMoment(s string) bool {
	if len(s) < len("2006-01-02T15:04:05") || s[4] != '-' || s[10] != 'T' && s[10] != ' ' {
		return false
	}
	text := s[:10] + "T" + s[11:]
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return true
	}
	_, err := time.Parse("2006-01-02T15:04:05.999999999", text)
	return err == nil
}

// kindWord maps a word in a declared type to the kind of its values.
type kindWord struct {
	word  string
	whole bool // the type's name is this word, not merely holds it
	kind  api.Kind
}

// kindWords are tried in their order. SQLite takes any word for a type, so this
// knows the words of many databases; those of SQLite's own affinity rules come
// after the words that contain them, such as POINT and INT.
var kindWords = []kindWord{
	{"ARRAY", false, api.KindArray}, {"[]", false, api.KindArray}, {"LIST", true, api.KindArray},
	{"BOOL", false, api.KindBoolean}, {"BIT", true, api.KindBoolean},
	{"DATETIME", false, api.KindDateTime}, {"TIMESTAMP", false, api.KindDateTime},
	{"DATE", true, api.KindDate},
	{"TIME", false, api.KindString}, {"INTERVAL", false, api.KindString}, {"POINT", false, api.KindString},
	{"JSON", false, api.KindObject}, {"VARIANT", true, api.KindObject}, {"OBJECT", true, api.KindObject},
	{"STRUCT", false, api.KindObject}, {"RECORD", true, api.KindObject}, {"MAP", true, api.KindObject},
	{"INT", false, api.KindInteger}, {"SERIAL", false, api.KindInteger},
	{"CHAR", false, api.KindString}, {"CLOB", false, api.KindString}, {"TEXT", false, api.KindString},
	{"STRING", true, api.KindString}, {"UUID", true, api.KindString}, {"ENUM", false, api.KindString},
	{"BLOB", false, api.KindBinary}, {"BINARY", false, api.KindBinary}, {"BYTEA", true, api.KindBinary}, {"BYTES", true, api.KindBinary},
	{"REAL", false, api.KindFloat}, {"FLOA", false, api.KindFloat}, {"DOUB", false, api.KindFloat},
	{"DEC", false, api.KindDecimal}, {"NUM", false, api.KindDecimal}, {"MONEY", false, api.KindDecimal},
}

// Declared reads a declared type such as "varchar(20)". A number with a
// precision and no places after the point is an integer.
func Declared(declared string) api.Kind {
	name := strings.ToUpper(strings.TrimSpace(declared))
	word, arguments, _ := strings.Cut(name, "(")
	word = strings.TrimSpace(word)
	for _, k := range kindWords {
		if k.whole && word != k.word || !strings.Contains(word, k.word) {
			continue
		}
		if k.kind == api.KindDecimal && strings.HasSuffix(strings.ReplaceAll(arguments, " ", ""), ",0)") {
			return api.KindInteger
		}
		return k.kind
	}
	return api.KindAny
}
