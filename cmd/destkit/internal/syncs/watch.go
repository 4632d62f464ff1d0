package syncs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/internal/quantity"
	"github.com/destkit/destkit/server/api"
)

// looker holds the flags of `destkit sync watch`.
type looker struct {
	following
	once bool
}

// newSyncWatch shows runs that others start: schedules, other clients, syncs that
// wait for one another.
func newSyncWatch() *cobra.Command {
	var l looker
	cmd := &cobra.Command{
		Use:   "watch [ID]",
		Short: "Follow the runs of a sync, or of all syncs of the workspace",
		Long: `Follow the runs of the sync ID, or of all syncs of the workspace, whoever
starts them: steps, counters, speed, about how long they will take, and how
they end. It goes on until it is interrupted, which ends no run.

With --once it follows what is active now to its end, shows the last run of the
other syncs, and ends; the exit status is that of the worst run.`,
		Example: `  destkit sync watch
  destkit sync watch 7 --json
  destkit sync watch 7 --once --quiet`,
		Args: command.Arguments(0, 1, "one ID of a sync"),
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd, args) },
	}
	l.register(cmd)
	cmd.Flags().BoolVar(&l.once, "once", false, "end when nothing is active any more")
	return cmd
}

// run watches until it is stopped, which is no failure, or with --once until
// nothing is active.
func (l *looker) run(cmd *cobra.Command, args []string) (err error) {
	var only int64
	if len(args) > 0 {
		if only, err = identity("sync", args[0]); err != nil {
			return err
		}
	}
	f, err := l.open(cmd.OutOrStdout(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	stopProfile, err := l.profiling.Start()
	if err != nil {
		return err
	}
	defer stopProfile()
	w := &syncWatch{Follower: f, only: only, once: l.once, syncs: map[int64]*watched{}}
	err = w.run(cmd.Context())
	f.Show.Moment(nil)
	switch {
	case cmd.Context().Err() == nil:
		if err != nil {
			return Failure("watch", err)
		}
		return exit.With(w.status)
	case l.once:
		return exit.Untested(errors.New("interrupted"))
	}
	return nil // as it was meant to end
}

// syncWatch follows the runs of several syncs.
type syncWatch struct {
	*Follower
	only   int64 // 0: every sync
	once   bool
	syncs  map[int64]*watched
	turn   []int64 // the syncs that are looked at next
	status int
}

// watched is one sync.
type watched struct {
	sync   Sync
	seen   int64            // runs up to this id are known
	active map[int64]*Pulse // by run
	ended  *api.SyncRun     // the last run that was completed
}

// looksAtOnce bounds the calls between two pauses: a workspace may have
// thousands of syncs, and most of them do nothing.
const looksAtOnce = 10

// run looks around until the context ends, or everything has with once.
func (w *syncWatch) run(ctx context.Context) error {
	if err := w.list(ctx, true); err != nil {
		return err
	}
	for {
		active, err := w.activeRuns(ctx)
		if err != nil {
			return err
		}
		w.Show.Moment(active)
		if w.once && len(active) == 0 {
			return nil
		}
		if err := w.Wait(ctx, w.Every); err != nil {
			return err
		}
		if w.once {
			continue // a run that starts later is not requested
		}
		if err := w.lookAround(ctx); err != nil {
			return err
		}
	}
}

// list finds the syncs; at first it takes note of the runs that they had.
func (w *syncWatch) list(ctx context.Context, first bool) error {
	var all []Sync
	err := w.ask(ctx, func() (err error) {
		if w.only == 0 {
			all, err = AllOf[Sync](ctx, w.Client, "/syncs")
			return err
		}
		s, err := w.Client.Sync(ctx, w.only)
		all = []Sync{s}
		return err
	})
	if err != nil {
		return err
	}
	w.turn = w.turn[:0]
	for _, s := range all {
		w.turn = append(w.turn, s.ID)
		if known := w.syncs[s.ID]; known != nil {
			known.sync = s
			continue
		}
		one := &watched{sync: s, active: map[int64]*Pulse{}}
		w.syncs[s.ID] = one
		if !first {
			continue // all of its runs are news
		}
		if err := w.past(ctx, one); err != nil {
			return err
		}
	}
	if first && !w.once {
		what := "syncs"
		if len(all) == 1 {
			what = "sync"
		}
		w.Show.Note(fmt.Sprintf("watching %s %s", quantity.Grouped(int64(len(all))), what))
	}
	return nil
}

// past takes note of the runs of a sync before the watch.
func (w *syncWatch) past(ctx context.Context, one *watched) error {
	runs, err := w.runsOf(ctx, one)
	if err != nil || len(runs) == 0 {
		return err
	}
	one.ended = lastCompleted(runs)
	var last *api.SyncRun // that did anything
	for _, r := range runs {
		one.seen = max(one.seen, r.ID)
		if last == nil && !HasStatus(r.Status, api.RunSkipped) {
			last = &r
		}
		if !Over(r) {
			one.active[r.ID] = NewPulse(w.Now(), one.ended)
			one.active[r.ID].Late = true
		}
	}
	if w.once && len(one.active) == 0 && last != nil {
		w.end(one, *last, nil)
	}
	return nil
}

// runsOf are the latest runs of a sync; none when it is gone.
func (w *syncWatch) runsOf(ctx context.Context, one *watched) (runs []api.SyncRun, err error) {
	err = w.ask(ctx, func() (err error) {
		runs, err = w.Client.LastRuns(ctx, one.sync.ID, 20)
		return err
	})
	if missing(err) {
		delete(w.syncs, one.sync.ID)
		return nil, nil
	}
	return runs, err
}

// missing reports whether a thing has been deleted.
func missing(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Code == http.StatusNotFound
}

// lookAround looks for new runs of the syncs whose turn it is.
func (w *syncWatch) lookAround(ctx context.Context) error {
	// A round is over: there may be new syncs, or new labels.
	if len(w.turn) == 0 {
		if err := w.list(ctx, false); err != nil {
			return err
		}
	}
	now := w.turn[:min(looksAtOnce, len(w.turn))]
	w.turn = w.turn[len(now):]
	for _, id := range now {
		one := w.syncs[id]
		if one == nil {
			continue
		}
		runs, err := w.runsOf(ctx, one)
		if err != nil {
			return err
		}
		// Oldest first, as they happened.
		for _, r := range slices.Backward(runs) {
			if r.ID <= one.seen {
				continue
			}
			one.seen = r.ID
			p := NewPulse(w.Now(), one.ended)
			p.Late = true
			// Too short to be seen at work, but still reported.
			if Over(r) {
				w.end(one, r, p)
				continue
			}
			one.active[r.ID] = p
		}
	}
	return nil
}

// activeRuns looks at each run that was not over.
func (w *syncWatch) activeRuns(ctx context.Context) (active []View, err error) {
	for _, one := range w.syncs {
		for id, p := range one.active {
			var r api.SyncRun
			err := w.ask(ctx, func() (err error) {
				r, err = w.Client.Run(ctx, id)
				return err
			})
			switch {
			case missing(err): // deleted with its sync, or by a reset
				delete(one.active, id)
			case err != nil:
				return nil, err
			case Over(r):
				delete(one.active, id)
				w.end(one, r, p)
			default:
				active = append(active, View{Sync: one.sync, Run: r, Figures: p.Take(w.Now(), r)})
			}
		}
	}
	slices.SortFunc(active, func(a, b View) int { return int(a.Run.ID - b.Run.ID) })
	return active, nil
}

// end shows how a run has ended.
func (w *syncWatch) end(one *watched, r api.SyncRun, p *Pulse) {
	if p == nil {
		p = NewPulse(w.Now(), nil)
		p.Late = true
	}
	if HasStatus(r.Status, api.RunCompleted) {
		one.ended = &r
	}
	w.status = exit.Worst(w.status, w.verdict(r))
	w.Show.Ended(View{Sync: one.sync, Run: r, Figures: p.Take(w.Now(), r)})
}
