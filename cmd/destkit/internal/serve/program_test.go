package serve

import "github.com/spf13/cobra"

// newProgram is the program with this one command.
func newProgram() *cobra.Command {
	root := &cobra.Command{Use: "destkit", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(New())
	return root
}
