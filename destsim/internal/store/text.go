package store

import (
	"bytes"

	"github.com/destkit/destkit/internal/rawjson"
)

// A row's data is one canonical JSON object without white space: names as
// rawjson.AppendString writes them, values in their one canonical form. Equal
// values therefore have equal bytes, and the functions here may trust the text.

// SkipValue gives the index after the JSON value at b[i]; b is known to be
// valid JSON without white space between its tokens.
func SkipValue(b []byte, i int) int {
	switch b[i] {
	case '"':
		return skipTrustedString(b, i)
	case '{', '[':
		depth := 0
		for ; i < len(b); i++ {
			switch b[i] {
			case '"':
				i = skipTrustedString(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return i
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	return i
}

// skipTrustedString gives the index after the closing quote: the first quote
// with an even number of backslashes before it.
func skipTrustedString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end := i + n
		slashes := 0
		for end-1-slashes >= i && b[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end + 1
		}
		i = end + 1
	}
}

// EachMember walks a row's data; name is quoted. It stops when fn says false.
func EachMember(data []byte, fn func(name, value []byte) bool) {
	for i := 1; i < len(data)-1; {
		end := skipTrustedString(data, i)
		after := SkipValue(data, end+1)
		if !fn(data[i:end], data[end+1:after]) {
			return
		}
		i = after + 1 // past the comma or the brace
	}
}

// Member gives the value of the field with that quoted name in a row's data.
func Member(data, quoted []byte) ([]byte, bool) {
	start, end, ok := memberAt(data, quoted)
	if !ok {
		return nil, false
	}
	return data[start:end:end], true
}

// memberAt tells where that value stands.
func memberAt(data, quoted []byte) (start, end int, ok bool) {
	for i := 1; i < len(data)-1; {
		end := skipTrustedString(data, i)
		after := SkipValue(data, end+1)
		if bytes.Equal(data[i:end], quoted) {
			return end + 1, after, true
		}
		i = after + 1
	}
	return 0, 0, false
}

// Quote gives the canonical JSON text of a string.
func Quote(s string) []byte { return rawjson.AppendString(nil, s) }

// AppendMember adds a member to an object that is open at its end.
func AppendMember(data, quoted, raw []byte) []byte {
	if len(data) > 1 {
		data = append(data, ',')
	}
	data = append(append(data, quoted...), ':')
	return append(data, raw...)
}
