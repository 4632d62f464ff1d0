package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/server"
)

// parent holds the flags of a server that another program starts.
type parent struct {
	asJSON    bool
	withStdin bool
}

// register adds the flags; lists are the others that --json goes with, "" for none.
func (p *parent) register(f *pflag.FlagSet, lists string) {
	usage := "print the first line as one JSON object (url, control_url, version, pid and more), and everything else to standard error"
	if lists != "" {
		usage += "; with " + lists + ", print that as JSON"
	}
	f.BoolVar(&p.asJSON, "json", false, usage)
	f.BoolVar(&p.withStdin, "exit-with-stdin", false, "stop when standard input ends, so that no server outlives the program that started it with a pipe")
}

// watch stops the command when its standard input ends.
func (p *parent) watch(cmd *cobra.Command) {
	if !p.withStdin {
		return
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	cmd.SetContext(ctx)
	// A read from a pipe cannot be broken off: the goroutine ends with the process.
	go func() {
		_, _ = io.Copy(io.Discard, cmd.InOrStdin())
		cancel()
	}()
}

// notices is where all that follows the first line goes.
func (p *parent) notices(cmd *cobra.Command) io.Writer {
	if p.asJSON {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}

// firstLine is what --json prints: all that a program needs to use the server.
type firstLine struct {
	URL     string `json:"url"`
	API     string `json:"api_url,omitempty"`     // of a service
	Control string `json:"control_url,omitempty"` // "" for a proxy without one
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Organization is the first one, where this start has made it. A token that came
	// from the environment is empty: whoever has set it knows it.
	Organization *server.Tokens `json:"organization,omitempty"`
}

// listening prints the first line of a server whose control API is below its URL.
func (p *parent) listening(w io.Writer, url string, more firstLine) error {
	more.Control = url + "/_control"
	return p.listeningAt(w, url, more)
}

// listeningAt prints the first line: the only one on standard output with --json.
func (p *parent) listeningAt(w io.Writer, url string, more firstLine) error {
	if !p.asJSON {
		foreign.Printf(w, "listening %s\n", url)
		return nil
	}
	more.URL, more.Version, more.PID = url, readBuild().Version, os.Getpid()
	if err := foreign.EncodeJSON(w, more, ""); err != nil {
		return exit.Untested(fmt.Errorf("print json: %w", err))
	}
	return nil
}
