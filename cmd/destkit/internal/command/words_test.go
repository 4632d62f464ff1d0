package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/foreign"
)

func TestSplit(t *testing.T) {
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
		words, err := Split(line)
		require.NoError(t, err, line)
		require.Equal(t, want, words, line)
	}
	for line, want := range map[string]string{
		`a "b`: "a quote is not closed",
		`a 'b`: "a quote is not closed",
		`a \`:  "it ends with a backslash",
	} {
		_, err := Split(line)
		require.ErrorContains(t, err, want, line)
	}
}

// TestQuotedWordsAreSplitBack: what ShellWord writes is one word for Split.
func TestQuotedWordsAreSplitBack(t *testing.T) {
	require.Equal(t, "./a-b_c/d.yaml", foreign.ShellWord("./a-b_c/d.yaml"), "a plain word stays as it is")
	for _, word := range []string{"", "plain", "two words", "it's", `"`, `a\b`, "$HOME", "`date`", "a;b|c", "ünï", "a\nb"} {
		words, err := Split(foreign.ShellWord(word))
		require.NoError(t, err, word)
		require.Equal(t, []string{word}, words)
	}
}
