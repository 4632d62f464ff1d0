package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/suggest"
)

// NoSubcommand refuses a first word that is no command, and says which was
// probably meant.
func NoSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	if near := suggest.Word(args[0], names); near != "" {
		return exit.Usagef("unknown command %q, did you mean %q?", args[0], near)
	}
	return exit.Usagef("unknown command %q; commands are %s", args[0], strings.Join(names, ", "))
}

// Arguments demands between least and most positional arguments (most < 0: no
// limit) and says what they are.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return exit.Usagef("missing %s\nusage: %s", what, cmd.UseLine())
		case most >= 0 && len(args) > most:
			if err := valueOfSwitch(cmd, args); err != nil {
				return err
			}
			return exit.Usagef("too many arguments: %q is one more than %s\nusage: %s", args[most], what, cmd.UseLine())
		}
		return nil
	}
}
