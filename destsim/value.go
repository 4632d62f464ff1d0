package destsim

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/destkit/destkit/destsim/internal/store"
	"github.com/destkit/destkit/destsim/rpc"
	"github.com/destkit/destkit/internal/rawjson"
)

// canonical checks one value against the field's type and gives the
// text that is stored: strings in their one canonical encoding, so that
// "\u00e9" and "é" are the same value; everything else as it was sent. raw is
// valid JSON. problem is "" or a sentence for the record's error_message.
func (f *field) canonical(raw []byte) (value []byte, problem string) {
	if raw[0] == 'n' { // null is legal for every type
		return store.Null, ""
	}
	if !f.Array {
		return f.scalar(raw)
	}
	if raw[0] != '[' {
		return nil, fmt.Sprintf("field %q must be an array of %s, not %s", f.APIName, f.Type, kindOf(raw))
	}
	value = append(make([]byte, 0, len(raw)), '[')
	for i := skipSpace(raw, 1); raw[i] != ']'; {
		end := skipElement(raw, i)
		element := raw[i:end:end]
		if element[0] != 'n' {
			if element, problem = f.scalar(element); problem != "" {
				return nil, problem
			}
		}
		if len(value) > 1 {
			value = append(value, ',')
		}
		value = append(value, element...)
		if i = skipSpace(raw, end); raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return append(value, ']'), ""
}

// skipElement is store.SkipValue for text with white space in it.
func skipElement(raw []byte, i int) int {
	end := store.SkipValue(raw, i)
	return i + len(bytes.TrimRight(raw[i:end], " \t\r\n"))
}

// skipSpace gives the index of the next token; there is one.
func skipSpace(raw []byte, i int) int {
	for raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\r' || raw[i] == '\n' {
		i++
	}
	return i
}

// scalar is canonical for one value that is not null.
func (f *field) scalar(raw []byte) ([]byte, string) {
	switch f.Type {
	case rpc.TypeBoolean:
		if raw[0] != 't' && raw[0] != 'f' {
			return nil, f.wrongType(raw, "a boolean")
		}
		return raw, ""
	case rpc.TypeInteger:
		return f.integer(raw)
	case rpc.TypeFloat:
		if !isNumber(raw) {
			return nil, f.wrongType(raw, "a number")
		}
		if v, err := strconv.ParseFloat(string(raw), 64); err != nil || math.IsInf(v, 0) {
			return nil, fmt.Sprintf("field %q is out of the range of a float", f.APIName)
		}
		return raw, ""
	}
	if raw[0] != '"' {
		want := map[string]string{
			rpc.TypeDecimal: `a decimal in a string like "12.34"`, rpc.TypeDate: `a date like "2021-03-29"`,
			rpc.TypeDateTime: `a UTC time like "2021-03-29T16:32:23Z"`,
		}[f.Type]
		return nil, f.wrongType(raw, cmp.Or(want, "a string"))
	}
	return f.text(raw)
}

// isNumber looks at the first byte, which decides in valid JSON.
func isNumber(raw []byte) bool { return raw[0] == '-' || raw[0]-'0' <= 9 }

// integer takes a JSON number without fraction and exponent within 64 bits.
func (f *field) integer(raw []byte) ([]byte, string) {
	if !isNumber(raw) || bytes.ContainsAny(raw, ".eE") {
		return nil, f.wrongType(raw, "an integer")
	}
	// Up to 18 digits always fit; the rest is compared exactly, never as a float.
	if len(raw) > 18 {
		if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
			return nil, fmt.Sprintf("field %q is out of the range of a 64-bit integer", f.APIName)
		}
	}
	if string(raw) == "-0" {
		return []byte("0"), ""
	}
	return raw, ""
}

// text is canonical for the four types that are strings on the wire.
func (f *field) text(raw []byte) ([]byte, string) {
	if bytes.IndexByte(raw, '\\') >= 0 {
		text, err := rawjson.StringText(raw)
		if err != nil {
			return nil, fmt.Sprintf("field %q is not Unicode text: %v", f.APIName, err)
		}
		raw = store.Quote(text)
	}
	inner := raw[1 : len(raw)-1]
	switch f.Type {
	case rpc.TypeDecimal:
		if !isDecimal(inner) {
			return nil, f.wrongType(raw, "a decimal")
		}
	case rpc.TypeDate:
		if len(inner) != 10 || !isDate(inner) {
			return nil, f.wrongType(raw, "a calendar date of the years 0001 to 9999")
		}
	case rpc.TypeDateTime:
		if !isDateTime(inner) {
			return nil, f.wrongType(raw, "a UTC time with Z at its end")
		}
	case rpc.TypeString:
		if f.maxLength > 0 && len(inner) > f.maxLength {
			text, _ := rawjson.StringText(raw) // canonical text decodes
			if n := utf8.RuneCountInString(text); n > f.maxLength {
				return nil, fmt.Sprintf("field %q has %d characters, at most %d fit", f.APIName, n, f.maxLength)
			}
		}
	}
	return raw, ""
}

// wrongType is the sentence for a value of the wrong kind. It shows short texts
// of typed fields, where the mistake is in the spelling, but not free text,
// which may be data of users.
func (f *field) wrongType(raw []byte, want string) string {
	if raw[0] == '"' && f.Type != rpc.TypeString && len(raw) <= 48 {
		return fmt.Sprintf("field %q must be %s, not %s", f.APIName, want, raw)
	}
	return fmt.Sprintf("field %q must be %s, not %s", f.APIName, want, kindOf(raw))
}

// kindOf names the JSON type of a value.
func kindOf(raw []byte) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "a number with a fraction or exponent"
	}
	return "a number"
}

// isDecimal takes an optional sign, digits, an optional fraction and an
// optional exponent, of any length.
func isDecimal(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	whole, b := digits(b)
	if len(b) > 0 && b[0] == '.' {
		var fraction int
		if fraction, b = digits(b[1:]); fraction == 0 {
			return false
		}
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		if b = b[1:]; len(b) > 0 && (b[0] == '-' || b[0] == '+') {
			b = b[1:]
		}
		var exponent int
		if exponent, b = digits(b); exponent == 0 {
			return false
		}
	}
	return whole > 0 && len(b) == 0
}

// digits counts the leading digits and gives the rest.
func digits(b []byte) (int, []byte) {
	n := 0
	for n < len(b) && b[n]-'0' <= 9 {
		n++
	}
	return n, b[n:]
}

// twoDigits reads the number at b[i:i+2], -1 when it is something else.
func twoDigits(b []byte, i int) int {
	tens, ones := b[i]-'0', b[i+1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return 10*int(tens) + int(ones)
}

var monthDays = [...]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// isDate takes YYYY-MM-DD of the proleptic Gregorian calendar from year 1.
func isDate(b []byte) bool {
	if b[4] != '-' || b[7] != '-' {
		return false
	}
	century, rest, month, day := twoDigits(b, 0), twoDigits(b, 2), twoDigits(b, 5), twoDigits(b, 8)
	// time.Parse would do, at ten times the cost for each record.
	if century < 0 || rest < 0 || century+rest < 1 || month < 1 || month > 12 || day < 1 {
		return false
	}
	year := 100*century + rest
	last := monthDays[month]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		last = 29
	}
	return day <= last
}

// isDateTime takes YYYY-MM-DDThh:mm:ss, an optional fraction, and Z.
func isDateTime(b []byte) bool {
	if len(b) < 20 || !isDate(b[:10]) || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return false
	}
	hour, minute, second := twoDigits(b, 11), twoDigits(b, 14), twoDigits(b, 17)
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return false
	}
	rest := b[19:]
	if rest[0] == '.' {
		n, after := digits(rest[1:])
		if n == 0 {
			return false
		}
		rest = after
	}
	return string(rest) == "Z"
}
