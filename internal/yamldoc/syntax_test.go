package yamldoc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSyntaxInPlainWords: the words of the YAML library reach no author of a file.
func TestSyntaxInPlainWords(t *testing.T) {
	for src, want := range map[string]string{
		"name: b: c\n":            "f.yaml:1:7: this value has a key with a colon in it: put the value in quotes, or check the indentation of the line below",
		"name: a\n  count: 1\n":   "f.yaml:1:7: this value has a key with a colon in it: put the value in quotes, or check the indentation of the line below",
		"name: 'it's'\n":          "f.yaml:1:11: there is more text behind the end of the value: put the whole value in one pair of quotes",
		"name: {a: 1}\n count: 2": "f.yaml:2:2: this line does not fit those above it: check its indentation",
		"parts:\n  - a\n  b: c\n": "f.yaml:3:3: this line does not fit those above it: check its indentation",
		"name: a\nother\n":        "f.yaml:2:1: expected a key with its value, such as key: value",
		"parts: [1,2\n":           "f.yaml:1:8: the list has no ] at its end, or a comma is missing",
		"name: {a: [x]\ncount: 1": "f.yaml:2:1: the mapping has no } at its end, or a comma is missing",
		"name: \"abc\n":           "f.yaml:1:7: the text has no \" at its end",
		"name: 'abc\n":            "f.yaml:1:7: the text has no ' at its end",
		"name: *x\n":              "f.yaml:1:8: there is no anchor of this name above: put text that begins with * in quotes",
		"name: @x\n":              "f.yaml:1:7: text cannot begin with '@': put it in quotes",
		"parts: - b\n":            "f.yaml:1:8: a list must begin on the line below its key",
		"name: \"x\\qy\"\n":       "f.yaml:1:10: the text in double quotes has an escape that YAML does not know: write \\\\ for a backslash, or use single quotes",
		"parts:\n\t- a\n":         "f.yaml:2:1: the line begins with a tab: YAML is indented with spaces",
	} {
		err := Decode("f.yaml", []byte(src), new(sample))
		var placed *Error
		require.ErrorAs(t, err, &placed, src)
		require.Equal(t, want, placed.Brief(), src)
	}
}
