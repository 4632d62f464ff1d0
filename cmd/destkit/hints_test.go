package main

import (
	"html"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// inFile is a command in a report: of a page, in JSON and SARIF, or a line of Markdown.
var inFile = regexp.MustCompile(`(?m)(?:<code>|"replay": "|^)(destkit [a-z][^<"\n]*)`)

// hintsInFile lists the commands that a report offers, each once.
func hintsInFile(text string) []string {
	var all []string
	for _, m := range inFile.FindAllStringSubmatch(text, -1) {
		if command := html.UnescapeString(m[1]); !slices.Contains(all, command) {
			all = append(all, command)
		}
	}
	return all
}

// cmdHints is `hints LEAST [REPORT]`: every command that the last output, or the report,
// offers, at least so many, is run by a new shell in the folder of the script, with nothing of the
// environment but PATH and HOME. Status 0 or 1 (a finding) is what each must have.
func cmdHints(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: hints LEAST [REPORT]")
	}
	least, err := strconv.Atoi(args[0])
	ts.Check(err)
	var hints []string
	if len(args) == 2 {
		hints = hintsInFile(ts.ReadFile(args[1]))
	} else {
		hints = hintsIn(ts.ReadFile("stdout") + ts.ReadFile("stderr"))
	}
	for _, command := range hints {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = ts.MkAbs(".")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
		out, err := cmd.CombinedOutput()
		ts.Logf("%.200s: %v", command, err)
		if status := cmd.ProcessState.ExitCode(); status != 0 && (status != 1 || strings.HasPrefix(command, "curl")) {
			ts.Fatalf("pasted %q: exit status %d\n%s", command, status, out)
		}
	}
	if len(hints) < least {
		ts.Fatalf("%d commands are offered, not %d", len(hints), least)
	}
}

func TestRerunWordsHoldNoSecret(t *testing.T) {
	t.Setenv("TOK", "t0ken-of-the-run")
	var words, access string
	j := &judgement{}
	cmd := conformCommand(j)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		target, _, err := j.resolve(cmd, args[0])
		shown := j.commands(cmd, target)
		words, access = shown.rerun, shown.access
		return err
	}
	cmd.SetArgs([]string{
		"https://example.com/d?key=s3cr3t", "--write", "--object", "a b", "--object", "c", "--token-env", "TOK", "--select", "RES-*", "--report", "json=r.json",
		"--header", "X-Key: s3cr3t", "--readback-url", "https://example.com/rb?key=s3cr3t", "--batch-timeout", "5s",
	})
	require.NoError(t, cmd.Execute())
	require.Equal(t, ` --token-env TOK --url "${DESTKIT_URL:?}" --header "X-Key: ${DESTKIT_HEADER_X_KEY:?}"`, access)
	require.Equal(t, `conform "${DESTKIT_URL:?}" --token-env TOK --batch-timeout 5s --write --object 'a b' --object c --readback-url "${DESTKIT_READBACK_URL:?}" --header "X-Key: ${DESTKIT_HEADER_X_KEY:?}"`, words)

	cmd.SetArgs([]string{"https://example.com/s3cr3t/d", "--url-secret", "path:0"})
	for _, name := range []string{"write", "object", "token-env", "header", "readback-url", "batch-timeout"} {
		cmd.Flags().Lookup(name).Changed = false
	}
	require.NoError(t, cmd.Execute())
	require.NotContains(t, words, "s3cr3t")
	require.Contains(t, words, `conform "${DESTKIT_URL:?}" `)
	require.Contains(t, words, " --url-secret path:0")
}
