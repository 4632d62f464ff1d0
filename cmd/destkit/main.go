// Command destkit is the door of the toolkit: it owns flags, configuration
// files, the environment, listeners, signals, terminals and exit statuses. It
// knows nothing of the protocol; every judgement, reply and report comes from
// the libraries beside it, which in turn never read the environment, listen or
// exit.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errTerminated is the cause of the end when a supervisor has asked for it: there
// may be a balancer that must notice first. At a terminal, where SIGINT comes
// from, nobody wants to wait.
var errTerminated = errors.New("told to end by SIGTERM")

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		why := context.Canceled
		if <-signals == syscall.SIGTERM {
			why = errTerminated
		}
		// A second signal ends the process at once.
		signal.Stop(signals)
		cancel(why)
	}()
	os.Exit(execute(ctx, newRoot(), os.Args[1:]))
}
