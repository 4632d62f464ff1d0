package cell

import (
	"bytes"
	"encoding/json"
)

// JSON that is known to be valid, taken apart without decoding it.

// Members calls each for the members of an object, with the key as it reads and
// the value as it stands. The text must be a valid object.
func Members(object []byte, each func(key, value []byte) error) error {
	i := SkipBlank(object, 1)
	for object[i] != '}' {
		end := skipString(object, i)
		key := object[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			var text string
			if err := json.Unmarshal(object[i:end], &text); err != nil {
				return err
			}
			key = []byte(text)
		}
		i = SkipBlank(object, SkipBlank(object, end)+1) // the colon
		end = skipJSON(object, i)
		if err := each(key, object[i:end]); err != nil {
			return err
		}
		if i = SkipBlank(object, end); object[i] == ',' {
			i = SkipBlank(object, i+1)
		}
	}
	return nil
}

// SkipBlank gives the place of the next token.
func SkipBlank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
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

// endsLiteral are the bytes that end a number or a word.
var endsLiteral = [256]bool{',': true, ']': true, '}': true, ' ': true, '\t': true, '\r': true, '\n': true}

// skipJSON returns the byte after a value that starts at i.
func skipJSON(text []byte, i int) int {
	for depth := 0; ; {
		switch text[i] {
		case '"':
			i = skipString(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
			continue
		default:
			for i < len(text) && !endsLiteral[text[i]] {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
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

// appendRewritten writes a string with escapes anew.
func appendRewritten(dst, value []byte) []byte {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return append(dst, value...) // not reached with valid JSON
	}
	return AppendString(dst, text)
}
