package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/protocol"
	"github.com/destkit/destkit/internal/foreign"
)

// newProtocol teaches the protocol to those who have never seen it.
func newProtocol() *cobra.Command {
	var asMarkdown, noColor bool
	cmd := &cobra.Command{
		Use:   "protocol [METHOD]...",
		Short: "Explain the protocol: who calls whom, methods, usual mistakes",
		Long: `Explain the custom destination protocol. Without METHOD: who calls whom, what
every call has in common, and the six methods with one line each. With METHOD:
when the service calls it, its params and its result, examples, the rules that
'destkit conform' checks, and the usual mistakes.

The text is made from the OpenRPC document and the checks of this program.
docs/protocol.md is the same on one page.`,
		Example: "  destkit protocol\n  destkit protocol sync_batch\n  destkit protocol --markdown > protocol.md",
		RunE: func(cmd *cobra.Command, names []string) error {
			book, err := protocol.NewBook()
			if err != nil {
				return err
			}
			methods, err := book.Choose(names)
			if err != nil {
				return err
			}
			var page bytes.Buffer
			switch {
			case asMarkdown && len(names) > 0:
				return exit.Usagef("--markdown prints the whole page: leave out %s", strings.Join(names, ", "))
			case asMarkdown:
				err = book.WritePage(&page)
			default:
				err = book.WriteText(&page, methods, command.Colourful(cmd.OutOrStdout(), noColor))
			}
			if err != nil {
				return exit.Untested(err)
			}
			foreign.Print(cmd.OutOrStdout(), page.String())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asMarkdown, "markdown", false, "print the whole page as Markdown")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "no colours, also when standard output is a terminal")
	return cmd
}
