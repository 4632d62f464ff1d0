// Command destkit is the door of the toolkit: it owns flags, configuration
// files, the environment, listeners, signals, terminals and exit statuses. It
// knows nothing of the protocol; every judgement, reply and report comes from
// the libraries beside it, which in turn never read the environment, listen or
// exit.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// A second signal ends the process at once: after the first one the
	// handler is taken away again.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	status := execute(ctx, newRoot(), os.Args[1:])
	stop()
	os.Exit(status)
}
