// Package command owns the common parts of all commands of the program: how
// arguments are counted, how help texts look, what is suggested for a mistyped word,
// how JSON is printed and how an error ends the program. The words and work of one
// command are in the file or package of that command.
package command

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/loadgen"
)

// exitTable is in every help text without a separate one.
const exitTable = `Exit status:
  0  conformant, or done; undecided MUSTs are allowed without --require-complete
  1  a gate failed: the endpoint breaks a rule that the profile gates on
  2  usage or configuration: unknown flag, key, check or object, none selected
  3  could not test: no answer, refused, no endpoint there, interrupted, a hook
  4  a waiver is stale, expired or unknown
  5  --require-clean: records are left, or deleted by acknowledgement only
  6  --require-complete: a MUST stays undecided
  Of several the first of 2, 1, 3, 4, 5, 6 counts: docs/commands.md.`

// ServeExitTable is in the help texts of serve and its subcommands, and of
// destsim, which judge nothing.
const ServeExitTable = `Exit status:
  0  done, or stopped by SIGINT or SIGTERM
  2  usage or configuration: a flag, a key, a token or a file is no good
  3  could not be done: address or data directory in use, no database, no room`

// LoadExitTable is in the help texts of load and its subcommands.
const LoadExitTable = `Exit status:
  0  done; errors alone do not change it: set a limit with --fail-if 'errors>1%'
  1  --fail-if, --abort-errors, a search in vain, nothing acknowledged, --fail
  2  usage: a flag, a file or an object is no good; nothing was sent
  3  no complete reply, or interrupted: its result is whole all the same
  5  records that were to be deleted are left behind`

// Execute runs the program with args and returns its exit status. Errors go to
// standard error with the name of the program before them, once.
func Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetOut(screen(root.OutOrStdout()))
	root.SetErr(screen(root.ErrOrStderr()))
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exit.OK
	}
	if text := strings.TrimRight(err.Error(), "\n"); text != "" {
		foreign.Printf(root.ErrOrStderr(), "destkit: %s\n", foreign.Own(messageOf(err, text)))
	}
	if ended, ok := errors.AsType[*exit.Error](err); ok {
		return ended.Status
	}
	return exit.BadUsage // only the library of flags makes such errors
}

// screen puts a net below everything that the program prints.
func screen(w io.Writer) io.Writer {
	if _, ok := w.(*foreign.Writer); ok {
		return w
	}
	return foreign.NewWriter(w, Colourful(w, false))
}

// longestLine of a message, in characters: an argument may be as long as a shell takes.
const longestLine = 2000

// messageOf is the text of an error on a screen. Lines of a usage error are
// the program's own; any other text may come from outside.
func messageOf(err error, text string) string {
	var ended *exit.Error
	lines := []string{foreign.Message(text)}
	if !errors.As(err, &ended) || ended.Status == exit.BadUsage {
		lines = foreign.Block(text)
	}
	for i, line := range lines {
		lines[i] = foreign.Clip(line, longestLine)
	}
	return strings.Join(lines, "\n")
}

// Failure gives an error of the judge or of a load its exit status.
func Failure(err error) error {
	var judge *conformance.UsageError
	var load *loadgen.UsageError
	var ended *exit.Error
	switch {
	case errors.As(err, &judge), errors.As(err, &load):
		return exit.Usage(err)
	case errors.As(err, &ended):
		return err
	case errors.Is(err, context.Canceled):
		return exit.Untested(errors.New("interrupted"))
	}
	return exit.Untested(err)
}
