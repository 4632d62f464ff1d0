package foreign_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/destkit/destkit/internal/foreign"
)

// reference is what a search means.
func reference(text, sought string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(sought))
}

func TestIn(t *testing.T) {
	for _, test := range []struct {
		text, sought string
		want         bool
	}{
		{"", "", true}, {"abc", "", true}, {"", "a", false},
		{`{"email":"Ada@Example.COM"}`, "ada@example.com", true},
		{`{"email":"Ada@Example.COM"}`, "ADA@example", true},
		{"xx", "xxx", false}, {"aXx", "xx", true}, {"zzzZz", "zzzzz", true}, {"zzzZ", "zzzzz", false},
		{"MÜNCHEN", "münchen", true}, {"munchen", "münchen", false}, {"münchen", "M", true},
		{"300 \u212a", "300 k", true}, {"\u0130stanbul", "istanbul", true}, {"\u0130", "i", true},
		{"a\xffb", "\ufffd", true}, {"a\xffB", "b", true},
	} {
		sought := foreign.NewSearch(test.sought)
		require.Equal(t, test.want, sought.In(test.text), "%q in %q", test.sought, test.text)
		require.Equal(t, test.want, sought.InBytes([]byte(test.text)), "%q in %q", test.sought, test.text)
		require.Equal(t, test.want, reference(test.text, test.sought), "%q in %q", test.sought, test.text)
	}
}

// TestInIsContainsOfSmallLetters: over texts of few letters, so that much is found.
func TestInIsContainsOfSmallLetters(t *testing.T) {
	letters := rapid.SampledFrom([]rune("aAbBkKiIzZ\"{}1é\u00c9\u212a\u0130\ufffdшШ漢"))
	texts := rapid.OneOf(rapid.StringOf(letters), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(rt *rapid.T) {
		text := texts.Draw(rt, "text")
		sought := rapid.OneOf(rapid.StringOfN(letters, 1, 3, -1), texts).Draw(rt, "sought")
		if len(text) > 0 && rapid.Bool().Draw(rt, "part") {
			from := rapid.IntRange(0, len(text)-1).Draw(rt, "from")
			sought = text[from : from+rapid.IntRange(1, len(text)-from).Draw(rt, "length")]
		}
		found := foreign.NewSearch(sought)
		require.Equal(rt, reference(text, sought), found.In(text))
		require.Equal(rt, reference(text, sought), found.InBytes([]byte(text)))
	})
}

// TestEveryCapital: each rune is found by the small letter that it becomes.
func TestEveryCapital(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if low := unicode.ToLower(r); low != r {
			sought := foreign.NewSearch(string(low))
			require.True(t, sought.In("1"+string(r)), "%U becomes %q", r, low)
		}
	}
}
