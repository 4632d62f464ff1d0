package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/proxy"
)

// mostShown is how many exchanges the control address keeps.
const mostShown = 200

// serveControl opens the second port; without --control-addr there is none.
func (j *proxying) serveControl(ctx context.Context, recorder *proxy.Recorder, p *proxy.Proxy) (stop func(), url string, err error) {
	if j.control == "" {
		if j.controlToken.variable != "" {
			return nil, "", usagef("--control-token-env needs --control-addr")
		}
		return func() {}, "", nil
	}
	token := ""
	if j.controlToken.variable != "" {
		if token, err = j.controlToken.read(); err != nil {
			return nil, "", err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	control := &proxy.Control{Recorder: recorder, Counts: p.Counts, Token: token, Done: ctx.Done()}
	port := &listener{addr: j.control, flag: "--control-addr", handler: control}
	ln, url, err := port.listen()
	if err != nil {
		cancel()
		return nil, "", err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = port.serve(ctx, ln) // the calls are what counts; those who look come and go
	}()
	stop = func() {
		cancel()
		<-ended
	}
	return stop, url, nil
}

// shownStatus is the exit status in an error that has been told already.
func shownStatus(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &exit):
		return exit.status
	}
	return statusUntested
}

// screenOf is where text goes: not where a report goes.
func screenOf(cmd *cobra.Command, out outputs) io.Writer {
	if out.takesStdout() {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}
