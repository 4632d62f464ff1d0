// Package syncs is `destkit sync` with its subcommands, and `destkit explain-record`: runs
// of a service started, followed and explained on a terminal.
package syncs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/foreign"
)

// New groups the commands for syncs of a running service. But for plan it goes
// through the REST API alone, so that it works with every service that speaks it.
func New() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sync",
		Short: "Plan, run, watch and cancel syncs of a service",
		Long: `Plan, run, watch and cancel syncs of a running service (destkit serve, or any
other that speaks its REST API) from the terminal. The API key of the workspace
is in
` + command.WorkspaceKeyVariable + `, or in the variable that --token-env names;
plan asks the control API of destkit serve instead.`,
		Args: command.NoSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.EndHelp(cmd, exitTable)
	cmd.AddCommand(newSyncPlan(), newSyncRun(), newSyncWatch(), newSyncCancel())
	return cmd
}

// runner holds the flags of `destkit sync run`.
type runner struct {
	following
	full, cancel, detach bool
}

// newSyncRun triggers a run and shows it as spec 2.9 lets clients see
// it: current_step and the counters.
func newSyncRun() *cobra.Command {
	var r runner
	cmd := &cobra.Command{
		Use:   "run ID",
		Short: "Start a run of a sync and follow it",
		Long: `Start a run of the sync ID and show its steps, its counters, its speed and about
how long it will take, until it is over. On a terminal that is one line that
changes, elsewhere a line for each step and every ten seconds.

The time that is left is estimated from the rows of the last completed run; the
first run of a sync has no estimate while it reads.

Ctrl-C ends the command and not the run, unless --cancel-on-interrupt is given.
A service that gives no answer for a while, as one that is started again, is
waited for.`,
		Example: `  destkit sync run 7
  destkit sync run 7 --full --url https://sync.example.com --token-env KEY
  destkit sync run 7 --quiet --max-failed 0 || echo "look at sync 7"
  destkit sync run 7 --json | jq .sync_run.records_updated`,
		Args: command.Arguments(1, 1, "the ID of the sync"),
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
	}
	r.register(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.full, "full", false, "send every row again, not only what has changed")
	f.BoolVar(&r.cancel, "cancel-on-interrupt", false, "cancel the run on SIGINT and SIGTERM and wait for its end")
	f.BoolVar(&r.detach, "detach", false, "only start the run and print its id")
	cmd.MarkFlagsMutuallyExclusive("detach", "cancel-on-interrupt")
	return cmd
}

// identity reads an id from the command line.
func identity(what, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, exit.Usagef("%q is no id of a %s; it must be a whole number from 1", text, what)
	}
	return id, nil
}

// run starts a run and follows it; everything that can be refused is refused
// before the trigger.
func (r *runner) run(cmd *cobra.Command, arg string) error {
	ctx := cmd.Context()
	id, err := identity("sync", arg)
	if err != nil {
		return err
	}
	f, err := r.open(cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	stopProfile, err := r.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	s, err := f.Client.Sync(ctx, id)
	if err != nil {
		return Failure(fmt.Sprintf("read sync %d", id), err)
	}
	// Before the trigger, or the new run would be among them.
	earlier, err := f.Client.LastRuns(ctx, id, 20)
	if err != nil {
		return Failure(fmt.Sprintf("read runs of sync %d", id), err)
	}
	p := NewPulse(f.Now(), lastCompleted(earlier))
	run, err := f.Client.Trigger(ctx, id, r.full)
	if err != nil {
		return Failure(fmt.Sprintf("trigger sync %d", id), err)
	}
	if r.detach {
		foreign.Println(cmd.OutOrStdout(), run)
		return nil
	}
	v, err := f.Follow(ctx, s, run, p)
	if ctx.Err() != nil {
		if v, err = r.interrupted(ctx, f, s, run, p); err != nil {
			return err
		}
	}
	if err != nil {
		return Failure(fmt.Sprintf("follow run %d", run), err)
	}
	f.Show.Ended(v)
	return exit.With(f.verdict(v.Run))
}

// cancelTime is how long a run may take to end once it is cancelled.
const cancelTime = time.Minute

// interrupted leaves the run alone, or cancels it and waits for its end.
func (r *runner) interrupted(ctx context.Context, f *Follower, s Sync, run int64, p *Pulse) (v View, err error) {
	f.Show.Moment(nil) // takes the bar away
	if !r.cancel {
		return v, exit.Untested(fmt.Errorf("interrupted; run %d goes on: 'destkit sync watch %d' follows it, 'destkit sync cancel %d' cancels it", run, s.ID, run))
	}
	f.Show.Note(fmt.Sprintf("interrupted; cancelling run %d", run))
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	var refused *Error
	// A run that is over by now has an end to show.
	if err := f.Client.Cancel(ctx, run); err != nil && (!errors.As(err, &refused) || refused.Code != http.StatusConflict) {
		return v, Failure(fmt.Sprintf("cancel run %d", run), err)
	}
	if v, err = f.Follow(ctx, s, run, p); err != nil {
		return v, Failure(fmt.Sprintf("follow run %d", run), err)
	}
	return v, nil
}

// newSyncCancel is what an interrupted `sync run` points at: a cancelled run ends
// as failed with canceled true.
func newSyncCancel() *cobra.Command {
	var flags Flags
	cmd := &cobra.Command{
		Use:   "cancel RUN",
		Short: "Cancel a run",
		Long: `Cancel the run RUN of any sync of the workspace. What the destination has
acknowledged stays.`,
		Example: "  destkit sync cancel 12",
		Args:    command.Arguments(1, 1, "the ID of the run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := identity("run", args[0])
			if err != nil {
				return err
			}
			client, err := flags.OpenAPI()
			if err != nil {
				return err
			}
			if err := client.Cancel(cmd.Context(), run); err != nil {
				return Failure(fmt.Sprintf("cancel run %d", run), err)
			}
			foreign.Printf(cmd.OutOrStdout(), "run %d: cancelled\n", run)
			return nil
		},
	}
	flags.Register(cmd)
	flags.RegisterToken(cmd)
	command.EndHelp(cmd, exitTable)
	return cmd
}
