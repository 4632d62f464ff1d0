package syncs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/pause"
	"github.com/destkit/destkit/server/api"
)

// following holds the flags of what shows runs as they go.
type following struct {
	rest          Flags
	asJSON, quiet bool
	interval      time.Duration
	patience      time.Duration
	maxFailed     int64
	profiling     command.Profiling
}

func (o *following) register(cmd *cobra.Command) {
	o.rest.Register(cmd)
	o.rest.RegisterToken(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.asJSON, "json", false, "one JSON object on a line whenever a run has changed")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show nothing; the exit status tells")
	f.DurationVar(&o.interval, "interval", 500*time.Millisecond, "time between two looks at a run")
	f.DurationVar(&o.patience, "patience", 30*time.Second, "how long a service that gives no answer is waited for")
	f.Int64Var(&o.maxFailed, "max-failed", -1, "exit 1 when more than `N` records of a completed run have failed or are invalid; -1: any number may")
	cmd.MarkFlagsMutuallyExclusive("json", "quiet")
	o.profiling.Register(cmd)
	command.EndHelp(cmd, exitTable)
}

// open checks the flags and prepares what follows runs.
func (o *following) open(out, screen io.Writer) (*Follower, error) {
	switch {
	case o.interval <= 0:
		return nil, exit.Usagef("--interval must be longer than nothing, not %s", o.interval)
	case o.patience < 0:
		return nil, exit.Usagef("--patience cannot be negative")
	case o.maxFailed < -1:
		return nil, exit.Usagef("--max-failed cannot be negative")
	}
	client, err := o.rest.OpenAPI()
	if err != nil {
		return nil, err
	}
	return &Follower{
		Client: client, Show: NewSyncDisplay(out, screen, o.asJSON, o.quiet, time.Now), Every: o.interval,
		patience: o.patience, maxFailed: o.maxFailed, Now: time.Now, Wait: pause.For,
	}, nil
}

// exitTable is in the help texts of sync and its subcommands.
const exitTable = `Exit status:
  0  done: the run completed
  1  a run failed, was cancelled or skipped, or has more failed and invalid
     records than --max-failed allows
  2  usage or configuration: a flag, no such sync or run
  3  the service gave no answer or refused the token, or the command was
     interrupted before the end`

// Follower looks at runs through the API, again and again, politely.
type Follower struct {
	Client          *Client
	Show            Display
	Every, patience time.Duration
	maxFailed       int64 // negative: any number
	Now             func() time.Time
	Wait            func(context.Context, time.Duration) error
}

// lastPause is the longest time between two tries to reach a service.
const lastPause = 5 * time.Second

// ask repeats a call that reads while the service gives no proper answer: it may
// be starting again, and its runs go on.
func (f *Follower) ask(ctx context.Context, call func() error) error {
	deadline := f.Now().Add(f.patience)
	for pause := f.Every; ; pause = min(2*pause, lastPause) {
		err := call()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		hint, passing := passes(err)
		wait := max(pause, hint)
		if !passing || f.Now().Add(wait).After(deadline) {
			return err
		}
		if pause == f.Every {
			f.Show.Note(fmt.Sprintf("%v; trying again for %s", err, f.patience))
		}
		if err := f.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

// passes reports whether an error may go away by itself, and returns the wait of
// Retry-After.
func passes(err error) (hint time.Duration, passing bool) {
	var gone *Unreachable
	var refused *Error
	switch {
	case errors.As(err, &gone):
		return 0, !gone.Plain() // a URL does not mend itself
	case errors.As(err, &refused):
		if refused.Code == http.StatusTooManyRequests || refused.Code >= 500 {
			seconds, _ := strconv.Atoi(refused.RetryAfter) // a date counts as none
			return time.Duration(max(seconds, 0)) * time.Second, true
		}
	}
	return 0, false
}

// firstLook is how soon a new run is looked at again; the time grows to that
// between looks. Many runs take less.
const firstLook = 50 * time.Millisecond

// Follow shows a run until it is over.
func (f *Follower) Follow(ctx context.Context, s Sync, id int64, p *Pulse) (v View, err error) {
	for pause := min(firstLook, f.Every); ; pause = min(2*pause, f.Every) {
		var r api.SyncRun
		err := f.ask(ctx, func() (err error) {
			r, err = f.Client.Run(ctx, id)
			return err
		})
		if err != nil {
			return v, err
		}
		v = View{Sync: s, Run: r, Figures: p.Take(f.Now(), r)}
		if Over(r) {
			f.Show.Moment(nil)
			return v, nil
		}
		f.Show.Moment([]View{v})
		if err := f.Wait(ctx, pause); err != nil {
			return v, err
		}
	}
}

// verdict is the exit status of a run that is over.
func (f *Follower) verdict(r api.SyncRun) int {
	switch {
	case !HasStatus(r.Status, api.RunCompleted):
		return exit.GateFailed
	case f.maxFailed >= 0 && Count(r.RecordsFailed)+Count(r.RecordsInvalid) > f.maxFailed:
		return exit.GateFailed
	}
	return exit.OK
}

// lastCompleted finds the run by which the next one is estimated; nil is none.
func lastCompleted(runs []api.SyncRun) *api.SyncRun {
	for _, r := range runs {
		if HasStatus(r.Status, api.RunCompleted) {
			return &r
		}
	}
	return nil
}
