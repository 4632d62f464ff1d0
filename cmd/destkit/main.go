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
	"time"
)

// errTerminated is the cause of the end when a supervisor has asked for it: there
// may be a balancer that must notice first. At a terminal, where SIGINT comes
// from, nobody wants to wait.
var errTerminated = errors.New("told to end by SIGTERM")

// sameWish is how long further signals are taken for the first.
const sameWish = 500 * time.Millisecond

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		why := context.Canceled
		if <-signals == syscall.SIGTERM {
			why = errTerminated
		}
		cancel(why)
		// A second signal ends the process at once. One that comes with the first is the
		// same wish: who ends a whole group of processes, and then its leader, as
		// timeout and runners of pipelines do, sends two.
		time.Sleep(sameWish)
		signal.Stop(signals)
	}()
	os.Exit(execute(ctx, newRoot(), os.Args[1:]))
}
