package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/suggest"
)

// SuggestFlag suggests a flag for one that cannot be read.
func SuggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown, err)
	case errors.As(err, &invalid):
		return invalidFlag(invalid.GetFlag(), invalid.GetValue())
	}
	return err
}

// WordsOf notes how other tools call what a command has, and what to write here, by the
// name of the flag or the first argument.
func WordsOf(cmd *cobra.Command, words map[string]string) { cmd.Annotations = words }

// unknownFlag suggests the flag with a similar name.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError, err error) error {
	name := unknown.GetSpecifiedName()
	if meant := cmd.Annotations[name]; meant != "" {
		return fmt.Errorf("%w: write %s", err, meant)
	}
	if len(name) < 2 {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if name == "token" && slices.Contains(names, "token-env") {
		return errors.New("unknown flag: --token; every process can read a command line, so the token comes from the environment: " +
			"run 'export NAME=…' and give --token-env NAME")
	}
	if near := suggest.Word(name, names); near != "" {
		return fmt.Errorf("%w, did you mean --%s?", err, near)
	}
	return err
}

// invalidFlag lists the values that a flag takes, with an example of one.
func invalidFlag(f *pflag.Flag, value string) error {
	switch f.Value.Type() {
	case "bool":
		if f.Name == "write" {
			return WriteTakesNoValue(value)
		}
		return fmt.Errorf("--%s %s: the flag is on or off; --%s=false turns it off", f.Name, value, f.Name)
	case "duration":
		if value != "" && strings.Trim(value, "0123456789.") == "" {
			return fmt.Errorf("--%s %s: the unit is missing; give a duration such as %ss", f.Name, value, value)
		}
		return fmt.Errorf("--%s %s: give a duration such as 60s or 2m", f.Name, value)
	}
	return fmt.Errorf("--%s %s: give %s", f.Name, value, FlagKind(f))
}

// valueOfSwitch explains the argument too many that was meant as the value of a
// flag that is on or off; nil where none was.
func valueOfSwitch(cmd *cobra.Command, args []string) error {
	on := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f != nil && f.Changed
	}
	for _, word := range args {
		switch {
		case slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, strings.ToLower(word)):
			return exit.Usagef("%q is no argument: a flag that is on or off has no word behind it; --NAME=false turns it off", word)
		case on("write") && !LooksLikeURL(word):
			return WriteTakesNoValue(word)
		}
	}
	return nil
}

// FlagKind names the values that a flag takes.
func FlagKind(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "duration":
		return "a duration such as 10s or 2m"
	case "bool":
		return "true or false"
	case "int", "int64", "uint64":
		return "a whole number"
	case "float64":
		return "a number"
	default:
		return "a " + f.Value.Type()
	}
}
