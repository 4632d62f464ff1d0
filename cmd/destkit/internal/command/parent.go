package command

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

// Parent holds the flags of a server that another program starts.
type Parent struct {
	AsJSON    bool
	withStdin bool
}

// Register adds the flags; lists are the others that --json goes with, "" for none.
func (p *Parent) Register(f *pflag.FlagSet, lists string) {
	usage := "first line as one JSON object, all else on stderr"
	if lists != "" {
		usage += "; the same for " + lists
	}
	f.BoolVar(&p.AsJSON, "json", false, usage)
	f.BoolVar(&p.withStdin, "exit-with-stdin", false, "stop when standard input ends, with a parent program")
}

// Watch stops the command when its standard input ends.
func (p *Parent) Watch(cmd *cobra.Command) {
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

// Notices is where all that follows the first line goes.
func (p *Parent) Notices(cmd *cobra.Command) io.Writer {
	if p.AsJSON {
		return cmd.ErrOrStderr()
	}
	return cmd.OutOrStdout()
}

// FirstLine is what --json prints: all that a program needs to use the server.
type FirstLine struct {
	URL     string `json:"url"`
	API     string `json:"api_url,omitempty"`     // of a service
	Control string `json:"control_url,omitempty"` // "" for a proxy without one
	Version string `json:"version"`
	PID     int    `json:"pid"`
	// Organization is the first one, where this start has made it. A token that came
	// from the environment is empty: whoever has set it knows it.
	Organization *server.Tokens `json:"organization,omitempty"`
}

// Listening prints the first line of a server whose control API is below its URL.
func (p *Parent) Listening(w io.Writer, url string, more FirstLine) error {
	more.Control = url + "/_control"
	return p.ListeningAt(w, url, more)
}

// ListeningAt prints the first line: the only one on standard output with --json.
func (p *Parent) ListeningAt(w io.Writer, url string, more FirstLine) error {
	if !p.AsJSON {
		foreign.Printf(w, "listening %s\n", url)
		return nil
	}
	more.URL, more.Version, more.PID = url, ReadBuild().Version, os.Getpid()
	if err := foreign.EncodeJSON(w, more, ""); err != nil {
		return exit.Untested(fmt.Errorf("print json: %w", err))
	}
	return nil
}
