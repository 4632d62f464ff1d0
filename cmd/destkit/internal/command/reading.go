package command

import (
	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
)

// Reading holds the flags of the read-back hook.
type Reading struct{ readbackURL, readbackCommand string }

func (h *Reading) Register(cmd *cobra.Command, o *conformance.Options) {
	f := cmd.Flags()
	f.StringVar(&h.readbackURL, "readback-url", "", "read-back hook: a `URL` that gets a POST")
	f.StringVar(&h.readbackCommand, "readback-command", "", "read-back hook: a `COMMAND` that gets the JSON on standard input; split like a shell, run without one")
	f.DurationVar(&o.ReadbackWindow, "readback-window", 0, "how long a read-back may lag behind the acknowledgement, for example 2s")
}

// Resolve builds the hook.
func (h *Reading) Resolve(o *conformance.Options) error {
	if h.readbackURL != "" && h.readbackCommand != "" {
		return exit.Usagef("--readback-url and --readback-command exclude each other")
	}
	if h.readbackURL != "" {
		if err := CheckURL("--readback-url", h.readbackURL); err != nil {
			return err
		}
	}
	words, err := Split(h.readbackCommand)
	if err != nil {
		return exit.Usagef("--readback-command: %w", err)
	}
	o.Readback = conformance.HookSpec{URL: h.readbackURL, Command: words}
	return nil
}
