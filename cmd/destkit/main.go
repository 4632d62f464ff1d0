// Command destkit is the door of the toolkit: it owns flags, configuration
// files, the environment, listeners, signals, terminals and exit statuses. It
// knows nothing of the protocol; every judgement, reply and report comes from
// the other libraries, which in turn never read the environment, listen or
// exit.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/internal/foreign"
)

// sameWish is how long further signals are taken for the first.
const sameWish = 500 * time.Millisecond

func main() {
	command.LinkedBuild(version, commit, date)
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		// A second signal ends the process at once. One that comes with the first is the
		// same wish: who ends a whole group of processes, and then its leader, as
		// timeout and runners of pipelines do, sends two.
		time.Sleep(sameWish)
		signal.Stop(signals)
	}()
	os.Exit(command.Execute(ctx, newRoot(), os.Args[1:]))
}

// version, commit and date are set at link time (-X main.version=v1.2.3); without
// that they are what Go wrote into the binary. date is that of the commit, RFC 3339,
// so that a commit gives the same bytes whenever it is built.
var version, commit, date string

// newVersion prints the build that made a report; the report carries the same words.
func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print which build this is",
		Long:    "Print the version, the commit and the Go release that this program was\nbuilt from.",
		Example: "  destkit version\n  destkit version --json",
		Args:    command.Arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := command.ReadBuild()
			if asJSON {
				return command.PrintJSON(cmd.OutOrStdout(), info)
			}
			foreign.Printf(cmd.OutOrStdout(), "destkit %s\n", info.Line())
			if info.Revision != "" {
				foreign.Printf(cmd.OutOrStdout(), "commit %s %s\n", info.Revision, info.Time)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
