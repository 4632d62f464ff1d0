package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrap(t *testing.T) {
	for text, lines := range map[string][]string{
		"":                              nil,
		"a short one":                   {"a short one"},
		"one two three":                 {"one two", "three"},
		"a-word-that-is-longer than it": {"a-word-that-is-longer", "than it"},
		// No line ends within what a value is about.
		`stored as "  spaces  "`: {"stored as", `"  spaces  "`},
		`stored as " x y"`:       {"stored as", `" x y"`},
		`it is "x y " here`:      {`it is "x y "`, "here"},
		`"ab" and " bc"`:         {`"ab" and`, `" bc"`},
		`"say \" it" " b"`:       {`"say \" it"`, `" b"`},
		"left  two":              {"left  two"},
		"    indented text":      {"    indented", "text"},
	} {
		require.Equal(t, lines, wrap(text, 12), text)
	}
}
