package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/openapi"
	"github.com/destkit/destkit/server"
)

// stopped is a data directory that no service has open, for the commands that change
// keys and tokens.
type stopped struct {
	dir string
	key keySource
}

// register adds the flags that all of these commands have.
func (s *stopped) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.dir, "data", "", "the data directory `DIR`; no service may run on it")
	s.key.register(f)
}

// with opens the directory for fn. It never makes a directory or a key.
func (s *stopped) with(ctx context.Context, what string, fn func(*server.Maintenance, masterKey) error) (err error) {
	if s.dir == "" {
		return exit.Usagef("%s needs --data DIR", what)
	}
	if err := checkFolder(s.dir); err != nil {
		return err
	}
	if !server.HoldsData(s.dir) {
		return noData(s.dir)
	}
	key, err := s.key.open(s.dir, false)
	if err != nil {
		return err
	}
	opened, err := server.Maintain(ctx, s.dir, key.Bytes, fmt.Sprintf("pid %d, destkit serve %s", os.Getpid(), what))
	if err != nil {
		return dataError(s.dir, key, err)
	}
	defer func() {
		if failed := opened.Close(); err == nil && failed != nil {
			err = exit.Untested(failed)
		}
	}()
	return fn(opened, key)
}

// noData words that a directory was never served.
func noData(dir string) error { return exit.Usagef("%s holds no data of a service", dir) }

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

// explainDialect lists the switches between the dialects.
func explainDialect(w io.Writer, asJSON bool) error {
	// From the OpenAPI document, which a test holds against the code.
	differences := openapi.Differences()
	if asJSON {
		return command.PrintJSON(w, differences)
	}
	for _, d := range differences {
		foreign.Printf(w, "%s\n  spec    %s\n  live    %s\n  source  %s\n  at      %s\n", d.Name, d.Spec, d.Live, d.Source, strings.Join(d.Places, ", "))
	}
	foreign.Printf(w, "%s\n", quantity.Count(len(differences), "difference"))
	return nil
}
