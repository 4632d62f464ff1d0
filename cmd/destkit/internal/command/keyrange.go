package command

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
)

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

// OwnKeys holds the flags by which replay and clean tell the keys of a run from
// all others: what the file itself says of them proves nothing.
type OwnKeys struct{ template, span string }

// Register adds the flags.
func (k *OwnKeys) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&k.template, "key-template", "", "`TEMPLATE` of the string identifiers, if the run had one")
	cmd.Flags().StringVar(&k.span, "key-range", "", "closed range `FROM:TO` of the integer identifiers, if the run had one")
}

// Resolve puts them into the options of the judge.
func (k *OwnKeys) Resolve(o *conformance.Options) error {
	o.KeyTemplate = k.template
	return ResolveKeyRange(k.span, o)
}
