package serve

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// newBackup copies a data directory while it is in use; no key is needed.
func newBackup() *cobra.Command {
	var dir, to string
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Copy the database of a data directory, also while it is served",
		Long: `Copy the database of a data directory into one file, which appears whole or not
at all. The service may run and write meanwhile. Secrets in the copy stay
sealed: to start from it, with 'destkit serve --restore', takes the master key
of the directory.

The copy holds everything that the API shows. The records of emulated
destinations and warehouses, and the clock, are in a snapshot instead
(GET /_control/snapshot of the running service).`,
		Example: "  destkit serve backup --data ./data --to backup.db\n  destkit serve --data ./restored --restore backup.db",
		Args:    command.Arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" || to == "" {
				return exit.Usagef("backup needs --data DIR and --to FILE")
			}
			if info, err := os.Stat(to); err == nil && info.IsDir() {
				return exit.Usagef("--to %s is a folder; name the file to write", to)
			}
			if err := checkFolder(dir); err != nil {
				return err
			}
			// Distinct from a disk that cannot be read: the caller has named
			// the wrong place.
			if !server.HoldsData(dir) {
				return noData(dir)
			}
			err := server.Backup(cmd.Context(), dir, to)
			if errors.Is(err, server.ErrUnfit) {
				return exit.Usage(err)
			} else if err != nil {
				return exit.Untested(err)
			}
			foreign.Printf(cmd.OutOrStdout(), "backed up %s to %s\n", dir, to)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "copy the data directory `DIR`")
	cmd.Flags().StringVar(&to, "to", "", "the `FILE` to write, outside of the directory")
	return cmd
}
