package serve

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/server"
)

// stopped is a store for the commands that change keys and tokens: a directory that
// no service has open, or a schema, which services may work on.
type stopped struct {
	storePlace
	key keySource
}

// register adds the flags that all of these commands have.
func (s *stopped) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.dir, "data", "", "the data directory `DIR`; no service may run on it")
	s.storePlace.register(f, "or the schema in PostgreSQL")
	s.key.register(f)
}

// with opens the store for fn. It never makes a directory, a schema or a key.
func (s *stopped) with(ctx context.Context, what string, fn func(*server.Maintenance, masterKey) error) (err error) {
	if s.none() {
		return exit.Usagef("%s %w", what, errNoPlace)
	}
	if err := s.resolve(); err != nil {
		return err
	}
	held, err := s.holds(ctx)
	if err != nil {
		return err
	}
	if !held {
		return noData(s.String())
	}
	key, err := s.key.open(&s.storePlace, held, false)
	if err != nil {
		return err
	}
	// The store refuses a directory that a service has open. A schema may be in use:
	// it is left to the version that it has.
	opened, err := server.Maintain(ctx, s.at(), key.Bytes, fmt.Sprintf("pid %d, destkit serve %s", os.Getpid(), what))
	if err != nil {
		return dataError(s.String(), key, err)
	}
	defer func() {
		if failed := opened.Close(); err == nil && failed != nil {
			err = exit.Untested(failed)
		}
	}()
	return fn(opened, key)
}

// noData words that a store was never served.
func noData(place string) error { return exit.Usagef("%s holds no data of a service", place) }
