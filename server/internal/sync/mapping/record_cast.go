package mapping

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/destkit/destkit/internal/rawjson"
)

var nullText = []byte("null")

func isNullText(raw []byte) bool { return len(raw) == 0 || raw[0] == 'n' }

// appendScalar writes a raw JSON value in a type of the wire. Most values have
// it already and are copied; the others go through Cast.
func appendScalar(dst, raw []byte, w wire, exact bool) ([]byte, error) {
	if isNullText(raw) {
		return append(dst, nullText...), nil
	}
	switch c := raw[0]; w {
	case wireAny:
		return append(dst, raw...), nil
	case wireString:
		switch {
		case c == '"':
			return append(dst, raw...), nil
		case c == 't' || c == 'f' || isPlainNumber(raw):
			return quoted(dst, raw), nil
		}
	case wireInteger:
		if isWhole(raw) {
			return append(dst, raw...), nil
		}
	case wireBoolean:
		if c == 't' || c == 'f' {
			return append(dst, raw...), nil
		}
	case wireFloat:
		// A source of floats has written their shortest text already; counting
		// digits would send most of them through big numbers.
		if exact && (c == '-' || c-'0' <= 9) || isShortFloat(raw) {
			return append(dst, raw...), nil
		}
	case wireDecimal:
		if isPlainNumber(raw) {
			return quoted(dst, raw), nil
		}
		if n := len(raw); c == '"' && n > 2 && isDecimal(raw[1:n-1]) {
			return append(dst, raw...), nil
		}
	case wireDate:
		if len(raw) == 12 && c == '"' && raw[11] == '"' && isDay(raw[1:11]) {
			return append(dst, raw...), nil
		}
	case wireDateTime:
		if isMoment(raw) {
			return append(dst, raw...), nil
		}
	}
	return castSlowly(dst, raw, w, false)
}

func quoted(dst, raw []byte) []byte { return append(append(append(dst, '"'), raw...), '"') }

func castSlowly(dst, raw []byte, w wire, array bool) ([]byte, error) {
	value, err := decodeValue(raw)
	if err != nil {
		return dst, err
	}
	return appendCast(dst, value, w, array)
}

// appendCast writes a decoded value in a type of the wire.
func appendCast(dst []byte, value any, w wire, array bool) ([]byte, error) {
	if w != wireAny {
		var err error
		if value, err = Cast(value, wireNames[w], array); err != nil {
			return dst, err
		}
	}
	switch v := value.(type) {
	case nil:
		return append(dst, nullText...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case json.Number:
		return append(dst, v...), nil
	case string:
		return rawjson.AppendString(dst, v), nil
	}
	text, err := marshalPlain(value)
	return append(dst, text...), err
}

// The looks below only ever say yes to text that Cast would give back unchanged,
// so that a wrong no costs time and never a value.

// isWhole reports an integer that needs no work.
func isWhole(raw []byte) bool {
	digits := raw
	if digits[0] == '-' {
		if digits = digits[1:]; len(digits) == 0 || digits[0] == '0' {
			return false
		}
	}
	for _, c := range digits {
		if c-'0' > 9 {
			return false
		}
	}
	return len(digits) < longestNumber
}

// isPlainNumber reports a number without an exponent.
func isPlainNumber(raw []byte) bool {
	if raw[0] != '-' && raw[0]-'0' > 9 || len(raw) > longestNumber || raw[len(raw)-1]-'0' > 9 {
		return false
	}
	points := 0
	for _, c := range raw[1:] {
		if c == '.' {
			points++
		} else if c-'0' > 9 {
			return false
		}
	}
	return points <= 1
}

// isDecimal reports the text of a decimal in its one form: without a sign
// that needs care and without zeros in front.
func isDecimal(text []byte) bool {
	return text[0]-'0' <= 9 && (text[0] != '0' || len(text) == 1 || text[1] == '.') && isPlainNumber(text)
}

// floatDigits are always kept by a float, whatever the number.
const floatDigits = 15

// isShortFloat reports a number that a float keeps, in its shortest form.
func isShortFloat(raw []byte) bool {
	if len(raw) > floatDigits || !isPlainNumber(raw) {
		return false
	}
	return bytes.IndexByte(raw, '.') < 0 || raw[len(raw)-1] != '0'
}

// isDay reports a date. A text of the fixed form is not put on the heap.
func isDay(day []byte) bool {
	return isMoment(append(append(append(make([]byte, 0, 22), '"'), day...), `T00:00:00Z"`...))
}

// isMoment reports "2021-03-29T16:32:23Z", with a fraction that does not end in 0.
func isMoment(raw []byte) bool {
	n := len(raw)
	if n < 22 || n > 32 || raw[0] != '"' || raw[n-1] != '"' || raw[n-2] != 'Z' || n > 22 && raw[n-3] == '0' {
		return false
	}
	var moment time.Time
	return moment.UnmarshalText(raw[1:n-1]) == nil
}
