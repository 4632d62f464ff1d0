package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	n, err := Parse([]byte(" {\"a\":[1,-0.5e+3,\"x\\u00e9\\ud83d\\ude00\\/\"],\"b\":null,\"c\":{\"\":true},\"n\":9007199254740993 } \r\n"))
	require.NoError(t, err)
	require.Equal(t, Object, n.Kind)
	require.Equal(t, "1", string(n.Get("a", "0").Raw))
	require.Equal(t, "-0.5e+3", string(n.Get("a", "1").Raw))
	require.False(t, n.Get("a", "1").IsInteger())
	require.Equal(t, "xé😀/", n.Get("a", "2").Text)
	require.Equal(t, "array", n.Get("a").Type().String())
	require.True(t, n.Get("b").Is(Null))
	require.Nil(t, n.Get("d"))
	require.Nil(t, n.Get("a", "3"))
	require.Nil(t, n.Get("a", "x", "y"))
	require.Equal(t, "absent", n.Get("d").Type().String())
	value, ok := n.Get("c", "").Bool()
	require.True(t, value && ok)
	_, ok = n.Get("a").Bool()
	require.False(t, ok)
	v, ok := n.Get("n").Int()
	require.True(t, ok)
	require.EqualValues(t, 9007199254740993, v)
	require.True(t, strings.HasPrefix(string(n.Raw), "{") && strings.HasSuffix(string(n.Raw), "}"))
	require.Empty(t, n.Duplicates)
}

func TestDuplicates(t *testing.T) {
	many := strings.Repeat(`"k":0,`, 500)
	tests := []struct {
		text string
		want []string
	}{
		{`{"a":1,"b":{"a":2,"a":3},"a":[{"x":1,"\u0078":2}]}`, []string{"b.a", "a", "a[0].x"}},
		{`{"a":{"a":{"a":1}}}`, nil},
		{`[{"a":1},{"a":1}]`, nil},
	}
	for _, test := range tests {
		n, err := Parse([]byte(test.text))
		require.NoError(t, err)
		require.Equal(t, test.want, n.Duplicates)
	}
	n, err := Parse([]byte("{" + many + `"z":1}`))
	require.NoError(t, err)
	require.Len(t, n.Duplicates, maxDuplicates)
	n, err = Parse([]byte(`{"a":1,"a":2}`))
	require.NoError(t, err)
	require.Equal(t, "2", string(n.Get("a").Raw))
}

func TestSurrogates(t *testing.T) {
	tests := []struct {
		text, want string
		lone       bool
	}{
		{`"\ud83d\ude00"`, "😀", false},
		{`"\ud83d"`, "\xed\xa0\xbd", true},
		{`"a\ude00b"`, "a\xed\xb8\x80b", true},
		{`"\ud83d\u0041"`, "\xed\xa0\xbdA", true},
		{`"\ud83d\ud83d\ude00"`, "\xed\xa0\xbd😀", true},
	}
	for _, test := range tests {
		n, err := Parse([]byte(test.text))
		require.NoError(t, err)
		require.Equal(t, test.want, n.Text)
		require.Equal(t, test.lone, !utf8.ValidString(n.Text))
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		text string
		says string
		at   int
	}{
		{"", "end of text", 0},
		{" \n", "end of text", 2},
		{"\xef\xbb\xbf{}", "byte order mark", 0},
		{"{} {}", "bytes after the value", 3},
		{"{}\x00", "bytes after the value", 2},
		{"{\"a\":\"caf\xe9\"}", "not UTF-8", 9},
		{"\"\xed\xa0\x80\"", "not UTF-8", 1},
		{strings.Repeat("[", 513), "nested deeper than 512", 512},
		{"<html>", "not the start of a value", 0},
		{"{\"a\":1,}", "must start with a string", 7},
		{"[1,]", "not the start of a value", 3},
		{"[1", "end of text", 2},
		{"{\"a\"", "end of text", 4},
		{"{a:1}", "must start with a string", 1},
		{"01", "bytes after the value", 1},
		{"-", "end of text", 1},
		{"1.", "malformed number", 2},
		{"1e", "malformed number", 2},
		{"nul", "not one of true, false, null", 0},
		{"\"a", "the string does not end", 0},
		{"\"a\\", "malformed escape", 2},
		{"\"\\x41\"", "malformed escape", 1},
		{"\"\\u12g4\"", "malformed escape", 1},
		{"\"\t\"", "control character", 1},
		{"\u00a01", "not the start of a value", 0},
	}
	for _, test := range tests {
		_, err := Parse([]byte(test.text))
		var syntax *SyntaxError
		require.ErrorAs(t, err, &syntax, "%q", test.text)
		require.Contains(t, syntax.Reason, test.says, "%q: %v", test.text, err)
		require.Equal(t, test.at, syntax.Offset, "%q: %v", test.text, err)
		require.Contains(t, err.Error(), "at byte ")
	}
	deep := strings.Repeat("[", 512) + strings.Repeat("]", 512)
	_, err := Parse([]byte(deep))
	require.NoError(t, err)
}

// The judge of encoding/json is the oracle, except where this parser is
// stricter on purpose: UTF-8, depth, the byte order mark.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e-3,"\ud83d\ude00",null,true]}`, `[]`, `"\ud800"`, "{\"a\":\"\xff\"}", `{"a":1,"a":2}`, "\xef\xbb\xbf1", `-0.0E+1 `, `1 2`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := Parse(b)
		var syntax *SyntaxError
		if err != nil {
			require.True(t, errors.As(err, &syntax))
			require.LessOrEqual(t, syntax.Offset, len(b))
			if syntax.Reason != "not UTF-8" && !strings.HasPrefix(syntax.Reason, "nested deeper") {
				require.False(t, json.Valid(b), "%q: %v", b, err)
			}
			return
		}
		require.True(t, json.Valid(b), "%q", b)
		require.True(t, utf8.Valid(b))
		compareWithOracle(t, n)
	})
}

// compareWithOracle compares the tree with encoding/json.
func compareWithOracle(t *testing.T, n *Node) {
	switch n.Kind {
	case String:
		var want string
		require.NoError(t, json.Unmarshal(n.Raw, &want))
		if utf8.ValidString(n.Text) {
			require.Equal(t, want, n.Text)
		}
	case Array:
		var want []json.RawMessage
		require.NoError(t, json.Unmarshal(n.Raw, &want))
		require.Len(t, n.Items, len(want))
		for i, item := range n.Items {
			require.Equal(t, strings.TrimSpace(string(want[i])), string(item.Raw))
			compareWithOracle(t, item)
		}
	case Object:
		var want map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(n.Raw, &want))
		for _, m := range n.Members {
			if utf8.ValidString(m.Name) && len(n.Members) == len(want) {
				require.Equal(t, string(want[m.Name]), string(m.Value.Raw))
			}
			compareWithOracle(t, m.Value)
		}
	}
}
