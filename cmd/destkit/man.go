package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// newMan writes the manual pages that packages of destkit carry. It is hidden:
// people read --help, and man where a package has put the pages.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write the manual pages into a folder",
		Long:    "Write one manual page for each command into DIR, which is made when it is missing.",
		Example: "  destkit man ./man",
		Hidden:  true,
		Args:    command.Arguments(1, 1, "the folder DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return exit.Untested(fmt.Errorf("make folder of manual pages: %w", err))
			}
			info := command.ReadBuild()
			// A page has the day of the commit, not that on which it is written.
			when, err := time.Parse(time.RFC3339, info.Time)
			if err != nil {
				when = time.Unix(0, 0)
			}
			when = when.UTC()
			header := &doc.GenManHeader{Section: "1", Source: "destkit " + info.Version, Manual: "destkit", Date: &when}
			root := newRoot()
			root.DisableAutoGenTag = true
			describe(root)
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return exit.Untested(fmt.Errorf("write manual pages: %w", err))
			}
			return nil
		},
	}
}

// describe gives cmd and its subcommands their descriptions in Markdown, which the
// pages are made from, with the exit statuses that the help shows.
func describe(cmd *cobra.Command) {
	text := cmd.Long
	if _, table, found := strings.Cut(cmd.UsageTemplate(), "\nExit status:\n"); found {
		text += "\n\nExit status:\n" + table
	}
	cmd.Long = markdown(text)
	for _, sub := range cmd.Commands() {
		describe(sub)
	}
}

// special are the characters that mean something in Markdown.
var special = regexp.MustCompile("[\\\\`*_<>\\[\\]#]")

// markdown is a text of the help in Markdown: indented lines keep their line breaks,
// and no character has a meaning.
func markdown(text string) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, " \n")
		if is := strings.HasPrefix(line, "  "); is != indented && line != "" {
			b.WriteString("\n") // a block needs an empty line before and after it
			indented = is
		}
		switch {
		case line == "":
		case indented:
			b.WriteString("  ") // four spaces are a block
		default:
			line = special.ReplaceAllString(line, `\$0`)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
