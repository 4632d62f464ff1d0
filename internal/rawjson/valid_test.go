package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func Nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

var validTexts = []string{
	`{}`, `[]`, ` null `, `true`, `false`, `0`, `-0`, `-0.0e-0`, `1E+5`, `42.42`, `9223372036854775808`,
	`""`, `"\"\\\/\b\f\n\r\t\u00e9"`, `"\ud83d\ude00"`, `"\ud800"`, "\"\x7f\"", `"é😀👩‍👩‍👧"`,
	`{"a":[1,{"b":null}],"a":2}`, "\t\r\n [ 1 , 2 ] \n", Nested(512),
	`"plain text of more than eight bytes, then 日本語, then more"`,
}

var invalidTexts = map[string]int{ // text to offset of the fault
	"": 0, "  ": 2, "\xef\xbb\xbf{}": 0, "{}x": 2, "{} {}": 3,
	"{": 1, `{"a"`: 4, `{"a":`: 5, `{"a" 1}`: 5, `{"a":1,}`: 7,
	`{a:1}`: 1, `{"a":1]`: 6, `[1,]`: 3, `[1 2]`: 3, `[`: 1,
	`[1,`: 3, `01`: 1, `+1`: 0, `-`: 1, `-a`: 1,
	`.5`: 0, `1.`: 2, `1.e5`: 2, `1e`: 2, `1e+`: 3,
	`NaN`: 0, `Infinity`: 0, `tru`: 0, `nul`: 0, `trux`: 0,
	`"abc`: 4, `"\x"`: 1, `"\u12g4"`: 1, `"\u12`: 1, `"\`: 1,
	"\"a\nb\"": 2, "\"\x00\"": 1, "\"\xff\"": 1, "\"abcdefghij\xc3\"": 11, `'a'`: 0,
	`[1]//c`:               3,
	"\"\xc0\xaf\"":         1, // overlong
	"\"\xed\xa0\x80\"":     1, // an encoded surrogate
	"\"\xf4\x90\x80\x80\"": 1, // beyond U+10FFFF
	Nested(513):            512,
}

func TestValid(t *testing.T) {
	for _, text := range validTexts {
		require.NoError(t, Valid([]byte(text)), "%q", text)
		require.True(t, json.Valid([]byte(text)), "%q", text)
	}
	for text, offset := range invalidTexts {
		var syntax *SyntaxError
		require.ErrorAs(t, Valid([]byte(text)), &syntax, "%q", text)
		require.Equal(t, offset, syntax.Offset, "%q: %v", text, syntax)
	}
	err := Valid([]byte(`[1,]`))
	require.EqualError(t, err, "not the start of a value at byte 3")
}

// TestStringScanAtEveryOffset moves each interesting byte through the eight
// places of a machine word.
func TestStringScanAtEveryOffset(t *testing.T) {
	for pad := range 20 {
		for c := range 256 {
			text := append([]byte(`"`+strings.Repeat("x", pad)), byte(c))
			text = append(text, `yyyyyyyyyyyy"`...)
			want := json.Valid(text) && utf8.Valid(text)
			require.Equal(t, want, Valid(text) == nil, "%q", text)
		}
	}
}

// depth is the deepest nesting of a valid text.
func depth(b []byte) int {
	deepest, now, inString := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{', c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}', c == ']':
			now--
		}
	}
	return deepest
}

// ModelValid is Valid by encoding/json, which admits bytes that are not UTF-8
// and nests deeper.
func ModelValid(b []byte) bool {
	return json.Valid(b) && utf8.Valid(b) && depth(b) <= maxDepth
}

func FuzzValid(f *testing.F) {
	for _, text := range validTexts {
		f.Add([]byte(text))
	}
	for text := range invalidTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := Valid(b)
		require.Equal(t, ModelValid(b), err == nil, "%q: %v", b, err)
		if syntax, ok := errors.AsType[*SyntaxError](err); ok {
			require.LessOrEqual(t, syntax.Offset, len(b))
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		require.NoError(t, d.Decode(&want))
		require.Equal(t, want, decodedBy(b))
	})
}

// decodedBy is a text as values, by the scans of this package.
func decodedBy(raw []byte) any {
	switch raw = raw[SkipSpace(raw, 0):]; TypeOf(raw) {
	case "object":
		members := map[string]any{}
		walk, _ := WalkObject(raw)
		for key, value, ok := walk.Next(); ok; key, value, ok = walk.Next() {
			members[string(key)] = decodedBy(value)
		}
		return members
	case "array":
		items, end := []any{}, 0
		for i, more, _ := FirstElement(raw, 0); more; i, more, _ = NextElement(raw, end) {
			end, _ = SkipValue(raw, i, 0)
			items = append(items, decodedBy(raw[i:end]))
		}
		return items
	case "string":
		end, _ := SkipString(raw, 1)
		return string(PlainKey(raw[1 : end-1]))
	case "number":
		end, _ := SkipNumber(raw, 0)
		return json.Number(raw[:end])
	}
	return map[byte]any{'t': true, 'f': false}[raw[0]]
}
