package serve

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
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
