package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
)

// everyCommand calls do with each command that a user can see.
func everyCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			everyCommand(sub, do)
		}
	}
}

// helpOf is the help text of a command of a new program.
func helpOf(t *testing.T, path string) string {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetArgs(append(strings.Fields(path)[1:], "--help"))
	require.NoError(t, root.Execute())
	return out.String()
}

// TestHelpTextsFitOnTwoScreens: at most 96 lines of 80 columns. A line that is longer
// holds one word that cannot be broken.
func TestHelpTextsFitOnTwoScreens(t *testing.T) {
	texts := 0
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		text := helpOf(t, cmd.CommandPath())
		texts++
		if lines := strings.Count(text, "\n"); lines > command.HelpLines {
			t.Errorf("%s: %d lines", cmd.CommandPath(), lines)
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			longest := 0
			for word := range strings.FieldsSeq(line) {
				longest = max(longest, utf8.RuneCountInString(word))
			}
			if utf8.RuneCountInString(line) > command.HelpColumns && longest < 60 {
				t.Errorf("%s: %d columns: %s", cmd.CommandPath(), utf8.RuneCountInString(line), line)
			}
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.HasPrefix(f.Name, command.ProfilingPrefix) && f.Name != "help" {
				require.Regexp(t, `(?m)^ +(-., )?(--[a-z]+, )*--`+f.Name+`[ ,\n]`, text, "%s", cmd.CommandPath())
			}
		})
	})
	require.Greater(t, texts, 25)
}

func TestManyFlagsAreInGroups(t *testing.T) {
	used := map[string]bool{}
	everyCommand(newRoot(), func(cmd *cobra.Command) {
		_, path, _ := strings.Cut(cmd.CommandPath(), " ")
		cmd.InitDefaultHelpFlag()
		shown := 0
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			used[f.Name], used[path+" "+f.Name] = true, true
			if !f.Hidden && !strings.HasPrefix(f.Name, command.ProfilingPrefix) {
				shown++
			}
		})
		text := helpOf(t, cmd.CommandPath())
		require.Equal(t, shown < command.ManyFlags, strings.Contains(text, "\nFlags:\n"), "%s has %d flags", cmd.CommandPath(), shown)
		if shown < command.ManyFlags {
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.HasPrefix(f.Name, command.ProfilingPrefix) && command.GroupOf(cmd, f.Name) == "" {
				t.Errorf("%s --%s is in no group", cmd.CommandPath(), f.Name)
			}
		})
	})
	for _, group := range command.FlagGroups {
		for _, name := range group.Flags {
			if !used[name] {
				t.Errorf("group %s: no command has the flag %q", group.Title, name)
			}
		}
	}
}

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
