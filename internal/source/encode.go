package source

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/destkit/destkit/server/api"
)

// Values as JSON text. The forms are fixed for good: keys compare as these
// bytes, and the states of syncs are kept by them.

var jsonNull = []byte("null")

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string with the fewest escapes, as PostgreSQL's
// to_json does. Bytes that are not UTF-8 become api.LostByte.
func appendString[T string | []byte](dst []byte, v T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(v); {
		c := v[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = api.AppendEscape(append(dst, v[start:i]...), c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(string(v[i:min(i+utf8.UTFMax, len(v))]))
		if r == utf8.RuneError && size == 1 {
			dst = append(append(dst, v[start:i]...), api.LostByte...)
			start = i + 1
		}
		i += size
	}
	return append(append(dst, v[start:]...), '"')
}

// appendFloat writes the shortest number that reads back the same; what JSON
// has no number for is a string. bits is 32 or 64.
func appendFloat(dst []byte, v float64, bits int) []byte {
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

// appendBinary writes bytes in base64.
func appendBinary(dst, v []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	return append(dst, '"')
}

// appendBool writes true or false.
func appendBool(dst []byte, v bool) []byte { return strconv.AppendBool(dst, v) }
