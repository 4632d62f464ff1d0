package main

import (
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/demo"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/loads"
	"github.com/destkit/destkit/cmd/destkit/internal/serve"
	"github.com/destkit/destkit/cmd/destkit/internal/syncs"
)

// newRoot assembles the program, one file per subcommand.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "destkit",
		Short: "Judge, simulate and explain custom destinations",
		Long: `destkit judges a custom destination: you give the URL of your endpoint and get,
within seconds, which rules hold, which are broken and how to mend them, and
which cannot be decided without more evidence. It also stands in for such a
destination (destsim) and for the service that calls it (serve, sync).`,
		Example: `  destkit init my-destination --lang python
      an endpoint to start from, which passes
  destkit conform https://example.com/destination --token-env TOKEN
      judge an endpoint; nothing is written
  destkit plan https://example.com/destination --write --object contact
      say first what would be sent, and what would stay undecided
  destkit conform https://example.com/destination --write --object contact
      judge it with records written into the object "contact"
  destkit explain RES-002
      one rule: why it matters, a good and a bad exchange
  destkit destsim --addr 127.0.0.1:8080
      a destination that obeys every rule, to try things on
  destkit load https://example.com/destination --write --object contact
      how many batches it takes, and how fast
  destkit serve --data ./data
      the service itself, to test your API client against
  destkit sync run 7
      run a sync of that service and follow it`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          command.NoSubcommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.UseHelp(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef("%w\nsee '%s --help'", command.SuggestFlag(cmd, err), cmd.CommandPath())
	})
	root.AddCommand(
		frugal(newConform()),
		frugal(newPlan()),
		newChecks(),
		newExplain(),
		newProtocol(),
		frugal(newClean()),
		frugal(newReplay()),
		newProxy(),
		frugal(newDiff()),
		newDestsim(),
		serve.New(),
		syncs.New(),
		syncs.NewExplainRecord(),
		loads.New(settingKeys),
		newInit(),
		demo.New(),
		newSchema(),
		newValidate(),
		newVersion(),
		newMan(),
	)
	root.InitDefaultCompletionCmd()
	completeWords(root)
	root.Version = command.ReadBuild().Line()
	root.SetVersionTemplate("destkit {{.Version}}\n")
	return root
}

// judgeMemory is the limit for the garbage collector of a judge. Memory that an
// endpoint can make it hold is counted and lower; without the limit as much again
// could be garbage.
const judgeMemory = 160 << 20

// frugal is a command that reads what others wrote, and stays below 256 MiB of memory
// whatever that is. GOMEMLIMIT wins.
func frugal(cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if os.Getenv("GOMEMLIMIT") == "" {
			defer debug.SetMemoryLimit(debug.SetMemoryLimit(judgeMemory))
		}
		return run(cmd, args)
	}
	return cmd
}
