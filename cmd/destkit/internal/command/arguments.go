package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/suggest"
)

// NoSubcommand refuses a first word that is no command, and suggests one.
func NoSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := lists.Of(cmd.Commands(), func(sub *cobra.Command) string { return sub.Name() })
	if near := suggest.Word(args[0], names); near != "" {
		return exit.Usagef("unknown command %q, did you mean %q?", args[0], near)
	}
	return exit.Usagef("unknown command %q; commands are %s", args[0], strings.Join(names, ", "))
}

// Arguments demands between least and most positional arguments (most < 0: no
// limit) and names them.
func Arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return exit.Usagef("missing %s\nusage: %s", what, cmd.UseLine())
		case most >= 0 && len(args) > most && cmd.Annotations[args[0]] != "":
			return exit.Usagef("%q is no argument: write %s", args[0], cmd.Annotations[args[0]])
		case most >= 0 && len(args) > most:
			if err := valueOfSwitch(cmd, args); err != nil {
				return err
			}
			return exit.Usagef("too many arguments: %q is one more than %s\nusage: %s", args[most], what, cmd.UseLine())
		}
		return nil
	}
}

// ownWords are the flags with their own error for an empty value.
var ownWords = []string{"report", "slo", "header"}

// RefuseEmpty refuses flags that were given an empty value, which would count as not
// given: "$UNSET" in a pipeline would judge everything, or lower the tier.
func RefuseEmpty(cmd *cobra.Command) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || slices.Contains(ownWords, f.Name) || strings.HasSuffix(f.Name, "-env") {
			return
		}
		switch list, is := f.Value.(pflag.SliceValue); {
		case is:
			if values := list.GetSlice(); len(values) == 0 || len(values) == 1 && blank(values[0]) {
				err = emptyValue(f.Name)
			} else if slices.ContainsFunc(values, blank) {
				err = exit.Usagef("--%s: one of its values is empty: %q", f.Name, strings.Join(values, ","))
			}
		case f.Value.Type() == "string" && blank(f.Value.String()):
			err = emptyValue(f.Name)
		}
	})
	return err
}

func emptyValue(flag string) error {
	return exit.Usagef("--%s is empty: give a value, or leave the flag out; if a variable stands there, it may be unset", flag)
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// ResolveKeyRange parses --key-range; "" leaves the range to the run.
func ResolveKeyRange(text string, o *conformance.Options) error {
	if text == "" {
		return nil
	}
	from, to, _ := strings.Cut(text, ":")
	var errFrom, errTo error
	o.KeyFrom, errFrom = strconv.ParseInt(from, 10, 64)
	o.KeyTo, errTo = strconv.ParseInt(to, 10, 64)
	if errFrom != nil || errTo != nil {
		return exit.Usagef("--key-range %q is not FROM:TO with two whole numbers", text)
	}
	return nil
}

// OwnKeys holds the flags by which replay and clean distinguish the keys of a
// run from all others: the file itself proves nothing.
type OwnKeys struct{ template, span string }

// Register adds the flags.
func (k *OwnKeys) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.template, "key-template", "", "`TEMPLATE`: that of the run, for string keys")
	cmd.Flags().StringVar(&k.span, "key-range", "", "`FROM:TO`: that of the run, for integer keys")
}

// Resolve puts them into the options of the judge.
func (k *OwnKeys) Resolve(o *conformance.Options) error {
	o.KeyTemplate = k.template
	return ResolveKeyRange(k.span, o)
}
