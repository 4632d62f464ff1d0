// Command destkit is the door of the toolkit: it owns flags, configuration
// files, the environment, listeners, signals, terminals and exit statuses. It
// knows nothing of the protocol; every judgement, reply and report comes from
// the other libraries, which in turn never read the environment, listen or
// exit.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
)

// sameWish is how long further signals are taken for the first.
const sameWish = 500 * time.Millisecond

func main() {
	command.LinkedBuild(version, commit, date)
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		// A second signal ends the process at once. One that comes with the first is the
		// same wish: who ends a whole group of processes, and then its leader, as
		// timeout and runners of pipelines do, sends two.
		time.Sleep(sameWish)
		signal.Stop(signals)
	}()
	os.Exit(command.Execute(ctx, newRoot(), os.Args[1:]))
}
