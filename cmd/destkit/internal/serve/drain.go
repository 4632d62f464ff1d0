package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/server"
)

// noticeTime is how long the port stays open after SIGTERM although the process
// is not ready any more: whoever spreads calls over processes has to see that
// first. It is a part of --drain-timeout, and never more than most.
const (
	noticeShare = 6
	noticeMost  = 5 * time.Second
)

// drainer is what the end of a service takes beside its port.
type drainer interface {
	// Drain makes the process unready and hands its runs back.
	Drain(ctx context.Context) error
	Close() error
}

// ending ends a process that others stand beside.
type ending struct {
	timeout time.Duration
	notice  bool // calls come through balancers, which must see the end first
	log     *slog.Logger
}

// ending is how this process ends; nil where it is alone.
func (s *Flags) ending() *ending {
	if s.Config.Store == "" {
		return nil
	}
	e := &ending{timeout: s.processes.drain, notice: s.Config.Role != server.RoleWorker, log: s.Config.Log}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	return e
}

// until serves until ctx ends.
func (s *Flags) until(ctx context.Context, port *command.Port, ln net.Listener, world drainer) error {
	if e := s.ending(); e != nil {
		return e.serve(ctx, port, ln, world)
	}
	return port.Serve(ctx, ln) // Close waits for the runs
}

// close lets go of everything.
func (s *Flags) close(world drainer) error {
	if e := s.ending(); e != nil {
		return e.close(world)
	}
	return world.Close()
}

// serve answers on ln until ctx ends. Then the process says at once that it is not
// ready, hands its runs back, and answers on until balancers have noticed.
func (e *ending) serve(ctx context.Context, port *command.Port, ln net.Listener, world drainer) error {
	open, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	over := make(chan error, 1)
	go func() { over <- port.Serve(open, ln) }()
	select {
	case err := <-over:
		return err
	case <-ctx.Done():
	}
	notice := time.Duration(0)
	if e.notice && errors.Is(context.Cause(ctx), exit.ErrTerminated) {
		notice = min(e.timeout/noticeShare, noticeMost)
	}
	e.log.Info("draining", "timeout", e.timeout.String(), "notice", notice.String())
	began := time.Now()
	limited, cancel := context.WithTimeout(open, e.timeout)
	defer cancel()
	noticed := time.After(notice)
	drained := world.Drain(limited)
	select {
	case <-noticed:
	case <-limited.Done():
	}
	if drained != nil {
		// Others take the runs over when their leases have run out.
		e.log.Warn("runs are not handed back", "after", time.Since(began).Round(time.Millisecond).String(), "error", drained)
	} else {
		e.log.Info("drained", "after", time.Since(began).Round(time.Millisecond).String())
	}
	end()
	return <-over
}

// errStuck says that the process ends although something is still under way.
var errStuck = errors.New("work is still under way")

// close lets go of everything, for no longer than the timeout: a call that hangs
// must not keep a process that is not needed any more.
func (e *ending) close(world drainer) error {
	closed := make(chan error, 1)
	go func() { closed <- world.Close() }()
	late := time.NewTimer(e.timeout)
	defer late.Stop()
	select {
	case err := <-closed:
		return err
	case <-late.C:
		return fmt.Errorf("end the service within %s: %w; other processes take it over", e.timeout, errStuck)
	}
}
