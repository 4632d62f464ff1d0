package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/server/store"
)

// newServeBackup copies a data directory while it is in use; no key is needed.
func newServeBackup() *cobra.Command {
	var dir, to string
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Copy the database of a data directory, also while it is served",
		Long: `Copy the database of a data directory into one file, which appears whole or not
at all. The service may run and write meanwhile. Secrets in the copy stay sealed:
to start from it, with 'destkit serve --restore', takes the master key of the
directory.

The copy holds everything that the API shows. The records of emulated
destinations and warehouses, and the clock, are in a snapshot instead
(GET /_control/snapshot of the running service).`,
		Example: "  destkit serve backup --data ./data --to backup.db\n  destkit serve --data ./restored --restore backup.db",
		Args:    arguments(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" || to == "" {
				return usagef("backup needs --data DIR and --to FILE")
			}
			// Told apart from a disk that cannot be read: the caller has named
			// the wrong folder.
			if !store.HoldsData(dir) {
				return noData(dir)
			}
			if err := store.Backup(cmd.Context(), dir, to); errors.Is(err, store.ErrInside) {
				return usageError(err)
			} else if err != nil {
				return untested(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "backed up %s to %s\n", dir, to)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "the data directory `DIR`")
	cmd.Flags().StringVar(&to, "to", "", "the `FILE` to write, outside of the directory")
	return cmd
}
