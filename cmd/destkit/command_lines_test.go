package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/conformance"
)

// TestPipelineCommands looks at every command line of destkit in the pages, the
// examples and the README: the command and its flags must exist.
func TestPipelineCommands(t *testing.T) {
	files, err := filepath.Glob(pipeline("*"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	require.NoError(t, err)
	files = append(append(files, pages...), filepath.Join(repository, "README.md"))
	found := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		text := string(b)
		if strings.HasSuffix(file, ".md") {
			text = codeOf(text)
		}
		commands := commandLines(text)
		t.Logf("%s: %d commands", filepath.Base(file), len(commands))
		found += len(commands)
		for _, line := range commands {
			words, err := command.Split(line)
			require.NoError(t, err, line)
			if slices.Contains(words, "…") { // an example of any command
				continue
			}
			requireCommand(t, words[1:])
		}
	}
	require.Greater(t, found, 100)
}

// TestReadmeCountsChecks: the number of checks in the README is that of the catalogue.
func TestReadmeCountsChecks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	catalogue, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprintf("`destkit checks --suite destination` lists the %d checks", len(catalogue.Checks)))
}

// codeOf returns the code of a Markdown text: its fenced blocks, and each span in
// backticks as a separate line.
func codeOf(text string) string {
	var out []string
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(part, -1) {
			out = append(out, strings.Join(strings.Fields(m[1]), " "))
		}
	}
	return strings.Join(out, "\n")
}

// invocation is where the shell would run destkit: at the start of a line, after
// a prompt, a list mark of YAML, an assignment or an operator.
var invocation = regexp.MustCompile(`(?m)(?:^|[;&|] |then |\$ )[ ]*(?:[A-Z_]+=\S* )?((?:\./)?destkit (?:[a-z][a-z-]*|--help).*)$`)

// commandLines returns the command lines of destkit in a text, up to the next
// operator of the shell.
func commandLines(text string) []string {
	text = regexp.MustCompile(`\s*\\\n\s*`).ReplaceAllString(text, " ")
	text = regexp.MustCompile(`(?m)^\s*- `).ReplaceAllString(text, "")
	// A folded scalar of YAML is one line.
	text = regexp.MustCompile(`(?m)^>-\n((?:\s+\S.*\n)+)`).ReplaceAllStringFunc(text, func(s string) string {
		return strings.Join(strings.Fields(strings.TrimPrefix(s, ">-")), " ") + "\n"
	})
	var out []string
	for _, m := range invocation.FindAllStringSubmatch(text, -1) {
		line, _, _ := strings.Cut(m[1], " #")
		line = regexp.MustCompile(`(?:\s*(?:[;|]|&&|&$)|\s\d?>).*$`).ReplaceAllString(line, "")
		out = append(out, line)
	}
	return out
}
