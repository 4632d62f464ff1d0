package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/destkit/destkit/cmd/destkit/internal/command"
	"github.com/destkit/destkit/cmd/destkit/internal/configfile"
	"github.com/destkit/destkit/cmd/destkit/internal/exit"
	"github.com/destkit/destkit/cmd/destkit/internal/outputs"
	"github.com/destkit/destkit/conformance"
	"github.com/destkit/destkit/conformance/destination"
	"github.com/destkit/destkit/internal/foreign"
	"github.com/destkit/destkit/internal/lists"
	"github.com/destkit/destkit/internal/quantity"
)

// watching holds the flags of a judgement that is repeated.
type watching struct {
	on    bool
	paths []string
	exec  string
}

func (w *watching) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&w.on, "watch", false, "judge again when files change or a key is pressed")
	f.StringArrayVar(&w.paths, "watch-path", nil, "watch below `DIR` (repeatable; default: this folder)")
	f.StringVar(&w.exec, "exec", "", "`COMMAND` that runs the endpoint, as 'node server.js'")
}

// check refuses what does not go together.
func (w *watching) check(out outputs.List, o conformance.Options) error {
	switch {
	case !w.on && (w.exec != "" || len(w.paths) > 0):
		return exit.Usagef("--exec and --watch-path need --watch")
	case w.on && out.TakesStdout():
		return exit.Usagef("--watch shows its runs on standard output: give each --report a file")
	case w.on && o.Journal != "":
		return exit.Usagef("--journal is the file of one run: leave it out with --watch, each run has a journal")
	}
	for _, dir := range w.paths {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return exit.Usagef("--watch-path %s: there is no such folder", dir)
		}
	}
	return nil
}

// watchSession judges one endpoint again and again.
type watchSession struct {
	cmd      *cobra.Command
	watching watching
	target   destination.Target
	options  conformance.Options
	settings configfile.Settings
	shown    shownCommands
	outputs  outputs.List
	failed   failedChecks
	quiet    bool
	noColor  bool

	files  *Files
	child  *Process // nil without --exec
	last   *conformance.Report
	runs   int // complete ones, for the screen
	judged int // all, for the names of journals
	status int

	ended  time.Time // the last run
	echoes Echoes
}

// errQuit ends a session at the wish of its user.
var errQuit = errors.New("quit")

// run judges until it is stopped; the status is that of the last run.
func (s *watchSession) run(ctx context.Context) (err error) {
	s.status = exit.NotTested
	if len(s.watching.paths) == 0 {
		s.watching.paths = []string{"."}
	}
	if s.files, err = Folders(s.watching.paths, s.own()); err != nil {
		return exit.Untested(err)
	}
	defer s.files.Close()
	if s.watching.exec != "" {
		if s.child, err = NewProcess(s.watching.exec, s.target.URL); err != nil {
			return err
		}
		defer s.child.Close()
	}
	keys := NewKeyboard(os.Stdin, s.cmd.OutOrStdout())
	defer keys.Close()
	reason := "the first run"
	var written DuringRuns
	for ctx.Err() == nil {
		if err := s.round(ctx, reason); err != nil {
			return err
		}
		s.ended = time.Now()
		if ctx.Err() != nil {
			break
		}
		if changed := s.files.Settle(ctx); len(changed) > 0 {
			if fresh := written.Fresh(changed); len(fresh) > 0 {
				reason = changedWords(fresh) + " during the run"
				continue
			}
			foreign.Println(s.cmd.OutOrStdout(), changedWords(changed)+" during each of these runs, which starts no further one")
		}
		written = DuringRuns{}
		foreign.Println(s.cmd.OutOrStdout(), s.waitingWords(keys))
		if reason, err = s.wait(ctx, keys); err != nil {
			break
		}
	}
	if s.runs == 0 {
		return exit.Untested(errors.New("interrupted"))
	}
	return exit.With(s.status)
}

// own reports which files destkit itself writes.
func (s *watchSession) own() []string {
	return lists.Of(s.outputs, func(out outputs.Output) string { return out.File })
}

// wait returns why to judge again, or errQuit.
func (s *watchSession) wait(ctx context.Context, keys *Keyboard) (string, error) {
	restore := keys.Raw()
	defer restore()
	for {
		select {
		case <-ctx.Done():
			return "", errQuit
		case <-s.files.Changed:
			changed, echoed := s.echoes.Filter(s.files.Settle(ctx), time.Since(s.ended))
			if len(echoed) > 0 {
				foreign.Printf(s.cmd.OutOrStdout(), "%s after each of %s, which starts no further one; name the folders that you edit with --watch-path\n",
					changedWords(echoed), quantity.Count(EchoRuns, "run"))
			}
			if len(changed) > 0 {
				return changedWords(changed), nil
			}
		case key := <-keys.Pressed:
			switch key {
			case 'q', 'Q', CtrlC, CtrlD:
				return "", errQuit
			case '\r', '\n', ' ':
				return "a key was pressed", nil
			}
		}
	}
}

// round starts the endpoint where that is requested, and judges: first what failed
// last, then the rest. An error is a mistake of the command line.
func (s *watchSession) round(ctx context.Context, reason string) error {
	out := s.cmd.OutOrStdout()
	if s.child != nil {
		if err := s.child.Restart(ctx); err != nil {
			s.unjudged(ctx, reason, err)
			return nil
		}
	}
	if len(s.failed.ids) > 0 {
		foreign.Printf(out, "%s: judging first what failed last: %s\n", reason, shortList(s.failed.ids, 8))
		first, err := s.judge(ctx, s.failed.ids)
		if err != nil || ctx.Err() != nil {
			s.unjudged(ctx, reason, err)
			return nil
		}
		if broken := brokenOf(first, s.failed.ids); len(broken) > 0 {
			foreign.Printf(out, "still failing: %s\n", shortList(broken, 8))
			if s.failed.asked {
				s.failed.ids = broken
				s.show(reason, first)
				return nil
			}
		}
	}
	result, err := s.judge(ctx, s.options.Select)
	var usage *conformance.UsageError
	switch {
	case errors.As(err, &usage) && s.runs == 0:
		return command.Failure(s.settings.Placed(err))
	case err != nil || ctx.Err() != nil:
		s.unjudged(ctx, reason, s.settings.Placed(err))
		return nil
	}
	s.show(reason, result)
	if result.Verdict != conformance.Unknown {
		s.last, s.failed.ids = result, failedIn(result)
	}
	return nil
}

// brokenOf are those of some checks that a report shows broken; it includes the
// checks that they build on.
func brokenOf(r *conformance.Report, ids []string) []string {
	return slices.DeleteFunc(failedIn(r), func(id string) bool { return !slices.Contains(ids, id) })
}

// judge is one run with its own journal.
func (s *watchSession) judge(ctx context.Context, selected []string) (*conformance.Report, error) {
	o := s.options
	o.Select = selected
	if o.Write {
		s.judged++
		o.Journal = strings.TrimSuffix(journalName(time.Now()), ".ndjson") + fmt.Sprintf("-%d.ndjson", s.judged)
	}
	step, done := outputs.Progress(s.cmd.ErrOrStderr(), s.quiet)
	o.Progress = step
	result, err := destination.Run(ctx, s.target, o)
	done()
	if o.Write && err == nil {
		dropJournal(o.Journal, result)
	}
	return result, err
}

func changedWords(names []string) string { return shortList(names, 3) + " changed" }

// shortList names at most n.
func shortList(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
