package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
)

func TestEmptyValuesAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"--select=":          "--select is empty",
		"--select= ":         "--select is empty",
		"--readback-url=":    "--readback-url is empty",
		"--object=":          "--object is empty",
		"--exec=":            "--exec is empty",
		"--object=contact,":  `--object: one of its values is empty: "contact,"`,
		"--object=contact":   "",
		"--token-env=":       "", // they have separate words
		"--report=":          "",
		"--count=0":          "",
		"--readback-url=x:y": "",
	} {
		cmd := &cobra.Command{}
		f := cmd.Flags()
		for _, name := range []string{"select", "readback-url", "token-env"} {
			f.String(name, "", "")
		}
		f.StringSlice("object", nil, "")
		f.StringArray("report", nil, "")
		f.StringArray("exec", nil, "")
		f.Int("count", 0, "")
		require.NoError(t, cmd.ParseFlags([]string{line}))
		err := RefuseEmpty(cmd)
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, want)
		var ended *exit.Error
		require.ErrorAs(t, err, &ended)
		require.Equal(t, exit.BadUsage, ended.Status)
	}
}

func TestLongArgumentsAreClipped(t *testing.T) {
	var errs bytes.Buffer
	root := &cobra.Command{Use: "destkit", SilenceErrors: true, SilenceUsage: true, RunE: func(_ *cobra.Command, args []string) error {
		return exit.Usagef("unknown word %q\nsee the help", args[0])
	}, Args: cobra.ArbitraryArgs}
	root.SetErr(&errs)
	require.Equal(t, exit.BadUsage, Execute(t.Context(), root, []string{strings.Repeat("x", 70_000)}))
	require.Less(t, errs.Len(), 2100)
	require.Contains(t, errs.String(), "…\nsee the help")
}

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

// TestQuotedWordsAreSplitBack: the output of ShellWord is one word for Split.
func TestQuotedWordsAreSplitBack(t *testing.T) {
	require.Equal(t, "./a-b_c/d.yaml", foreign.ShellWord("./a-b_c/d.yaml"), "a plain word stays as it is")
	for _, word := range []string{"", "plain", "two words", "it's", `"`, `a\b`, "$HOME", "`date`", "a;b|c", "ünï", "a\nb"} {
		words, err := Split(foreign.ShellWord(word))
		require.NoError(t, err, word)
		require.Equal(t, []string{word}, words)
	}
}
