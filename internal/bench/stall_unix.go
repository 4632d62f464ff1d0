//go:build unix

package main

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// halt stops the process for a while: nothing of it runs, its sockets stay open.
func (s *server) halt(ctx context.Context, d time.Duration) error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the simulator: %w", err)
	}
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	if err := s.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("let the simulator go on: %w", err)
	}
	return nil
}
