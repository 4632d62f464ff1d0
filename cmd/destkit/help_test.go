package main

import (
	"bytes"
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
