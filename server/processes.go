package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server/internal/rest"
	"github.com/destkit/destkit/server/internal/store"
)

// The roles of Config.Role.
const (
	RoleAll    = "all"    // serves the API and runs syncs
	RoleAPI    = "api"    // serves the API; others run syncs
	RoleWorker = "worker" // runs syncs; others serve the API
)

// completeProcess checks the part of the configuration that is about several processes.
func (c *Config) completeProcess() error {
	switch c.Role = cmp.Or(c.Role, RoleAll); c.Role {
	case RoleAll, RoleAPI, RoleWorker:
	default:
		return fmt.Errorf("unknown role %q: must be one of %s, %s, %s", foreign.Clip(c.Role, 64), RoleAll, RoleAPI, RoleWorker)
	}
	if c.Role != RoleAll && c.Store == "" {
		return fmt.Errorf("the role %s needs a store that several processes share: postgres://…", c.Role)
	}
	if c.Workers < 0 {
		return fmt.Errorf("the number of workers must be above 0, not %d", c.Workers)
	}
	c.Workers = cmp.Or(c.Workers, DefaultWorkers)
	if c.Role == RoleAPI {
		c.Workers = 0
	}
	if c.Process == "" {
		// Not from Config.Random: two processes with one seed are two.
		var id [8]byte
		if _, err := rand.Read(id[:]); err != nil {
			return fmt.Errorf("name the process: %w", err)
		}
		c.Process = hex.EncodeToString(id[:])
	}
	return nil
}

// Ready tells why this process should get no calls, nil when it should: the store
// answers, the data directory takes a file, what others tell is heard, runs are taken off the queue, and Drain was
// not called. Where the store is not shared it is about the first two alone.
func (s *Server) Ready(ctx context.Context) error {
	if err := s.store.View(ctx, func(*store.Tx) error { return nil }); err != nil {
		return fmt.Errorf("the store does not answer: %w", err)
	}
	if err := rest.Writable(s.config.Dir); err != nil {
		return err
	}
	return s.member.Ready()
}

// Drain makes ready for the end of this process: it takes no more runs, hands back
// those that it works on (each stops between two batches, and another process goes
// on), and lets others lead. Calls are still answered, and Close is still needed.
// Where the store is not shared it does nothing: Close stops the runs, and the next
// start goes on.
func (s *Server) Drain(ctx context.Context) error {
	return s.member.Drain(ctx)
}
