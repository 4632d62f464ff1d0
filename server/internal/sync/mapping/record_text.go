package mapping

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/destkit/destkit/internal/rawjson"
)

// Arrays and texts of JSON, taken apart and written without decoding them.

var errArray = errors.New("the array is not valid JSON")

// appendArray writes an array item by item; text that holds an array as JSON is
// one too.
func appendArray(dst, raw []byte, w wire) ([]byte, error) {
	switch {
	case isNullText(raw):
		return append(dst, nullText...), nil
	case raw[0] != '[' || w == wireAny:
		return castSlowly(dst, raw, w, w != wireAny)
	}
	dst = append(dst, '[')
	i, n := afterBlank(raw, 1), 0
	for i < len(raw) && raw[i] != ']' {
		end := afterValue(raw, i)
		if end <= i {
			return dst, errArray
		}
		if n > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendScalar(dst, raw[i:end], w, false); err != nil {
			return dst, fmt.Errorf("item %d: %w", n, err)
		}
		n++
		if i = afterBlank(raw, end); i < len(raw) && raw[i] == ',' {
			i = afterBlank(raw, i+1)
		}
	}
	if i >= len(raw) {
		return dst, errArray
	}
	return append(dst, ']'), nil
}

func afterBlank(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// afterValue is the place behind the JSON value at i; i or less when it has no
// end.
func afterValue(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			i++
		case '[', '{':
			depth++
			i++
		case ']', '}':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return 0
			}
			i++
			continue
		default:
			for i < len(raw) && bytes.IndexByte(endOfWord, raw[i]) < 0 {
				i++
			}
		}
		if depth <= 0 {
			if depth < 0 || i > len(raw) {
				return 0
			}
			return i
		}
	}
	return 0
}

var endOfWord = []byte(",]}: \t\r\n")

// appendText writes a JSON string with the escapes that sources use, so that
// keys have one form. Bytes that are not UTF-8 become U+FFFD.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, text[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			dst = rawjson.AppendEscape(append(dst, text[from:i]...), c)
			from = i + 1
		}
		i++
	}
	return append(append(dst, text[from:]...), '"')
}

// AppendCanonical appends a JSON value of an identifier in the one form that
// keys have: strings with the fewest escapes, everything else as it stands. What
// a destination answers is brought into it before it is compared with a key.
func AppendCanonical(dst, raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' || bytes.IndexByte(raw, '\\') < 0 {
		return append(dst, raw...)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return append(dst, raw...)
	}
	return appendText(dst, text)
}
