package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
)

// ownWords are the flags that say themselves what is wrong with an empty value.
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
