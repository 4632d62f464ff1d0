package cell

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/rawjson"
)

// Values as JSON text. The forms are fixed for good: keys compare as these
// bytes, and the states of syncs are kept by them.

var Null = []byte("null")

const hexDigits = "0123456789abcdef"

// AppendString writes a JSON string with the fewest escapes, as PostgreSQL's
// to_json does. Bytes that are not UTF-8 become rawjson.LostByte.
func AppendString[T string | []byte](dst []byte, v T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(v); {
		c := v[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = rawjson.AppendEscape(append(dst, v[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(v[i:min(i+utf8.UTFMax, len(v))]))
		if r == utf8.RuneError && size == 1 {
			dst = append(append(dst, v[start:i]...), rawjson.LostByte...)
			start = i + 1
		}
		i += size
	}
	return append(append(dst, v[start:]...), '"')
}

// AppendFloat writes the shortest number that reads back the same; values
// without a JSON number are strings. bits is 32 or 64.
func AppendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, v, format, -1, bits)
}

// AppendBinary writes bytes in base64.
func AppendBinary(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	return append(dst, '"')
}

// AppendBool writes true or false.
func AppendBool(dst []byte, v bool) []byte { return strconv.AppendBool(dst, v) }

// AppendEmbedded writes JSON that a column holds; text that is none is a string.
func AppendEmbedded(dst, text []byte) []byte {
	if !json.Valid(text) {
		return AppendString(dst, text)
	}
	return AppendCanonical(dst, text)
}

// AppendUUID writes 16 bytes as a UUID.
func AppendUUID(dst, b []byte) []byte {
	if len(b) != 16 {
		return AppendBinary(dst, b)
	}
	dst = append(dst, '"')
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, '"')
}

// JSON that is known to be valid, taken apart without decoding it.

// Members calls each for the members of an object, with the decoded key and the
// raw value. The text must be a valid object in UTF-8.
func Members(object []byte, each func(key, value []byte) error) error {
	walk, _ := rawjson.WalkObject(object)
	for key, value, ok := walk.Next(); ok; key, value, ok = walk.Next() {
		if err := each(key, value); err != nil {
			return err
		}
	}
	return nil
}

// skipString returns the byte after a string that starts at i.
func skipString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// AppendCanonical writes a valid JSON value in the one form that keys compare
// in: without blanks, strings with the fewest escapes, numbers as they are.
func AppendCanonical(dst, value []byte) []byte {
	for i := 0; i < len(value); {
		switch c := value[i]; c {
		case ' ', '\t', '\n', '\r':
			i++
		case '"':
			end := skipString(value, i)
			if bytes.IndexByte(value[i:end], '\\') < 0 {
				dst = append(dst, value[i:end]...)
			} else {
				dst = appendRewritten(dst, value[i:end])
			}
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// appendRewritten rewrites a string with escapes.
func appendRewritten(dst, value []byte) []byte {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return append(dst, value...) // not reached with valid JSON
	}
	return AppendString(dst, text)
}
