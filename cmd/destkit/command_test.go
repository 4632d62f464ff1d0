package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplitCommand(t *testing.T) {
	for line, want := range map[string][]string{
		"":                           nil,
		"  \t ":                      nil,
		"psql -f read.sql":           {"psql", "-f", "read.sql"},
		`sh -c 'a "b" $c'`:           {"sh", "-c", `a "b" $c`},
		`x "a \"b\" \n $c"`:          {"x", `a "b" \n $c`},
		`a\ b c\\d`:                  {"a b", `c\d`},
		`a ''  ""`:                   {"a", "", ""},
		`pre"mid"'post'`:             {"premidpost"},
		"python3 r.py --key=\"a b\"": {"python3", "r.py", "--key=a b"},
		"ünï 'é x'":                  {"ünï", "é x"},
	} {
		words, err := splitCommand(line)
		require.NoError(t, err, line)
		require.Equal(t, want, words, line)
	}
	for line, want := range map[string]string{
		`a "b`: "a quote is not closed",
		`a 'b`: "a quote is not closed",
		`a \`:  "it ends with a backslash",
	} {
		_, err := splitCommand(line)
		require.ErrorContains(t, err, want, line)
	}
}
