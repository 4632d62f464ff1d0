package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
)

// TestManualPages: each command that people see has a page, with its text, its flags
// and its exit statuses.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	status, out := ranWith(t, "man", dir)
	require.Equal(t, 0, status, out)
	pages := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() {
			return
		}
		pages++
		file := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		page := string(text)
		require.Contains(t, page, ".SH OPTIONS", file)
		require.Contains(t, page, cmd.Short, file)
		require.Contains(t, page, "Exit status:", file)
		require.Contains(t, page, "2  usage", file)
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	root := newRoot()
	for _, cmd := range root.Commands() {
		visit(cmd)
	}
	require.Greater(t, pages, 25)
	conform, err := os.ReadFile(filepath.Join(dir, "destkit-conform.1"))
	require.NoError(t, err)
	require.Contains(t, string(conform), "TH \"DESTKIT-CONFORM\" \"1\"")
	require.Contains(t, string(conform), ".EX\n{\"records\": [{\"identifier\": …, \"count\": 1")
	require.NoFileExists(t, filepath.Join(dir, "destkit-man.1"), "it is hidden")

	status, out = ranWith(t, "man", filepath.Join(dir, "destkit-conform.1"))
	require.Equal(t, 3, status)
	require.Contains(t, out, "make folder of manual pages")
}

func TestMarkdownOfHelp(t *testing.T) {
	require.Equal(t, "one \\*a\\* \\<b\\>\n\n    {\"c\": [d_e]}\n\n    f\n\nand g\\_h\n",
		markdown("one *a* <b>\n  {\"c\": [d_e]}\n\n  f\nand g_h\n"))
}

// ranWith is one command with all that it printed.
func ranWith(t *testing.T, args ...string) (status int, out string) {
	t.Helper()
	var text bytes.Buffer
	root := newRoot()
	root.SetOut(&text)
	root.SetErr(&text)
	status = command.Execute(t.Context(), root, args)
	require.NotContains(t, text.String(), "SECRET")
	return status, text.String()
}
