package store

import (
	"bytes"

	"github.com/destkit/destkit/internal/rawjson"
)

// A row's data is one canonical JSON object without white space: names as
// rawjson.AppendString writes them, values in their one canonical form. Equal
// values therefore have equal bytes, and the functions here may trust the text.

// nextMember gives the ends of the name and of the value of the member at data[i].
func nextMember(data []byte, i int) (name, value int) {
	name, _ = rawjson.SkipString(data, i+1)
	value, _ = rawjson.SkipValue(data, name+1, 1)
	return name, value
}

// EachMember walks a row's data; name is quoted. It stops when fn returns false.
func EachMember(data []byte, fn func(name, value []byte) bool) {
	for i := 1; i < len(data)-1; {
		end, after := nextMember(data, i)
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

// memberAt locates that value.
func memberAt(data, quoted []byte) (start, end int, ok bool) {
	for i := 1; i < len(data)-1; {
		end, after := nextMember(data, i)
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
