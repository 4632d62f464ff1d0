package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	pages "github.com/destkit/destkit/internal/dashboard"
	"github.com/destkit/destkit/internal/proxy"
)

// mostShown is how many exchanges the control address keeps.
const mostShown = 200

// controlPort is the second port of a proxy: pages for browsers, JSON and server-sent
// events for programs.
type controlPort struct {
	page    *pages.Proxy
	control *proxy.Control
	port    *command.Background
	done    context.CancelFunc // ends streams
}

func (c *controlPort) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.page.ForBrowser(r) {
		c.page.ServeHTTP(w, r)
		return
	}
	c.control.ServeHTTP(w, r)
}

// CloseConsole ends live updates.
func (c *controlPort) CloseConsole() { c.page.CloseConsole() }

// checkControl refuses flags of a second port that is not requested.
func (j *proxying) checkControl() error {
	switch {
	case j.control == "" && j.controlToken.Variable != "":
		return exit.Usagef("--control-token-env needs --control-addr")
	case j.control == "" && j.controlKeep:
		return exit.Usagef("--control-keep needs --control-addr: it keeps the pages of that port")
	case j.controlKeep && j.limit == 0:
		return exit.Usagef("--control-keep needs --for: without it Ctrl-C ends the run, and the pages with it")
	}
	return command.OpenToOthers("--control-addr", j.control, j.controlToken)
}

// serveControl opens the second port; without --control-addr there is none, and nil comes
// back. It outlives the calls, so that their end can be seen there.
func (j *proxying) serveControl(ctx context.Context, traffic *proxyTraffic, from, to string) (*controlPort, error) {
	if j.control == "" {
		return nil, nil
	}
	token, err := j.controlToken.Read()
	if err != nil {
		return nil, err
	}
	ctx, done := context.WithCancel(context.WithoutCancel(ctx))
	c := &controlPort{
		page:    pages.NewProxy(pages.ProxyConfig{Traffic: traffic, From: from, To: to, Token: token}),
		control: &proxy.Control{Recorder: traffic.recorder, Counts: traffic.counts, Token: token, Done: ctx.Done()},
		done:    done,
	}
	port := &command.Port{Addr: j.control, Flag: "--control-addr", Handler: c}
	if c.port, err = command.StartPort(ctx, port, nil); err != nil {
		done()
		return nil, err
	}
	return c, nil
}

// finish shows on the pages that the calls have ended.
func (c *controlPort) finish() {
	if c != nil {
		c.page.Finish()
	}
}

// close ends the port.
func (c *controlPort) close() {
	if c != nil {
		c.done()
		_ = c.port.Stop() // the calls are what counts; those who look come and go
	}
}

// shownStatus is the exit status in an error that has been reported already.
func shownStatus(err error) int {
	var ended *exit.Error
	switch {
	case err == nil:
		return exit.OK
	case errors.As(err, &ended):
		return ended.Status
	}
	return exit.NotTested
}

// screenOf is where text goes: not where a report goes.
func screenOf(cmd *cobra.Command, out outputs.List) io.Writer {
	if out.TakesStdout() {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}
