package destsim

import (
	"bytes"

	"github.com/destkit/destkit/destsim/rpc"
)

// A row's data is one canonical JSON object without white space: names as
// rpc.AppendString writes them, values as field.canonical made them. Equal
// values therefore have equal bytes, and the functions here may trust the text.

// skipTrusted gives the index after the JSON value at b[i]; b is known to be
// valid JSON without white space between its tokens.
func skipTrusted(b []byte, i int) int {
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

// eachMember walks a row's data; name is quoted. It stops when fn says false.
func eachMember(data []byte, fn func(name, value []byte) bool) {
	for i := 1; i < len(data)-1; {
		end := skipTrustedString(data, i)
		after := skipTrusted(data, end+1)
		if !fn(data[i:end], data[end+1:after]) {
			return
		}
		i = after + 1 // past the comma or the brace
	}
}

// member gives the value of the field with that quoted name in a row's data.
func member(data, quoted []byte) ([]byte, bool) {
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
		after := skipTrusted(data, end+1)
		if bytes.Equal(data[i:end], quoted) {
			return end + 1, after, true
		}
		i = after + 1
	}
	return 0, 0, false
}

// quote gives the canonical JSON text of a string.
func quote(s string) []byte { return rpc.AppendString(nil, s) }

// cell is one value of a record on its way into the store.
type cell struct {
	column *column
	// raw is the canonical JSON text of the value. It may be a slice of the
	// request, so it is replaced, never edited.
	raw []byte
}

// encodeCells makes the data of a new row.
func encodeCells(cells []cell) []byte {
	size := 2
	for i := range cells {
		size += len(cells[i].column.quoted) + len(cells[i].raw) + 2
	}
	data := append(make([]byte, 0, size), '{')
	for i := range cells {
		data = appendMember(data, cells[i].column.quoted, cells[i].raw)
	}
	return append(data, '}')
}

// mergeCells makes the data of a changed row: what cells do not name stays.
func mergeCells(old []byte, cells []cell) []byte {
	if sameNames(old, cells) {
		return encodeCells(cells)
	}
	size := len(old)
	for i := range cells {
		size += len(cells[i].column.quoted) + len(cells[i].raw) + 2
	}
	data := append(make([]byte, 0, size), '{')
	eachMember(old, func(name, value []byte) bool {
		for i := range cells {
			if bytes.Equal(cells[i].column.quoted, name) {
				return true
			}
		}
		data = appendMember(data, name, value)
		return true
	})
	for i := range cells {
		data = appendMember(data, cells[i].column.quoted, cells[i].raw)
	}
	return append(data, '}')
}

// sameNames reports whether a row has the names of cells, in their order: the
// usual case of a batch that is sent again with other values.
func sameNames(data []byte, cells []cell) bool {
	n := 0
	eachMember(data, func(name, _ []byte) bool {
		if n < len(cells) && bytes.Equal(cells[n].column.quoted, name) {
			n++
			return true
		}
		n = -1
		return false
	})
	return n == len(cells)
}

// appendMember adds a member to an object that is open at its end.
func appendMember(data, quoted, raw []byte) []byte {
	if len(data) > 1 {
		data = append(data, ',')
	}
	data = append(append(data, quoted...), ':')
	return append(data, raw...)
}
